//! What PyTorch computes, on every device. The numbers are made by tools/golden/ops.py.

use anchorhood_engine::{
    Activation, ConvSpec, Device, NetworkOptions, Optimiser, Role, Shape, Tensors, Window,
};
use safetensors::SafeTensors;

use crate::common::graphs::{Build, one_layer};
use crate::common::{Driven, assert_close, every_device};

const FILE: &[u8] = include_bytes!("../golden/ops.safetensors");

every_device!(layers, sgd);

/// A tensor of the file, with its dimensions.
fn golden(name: &str) -> (Vec<usize>, Vec<f32>) {
    let file = SafeTensors::deserialize(FILE).unwrap();
    let tensor = file.tensor(name).unwrap_or_else(|_| panic!("no {name}"));
    let value = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
    let values = tensor.data().chunks_exact(4).map(value).collect();
    (tensor.shape().to_vec(), values)
}

fn expected(name: &str) -> Vec<f64> {
    golden(name).1.into_iter().map(f64::from).collect()
}

/// Runs the graph that `layer` makes over the pictures of a case, and compares all the file has of
/// it.
fn check(device: &Device, tolerance: f64, case: &str, layer: Build) {
    let (shape, x) = golden(&format!("{case}/x"));
    let input = match shape[..] {
        [_, h, w, c] => Shape::new(h, w, c),
        [_, c] => Shape::new(1, 1, c),
        _ => panic!("{case}: {shape:?}"),
    };
    let graph = one_layer(input, layer);
    let options = NetworkOptions { input_gradient: true, ..NetworkOptions::new(shape[0]) };
    let mut net = Driven::new(device, &graph, &options);
    net.initialise(0).unwrap();
    for (i, p) in graph.parameters().iter().enumerate() {
        let (dims, values) = golden(&format!("{case}/param/{}", p.name));
        assert_eq!(dims, p.shape, "{case}: {}", p.name);
        net.write(Tensors::Values, i, &values).unwrap();
    }
    let same = |thing: &str, got: &[f32]| {
        let name = format!("{case}/{thing}");
        assert_close(&name, got, &expected(&name), tolerance);
    };
    net.train_forward(&x, 0).unwrap();
    same("y", &net.output());
    net.set_output_gradient(&golden(&format!("{case}/dy")).1);
    net.backward().unwrap();
    same("dx", &net.input_gradient().unwrap());
    for (i, p) in graph.parameters().iter().enumerate() {
        let (kind, which) = match p.role {
            Role::Weight => ("grad", Tensors::Gradients),
            Role::Statistic => ("after", Tensors::Values),
        };
        same(&format!("{kind}/{}", p.name), &net.read(which, i).unwrap());
    }
    let mut inferred = vec![0.0; net.output().len()];
    net.infer(&x, &mut inferred).unwrap();
    same("y_eval", &inferred);
}

const UNEVEN: ConvSpec = ConvSpec {
    out: 4,
    window: Window { kernel: [5, 2], stride: [1, 3], padding: [2, 1] },
    bias: true,
};

const LAYERS: [(&str, Build); 19] = [
    ("conv_1x1", |g, x| g.conv("conv", x, ConvSpec::square(7, 1, 1, 0))),
    ("conv_1x1_stride_2", |g, x| g.conv("conv", x, ConvSpec::square(6, 1, 2, 0))),
    ("conv_3x3", |g, x| g.conv("conv", x, ConvSpec::square(8, 3, 1, 1).with_bias())),
    ("conv_3x3_stride_2", |g, x| g.conv("conv", x, ConvSpec::square(5, 3, 2, 1))),
    ("conv_5x2_uneven", |g, x| g.conv("conv", x, UNEVEN)),
    ("conv_7x7_stride_2", |g, x| g.conv("conv", x, ConvSpec::square(4, 7, 2, 3))),
    ("conv_3x3_wide", |g, x| g.conv("conv", x, ConvSpec::square(16, 3, 1, 1))),
    ("conv_4x4_of_one_place", |g, x| g.conv("conv", x, ConvSpec::square(6, 4, 1, 3))),
    ("batch_norm", |g, x| g.batch_norm("bn", x)),
    ("fused", |g, x| g.conv_norm("conv", "bn", x, ConvSpec::square(6, 3, 2, 1), true, None)),
    ("fused_residual", |g, x| {
        g.conv_norm("conv", "bn", x, ConvSpec::square(4, 3, 1, 1), true, Some(x))
    }),
    ("max_pool", |g, x| g.max_pool("pool", x, Window::square(3, 2, 1))),
    ("global_average", |g, x| g.global_avg_pool("pool", x)),
    ("upsample", |g, x| g.upsample("up", x)),
    ("leaky_relu", |g, x| g.activation("f", x, Activation::LeakyRelu(0.2))),
    ("tanh", |g, x| g.activation("f", x, Activation::Tanh)),
    ("linear", |g, x| g.linear("fc", x, 6, true)),
    ("l2_normalise", |g, x| g.l2_normalise("unit", x)),
    ("lab", |g, x| g.lab("lab", x)),
];

fn layers(device: &Device, tolerance: f64) {
    LAYERS.iter().for_each(|(case, layer)| check(device, tolerance, case, *layer));
}

/// Five steps over given gradients.
fn sgd(device: &Device, tolerance: f64) {
    let graph =
        one_layer(Shape::new(1, 1, 4), |g, x| g.conv("conv", x, ConvSpec::square(3, 1, 1, 0)));
    for (case, nesterov) in [("sgd", false), ("sgd_nesterov", true)] {
        let options = NetworkOptions::new(1).with_optimiser(Optimiser::Sgd {
            momentum: 0.9,
            nesterov,
            decay: 0.01,
        });
        let mut net = Driven::new(device, &graph, &options);
        net.initialise(0).unwrap();
        net.write(Tensors::Values, 0, &golden(&format!("{case}/w")).1).unwrap();
        for step in 0..5 {
            let gradient = golden(&format!("{case}/g{step}")).1;
            net.write(Tensors::Gradients, 0, &gradient).unwrap();
            net.update(0.1).unwrap();
            for (name, which) in [("w", Tensors::Values), ("v", Tensors::Slot(0))] {
                let name = format!("{case}/{name}{step}");
                let got = net.read(which, 0).unwrap();
                assert_close(&name, &got, &expected(&name), tolerance);
            }
        }
    }
}
