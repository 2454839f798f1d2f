//! Each layer, alone, on every device against the naive loops: the cases that are beside it, and
//! what needs more than a case.

use anchorhood_engine::naive::{cases, dropout_mask};
use anchorhood_engine::{ConvSpec, Device, DropoutKey, Input, NetworkOptions, Shape, Window};

use crate::common::compare::{compare, compare_on};
use crate::common::graphs::one_layer;
use crate::common::{Driven, every_device, uniform};

every_device!(
    own_cases,
    batch_norm_of_many_channels,
    max_pool_gives_ties_to_the_first,
    dropout_draws_other_masks,
    l2_normalise_of_zero,
    dark_colours,
);

fn own_cases(device: &Device, tolerance: f64) {
    for case in cases() {
        compare(device, &case.graph, case.batch, case.seed, tolerance);
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

/// Pictures of few different values, all negative: padding that counted as zero would win.
fn max_pool_gives_ties_to_the_first(device: &Device, tolerance: f64) {
    let graph =
        one_layer(Shape::new(8, 9, 5), |g, x| g.max_pool("pool", x, Window::square(3, 2, 1)));
    let noise = uniform(9, 3 * graph.nodes()[0].shape.len());
    let pixels: Vec<f32> = noise.iter().map(|u| (u * 1.5).round() - 3.0).collect();
    compare_on(device, &graph, &pixels, 4, tolerance);
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

/// Values next to the line between the two branches of sRGB's curve.
fn dark_colours(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(5, 4, 3), |g, x| g.lab("lab", x));
    let dark: Vec<f32> = uniform(24, 60 * 3).iter().map(|u| 0.1 * u).collect();
    compare_on(device, &graph, &dark, 25, tolerance);
}
