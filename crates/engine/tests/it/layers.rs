//! Each layer but the convolution, alone, on every device against the naive loops.

use anchorhood_engine::naive::elementwise::dropout_mask;
use anchorhood_engine::{
    Activation, ConvSpec, Device, DropoutKey, Input, NetworkOptions, Shape, Window,
};

use crate::common::compare::{compare, compare_on};
use crate::common::graphs::{Build, one_layer};
use crate::common::{Driven, every_device, uniform};

every_device!(
    of_every_shape,
    batch_norm_of_many_channels,
    max_pool,
    max_pool_gives_ties_to_the_first,
    linear,
    dropout_of_a_late_step,
    dropout_draws_other_masks,
    l2_normalise,
    l2_normalise_of_zero,
    channels,
    concat,
    lab,
);

/// Uneven pictures with every count of channels that matters.
fn shapes() -> impl Iterator<Item = (usize, Shape)> {
    let channels = [1, 3, 5, 16, 17, 33, 64];
    let batches = [2, 5, 2, 1, 2, 5, 3];
    let sizes = [(3, 5), (4, 4), (7, 2), (5, 3), (1, 6), (2, 2), (9, 8)];
    let shape = |((c, b), (h, w))| (b, Shape::new(h, w, c));
    channels.into_iter().zip(batches).zip(sizes).map(shape)
}

/// Over every shape, alone and, where it is told, with a gradient that is added to another's.
fn of_every_shape(device: &Device, tolerance: f64) {
    const LEAKY: Activation = Activation::LeakyRelu(0.2);
    let layers: [(u64, Build); 13] = [
        (1, |g, x| g.batch_norm("bn", x)),
        (2, |g, x| g.relu("relu", x)),
        (3, |g, x| {
            let positive = g.relu("relu", x)?;
            g.add("sum", positive, x)
        }),
        (5, |g, x| g.global_avg_pool("pool", x)),
        (7, |g, x| g.dropout("drop", x, 0.0)),
        (7, |g, x| g.dropout("drop", x, 0.3)),
        (7, |g, x| g.dropout("drop", x, 0.9)),
        (30, |g, x| g.activation("f", x, LEAKY)),
        (31, |g, x| {
            let y = g.activation("f", x, LEAKY)?;
            g.add("sum", y, x)
        }),
        (30, |g, x| g.activation("f", x, Activation::Tanh)),
        (31, |g, x| {
            let y = g.activation("f", x, Activation::Tanh)?;
            g.add("sum", y, x)
        }),
        (32, |g, x| g.upsample("up", x)),
        (33, |g, x| {
            let [a, b] = ["a", "b"].map(|name| g.upsample(name, x));
            g.add("sum", a?, b?)
        }),
    ];
    for (seed, layer) in layers {
        for (batch, shape) in shapes() {
            compare(device, &one_layer(shape, layer), batch, seed, tolerance);
        }
    }
}

/// As many channels as hidden layers have, and more than a GPU's shared memory has room for, alone
/// and with all that a norm can have around it.
fn batch_norm_of_many_channels(device: &Device, tolerance: f64) {
    for channels in [2459, 4096, 4104, 64 * 150] {
        let graph = one_layer(Shape::new(1, 1, channels), |g, x| g.batch_norm("bn", x));
        compare(device, &graph, 16, 9, tolerance);
    }
    for (channels, relu, residual) in [(2459, true, true), (4104, true, false), (4104, true, true)]
    {
        let graph = one_layer(Shape::new(1, 1, 8), |g, x| {
            let spec = ConvSpec::square(channels, 1, 1, 0);
            let around = residual.then(|| g.conv("around", x, spec)).transpose()?;
            g.conv_norm("conv", "bn", x, spec, relu, around)
        });
        compare(device, &graph, 32, 10, 2.0 * tolerance);
    }
}

