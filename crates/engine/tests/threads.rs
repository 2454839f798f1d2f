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

/// One caller's work is done in the pool as a whole, the other's call by call. Neither may hold what the pool's thread waits
/// for while it waits for the pool's thread.
#[test]
fn two_callers_may_share_a_device() {
    let (batch, n, dim) = (64, 1024, 32);
    let device = Cpu::new(1);
    let (said, heard) = std::sync::mpsc::channel();
    for within in [true, false] {
        let (device, said) = (device.clone(), said.clone());
        std::thread::spawn(move || {
            let (queries, keys) = (uniform(1, batch * dim), uniform(9, n * dim));
            let mut positives = Positives::default();
            (0..batch as u32).for_each(|i| positives.push([i]));
            let (mut losses, mut gradient) = (vec![0.0; batch], vec![0.0; batch * dim]);
            let mut ask = || {
                let (l, g) = (&mut losses, &mut gradient);
                let asked = device.softmax_loss(&queries, &keys, dim, 0.1, &positives, l, g);
                asked.unwrap();
            };
            match within {
                true => device.within(|| (0..500).for_each(|_| ask())),
                false => (0..500).for_each(|_| ask()),
            }
            said.send(losses).unwrap();
        });
    }
    let wait = || heard.recv_timeout(std::time::Duration::from_secs(60));
    let first = wait().expect("nobody waits for ever");
    assert_eq!(first, wait().expect("nobody waits for ever"));
}
