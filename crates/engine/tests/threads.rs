//! The number of threads changes nothing, not even the last bit.

mod common;

use anchorhood_engine::{Cpu, Device, Network, NetworkOptions, Positives, SimdLevel, Tensors};
use common::graphs::residual;
use common::{training_step, uniform};

const BATCH: usize = 12;
const FEATURES: usize = 128;
const KEYS: usize = 300;

/// Four steps of training with the loss and the memory's update; every number that comes out of them, as bits.
fn train(cpu: &Cpu) -> Vec<u32> {
    let graph = residual(20, 18, 16, FEATURES).unwrap();
    let mut net = cpu.network(&graph, &NetworkOptions::new(BATCH)).unwrap();
    net.initialise(3);
    let mut keys = cpu.upload(&uniform(1, KEYS * FEATURES)).unwrap();
    let mut bits = vec![];
    let mut losses = vec![0.0; BATCH];
    for step in 0..4 {
        let indices: Vec<u32> = (0..BATCH as u32).map(|i| i * 7 + step as u32).collect();
        let mut positives = Positives::with_capacity(BATCH, 2 * BATCH);
        indices.iter().for_each(|i| positives.push([*i, i + 100]));
        let pixels = uniform(10 + step, BATCH * graph.nodes()[0].shape.len());
        training_step(
            cpu,
            &mut net,
            &mut keys,
            &pixels,
            &indices,
            &positives,
            step,
            &mut losses,
        )
        .unwrap();
        bits.extend(losses.iter().map(|l| l.to_bits()));
    }
    for i in 0..graph.parameters().len() {
        let values = net.read(Tensors::Values, i).unwrap();
        bits.extend(values.iter().map(|v| v.to_bits()));
    }
    bits.extend(cpu.download(&keys).unwrap().iter().map(|v| v.to_bits()));
    bits
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    for level in SimdLevel::available() {
        let one = train(&Cpu::with_level(1, level).unwrap());
        assert!(
            one.iter().all(|b| f32::from_bits(*b).is_finite()),
            "{level}"
        );
        for threads in [2, 4] {
            let more = train(&Cpu::with_level(threads, level).unwrap());
            let different = one.iter().zip(&more).filter(|(a, b)| a != b).count();
            assert_eq!(
                different,
                0,
                "{level}, {threads} threads, of {} values",
                one.len()
            );
        }
    }
}