fn max_pool(device: &Device, tolerance: f64) {
    let uneven = Window { kernel: [3, 2], stride: [1, 3], padding: [1, 0] };
    let windows = [
        Window::square(2, 2, 0),
        Window::square(3, 2, 1),
        Window::square(3, 1, 1),
        Window::square(5, 3, 2),
        uneven,
    ];
    for (seed, window) in windows.into_iter().enumerate() {
        for channels in [1, 3, 16, 33] {
            let graph = one_layer(Shape::new(9, 7, channels), |g, x| g.max_pool("pool", x, window));
            compare(device, &graph, 2, seed as u64, tolerance);
        }
    }
}

/// Pictures of few different values, all negative: padding that counted as zero would win.
fn max_pool_gives_ties_to_the_first(device: &Device, tolerance: f64) {
    let graph =
        one_layer(Shape::new(8, 9, 5), |g, x| g.max_pool("pool", x, Window::square(3, 2, 1)));
    let noise = uniform(9, 3 * graph.nodes()[0].shape.len());
    let pixels: Vec<f32> = noise.iter().map(|u| (u * 1.5).round() - 3.0).collect();
    compare_on(device, &graph, &pixels, 4, tolerance);
}

fn linear(device: &Device, tolerance: f64) {
    for (batch, inputs, out, bias) in [
        (1, 1, 1, true),
        (2, 5, 3, false),
        (5, 16, 17, true),
        (3, 33, 128, true),
        (64, 128, 10, false),
        (7, 512, 65, true),
    ] {
        let graph = one_layer(Shape::new(1, 1, inputs), |g, x| g.linear("fc", x, out, bias));
        compare(device, &graph, batch, 6, tolerance);
    }
}

/// Steps beyond the generator's 2^20 wrap round rather than overflow.
fn dropout_of_a_late_step(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(2, 3, 5), |g, x| g.dropout("drop", x, 0.5));
    compare(device, &graph, 3, (1 << 20) + 3, tolerance);
}

/// About the right share is dropped, the same one for the same seed, pass, layer and step, and
/// another one for any other.
fn dropout_draws_other_masks(device: &Device, _: f64) {
    let (shape, p) = (Shape::new(4, 4, 64), 0.25);
    let one = one_layer(shape, |g, x| g.dropout("drop", x, p));
    // Nothing is left out by the first of two.
    let second = one_layer(shape, |g, x| {
        let x = g.dropout("none", x, 0.0)?;
        g.dropout("drop", x, p)
    });
    let options = NetworkOptions::new(4).with_passes(2);
    let mut nets = [&one, &second].map(|g| device.network(g, &options).unwrap());
    let mut stream = device.stream().unwrap();
    let ones = device.upload(&vec![1.0; 4 * shape.len()]).unwrap();
    let mut dropped = |key: DropoutKey, step: u64| -> Vec<bool> {
        let net = &mut nets[key.layer - 1];
        net.initialise(key.seed).unwrap();
        stream.set_step(step, 0.0).unwrap();
        net.forward(&mut stream, key.pass, Input::rows(&ones)).unwrap();
        let values = device.download(net.output()).unwrap();
        let part = values[key.pass * ones.len()..][..ones.len()].iter();
        part.map(|v| *v == 0.0).collect()
    };
    let key = DropoutKey { seed: 3 << 33 | 7, pass: 0, layer: 1 };
    let seeds = [8, 7, 3 << 33].map(|seed| DropoutKey { seed, ..key });
    let pass = DropoutKey { pass: 1, ..key };
    let layer = DropoutKey { layer: 2, ..key };
    let mut met = vec![];
    for (key, step) in [key, pass, layer].into_iter().chain(seeds).zip([0; 6]).chain([(key, 1)]) {
        let mask = dropped(key, step);
        let share = mask.iter().filter(|d| **d).count() as f64 / mask.len() as f64;
        assert!((share - 0.25).abs() < 0.03, "{key:?}, step {step}: {share}");
        assert!(mask == dropped(key, step), "{key:?}, step {step}");
        let expected = dropout_mask(key, step, p, mask.len());
        let expected: Vec<bool> = expected.iter().map(|m| *m == 0.0).collect();
        assert!(mask == expected, "{key:?}, step {step}");
        assert!(!met.contains(&mask), "{key:?}, step {step}: as another's");
        met.push(mask);
    }
}

