//! The same pass again gives the same bits: a device may keep what it learnt from the first, but not its values.

mod common;

use anchorhood_engine::{Device, Network, NetworkOptions, Sgd, Tensors};
use common::graphs::residual;
use common::{every_device, output, set_output_gradient, uniform};

every_device!(
    repeated_passes,
    passes_see_new_pictures_and_weights,
    rows_on_the_device_are_pictures,
    many_inferences
);

const BATCH: usize = 4;
const PIXELS: usize = BATCH * 8 * 6 * 3;

/// Output and all gradients.
fn everything<D: Device>(device: &D, net: &mut D::Network) -> Vec<Vec<f32>> {
    let parameters = net.graph().parameters().len();
    let gradients = (0..parameters).map(|i| net.read(Tensors::Gradients, i).unwrap());
    let mut all: Vec<Vec<f32>> = gradients.collect();
    all.push(output(device, net));
    all
}

fn repeated_passes<D: Device>(device: &D, _: f64) {
    let graph = residual(8, 6, 8, 5).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(BATCH)).unwrap();
    net.initialise(4);
    let pixels = uniform(1, PIXELS);
    set_output_gradient(device, &mut net, &uniform(2, BATCH * 5));
    let mut first = None;
    for pass in 0..5 {
        net.train_forward(&pixels, 0).unwrap();
        net.backward().unwrap();
        let now = everything(device, &mut net);
        assert_eq!(*first.get_or_insert(now.clone()), now, "pass {pass}");
    }
}

/// Rows of a matrix on the device, some of them twice, are what the host would have sent.
fn rows_on_the_device_are_pictures<D: Device>(device: &D, _: f64) {
    let graph = residual(8, 6, 8, 5).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(BATCH)).unwrap();
    net.initialise(4);
    set_output_gradient(device, &mut net, &uniform(2, BATCH * 5));
    let all = uniform(1, 11 * PIXELS / BATCH);
    let rows = device.hand_over(all.clone()).unwrap();
    for indices in [[10, 0, 3, 3], [1, 2, 7, 10]] {
        let row = |i: &u32| &all[*i as usize * PIXELS / BATCH..][..PIXELS / BATCH];
        let pixels: Vec<f32> = indices.iter().flat_map(row).copied().collect();
        net.train_forward(&pixels, 3).unwrap();
        net.backward().unwrap();
        let expected = everything(device, &mut net);
        net.train_forward_rows(&rows, &indices, 3).unwrap();
        net.backward().unwrap();
        assert_eq!(everything(device, &mut net), expected);
    }
    let said = net.train_forward_rows(&rows, &[0, 1, 2, 11], 0);
    assert_eq!(said.unwrap_err().to_string(), "row 11 of 11 rows");
    assert!(net.train_forward_rows(&rows, &[0, 1], 0).is_err());
}

/// Four steps by one network, and by a fresh one for each step that is given the weights of the step before.
fn passes_see_new_pictures_and_weights<D: Device>(device: &D, _: f64) {
    let graph = residual(8, 6, 8, 5).unwrap();
    let options = NetworkOptions::new(BATCH);
    let gradient = uniform(3, BATCH * 5);
    let mut net = device.network(&graph, &options).unwrap();
    net.initialise(4);
    set_output_gradient(device, &mut net, &gradient);
    for step in 0..4 {
        let mut fresh = device.network(&graph, &options).unwrap();
        for i in 0..graph.parameters().len() {
            let values = net.read(Tensors::Values, i).unwrap();
            fresh.write(Tensors::Values, i, &values).unwrap();
        }
        set_output_gradient(device, &mut fresh, &gradient);
        let pixels = uniform(10 + step, PIXELS);
        for net in [&mut net, &mut fresh] {
            net.train_forward(&pixels, step).unwrap();
            net.backward().unwrap();
        }
        let (one, other) = (everything(device, &mut net), everything(device, &mut fresh));
        assert_eq!(one, other, "step {step}");
        net.update(&Sgd::new(0.1)).unwrap();
    }
}

fn many_inferences<D: Device>(device: &D, _: f64) {
    let graph = residual(8, 6, 8, 5).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(BATCH)).unwrap();
    net.initialise(4);
    let batches: Vec<Vec<f32>> = (0..2).map(|i| uniform(20 + i, PIXELS)).collect();
    let mut infer = |pixels: &[f32]| {
        let mut features = vec![0.0; BATCH * 5];
        net.infer(pixels, &mut features).unwrap();
        features
    };
    let first: Vec<Vec<f32>> = batches.iter().map(|b| infer(b)).collect();
    assert_ne!(first[0], first[1]);
    for _ in 0..3 {
        let again: Vec<Vec<f32>> = batches.iter().map(|b| infer(b)).collect();
        assert_eq!(first, again);
    }
}
