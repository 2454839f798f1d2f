//! The same pass again gives the same bits: a device may keep what it learnt from the first, but
//! not its values.

use std::sync::Arc;

use anchorhood_engine::{Device, Epoch, Network, NetworkOptions, Result, Tensors};

use crate::common::graphs::residual;
use crate::common::training::gathered;
use crate::common::{Driven, every_device, read_all, uniform};

every_device!(
    repeated_passes,
    passes_see_new_pictures_and_weights,
    rows_on_the_device_are_pictures,
    many_inferences
);

const BATCH: usize = 4;
const PIXELS: usize = BATCH * 8 * 6 * 3;

/// Output and all gradients.
fn everything(net: &Driven) -> Vec<Vec<f32>> {
    let mut all = read_all(net, Tensors::Gradients);
    all.push(net.output());
    all
}

/// A network with its first weights, and the gradient of its output.
fn begun(device: &Device) -> Driven {
    let graph = residual(8, 6, 8, 5).unwrap();
    let mut net = Driven::new(device, &graph, &NetworkOptions::new(BATCH));
    net.initialise(4).unwrap();
    net.set_output_gradient(&uniform(2, BATCH * 5));
    net
}

fn repeated_passes(device: &Device, _: f64) {
    let mut net = begun(device);
    let pixels = uniform(1, PIXELS);
    let mut first = None;
    for pass in 0..5 {
        net.train_forward(&pixels, 0).unwrap();
        net.backward().unwrap();
        let now = everything(&net);
        assert_eq!(*first.get_or_insert(now.clone()), now, "pass {pass}");
    }
}

/// Rows of a matrix on the device, some of them twice, are what the host would have sent.
fn rows_on_the_device_are_pictures(device: &Device, _: f64) {
    let (mut net, mut direct) = (begun(device), begun(device));
    let all = uniform(1, 11 * PIXELS / BATCH);
    let rows = Arc::new(device.hand_over(all.clone()).unwrap());
    let mut source = device.row_batches(rows, PIXELS / BATCH, BATCH).unwrap();
    assert!(source.on_device());
    let mut stream = device.stream().unwrap();
    let mut begin = |order: &[u32]| {
        let epoch = Epoch { epoch: 0, order, first: 0, number: 3, scalars: &[] };
        stream.begin_epoch(&mut source, &epoch)
    };
    let said = begin(&[0, 1, 2, 11, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(said.unwrap_err().to_string(), "item 11 of 11 items");
    assert!(begin(&[0, 1]).is_err());
    let order = [10, 0, 3, 3, 1, 2, 7, 10, 0, 0, 0];
    begin(&order).unwrap();
    for (step, indices) in order.chunks_exact(BATCH).enumerate() {
        let pixels = gathered(&all, PIXELS / BATCH, indices);
        direct.train_forward(&pixels, 3 + step as u64).unwrap();
        direct.backward().unwrap();
        let asked: Result<()> = stream.step(&mut source, &mut |stream, batch| {
            net.forward(stream, 0, batch.view(0))?;
            Network::backward(&mut net, stream, 0)
        });
        asked.unwrap();
        assert_eq!(everything(&net), everything(&direct));
    }
    let over = stream.step(&mut source, &mut |_, _| Ok(()));
    assert!(over.is_err(), "a step beyond the end of its epoch");
}

/// Four steps by one network, and by a fresh one for each step that is given the weights of the
/// step before.
fn passes_see_new_pictures_and_weights(device: &Device, _: f64) {
    let mut net = begun(device);
    for step in 0..4 {
        let mut fresh = begun(device);
        for i in 0..net.graph().parameters().len() {
            let values = net.read(Tensors::Values, i).unwrap();
            fresh.write(Tensors::Values, i, &values).unwrap();
        }
        let pixels = uniform(10 + step, PIXELS);
        for net in [&mut net, &mut fresh] {
            net.train_forward(&pixels, step).unwrap();
            net.backward().unwrap();
        }
        let (one, other) = (everything(&net), everything(&fresh));
        assert_eq!(one, other, "step {step}");
        net.update(0.1).unwrap();
    }
}

fn many_inferences(device: &Device, _: f64) {
    let mut net = begun(device);
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