fn l2_normalise(device: &Device, tolerance: f64) {
    for (batch, channels) in [(1, 1), (2, 3), (5, 16), (2, 17), (3, 128), (4, 515)] {
        let graph = one_layer(Shape::new(1, 1, channels), |g, x| g.l2_normalise("unit", x));
        compare(device, &graph, batch, 8, tolerance);
    }
}

/// A vector of zeros stays zero; it must not become NaN and spoil the batch.
fn l2_normalise_of_zero(device: &Device, _: f64) {
    let graph = one_layer(Shape::new(1, 1, 8), |g, x| g.l2_normalise("unit", x));
    let mut net = Driven::new(device, &graph, &NetworkOptions::new(2));
    let mut pixels = vec![0.0; 16];
    pixels[8] = 3.0;
    net.train_forward(&pixels, 0).unwrap();
    let mut expected = vec![0.0; 16];
    expected[8] = 1.0;
    assert_eq!(net.output(), expected);
}

/// Slices, pads, both at once, and nothing at all; with a gradient that is added to another's.
fn channels(device: &Device, tolerance: f64) {
    for (channels, first, out) in [(1, 0, 1), (3, 1, 2), (2, -1, 5), (8, 3, 8), (17, -4, 9)] {
        let graph =
            one_layer(Shape::new(3, 5, channels), |g, x| g.channels("channels", x, first, out));
        compare(device, &graph, 3, 20, tolerance);
        let graph = one_layer(Shape::new(3, 5, channels), |g, x| {
            let moved = g.channels("moved", x, first, channels)?;
            g.add("sum", moved, x)
        });
        compare(device, &graph, 2, 21, tolerance);
    }
}

fn concat(device: &Device, tolerance: f64) {
    for (shape, out) in [(Shape::new(4, 3, 3), 5), (Shape::new(1, 1, 8), 16)] {
        let graph = one_layer(shape, |g, x| {
            let other = g.conv("conv", x, ConvSpec::square(out, 1, 1, 0))?;
            g.concat("both", x, other)
        });
        assert_eq!(graph.shape(graph.output_node()).channels, shape.channels + out);
        compare(device, &graph, 3, 22, tolerance);
    }
}

/// Dark, bright and cut-off values, alone and behind a layer.
fn lab(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(5, 4, 3), |g, x| g.lab("lab", x));
    compare(device, &graph, 3, 23, tolerance);
    let noise = uniform(24, 60 * 3);
    let dark: Vec<f32> = noise.iter().map(|u| 0.1 * u).collect();
    compare_on(device, &graph, &dark, 25, tolerance);
    let graph = one_layer(Shape::new(3, 3, 3), |g, x| {
        let lab = g.lab("lab", x)?;
        g.add("sum", lab, x)
    });
    compare(device, &graph, 2, 26, tolerance);
}

#[test]
fn a_leak_that_is_none_is_refused() {
    let mut g = anchorhood_engine::Graph::new();
    let x = g.input(2, 2, 4);
    for leak in [0.0, 1.0, -0.1, f32::NAN] {
        let refused = g.activation("f", x, Activation::LeakyRelu(leak));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("not between 0 and 1"), "{refused}");
    }
}

#[test]
fn channels_that_are_not_there_and_colours_that_are_none_are_refused() {
    let mut g = anchorhood_engine::Graph::new();
    let x = g.input(2, 2, 4);
    for (first, out) in [(4, 1), (-2, 2), (0, 0)] {
        let refused = g.channels("c", x, first, out).unwrap_err().to_string();
        assert!(refused.starts_with("c: expected channels"), "{refused}");
    }
    let refused = g.lab("lab", x).unwrap_err().to_string();
    assert!(refused.contains("red, green and blue"), "{refused}");
}
