//! The number of threads changes nothing, not even the last bit.

use anchorhood_engine::{Device, Loss, NetworkOptions, SimdLevel, SoftmaxLoss, Tensors};

use crate::common::graphs::residual;
use crate::common::losses::itself;
use crate::common::training::{HostViews, TwoViews, WithMemory, epoch, row_batches};
use crate::common::{cpu, read_all, uniform};

const BATCH: usize = 12;
const FEATURES: usize = 128;
const ITEMS: usize = 300;
const STEPS: usize = 4;

fn bits<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<u32> {
    values.into_iter().map(|v| v.to_bits()).collect()
}

/// Schedules of the learning rate and of a momentum copy.
fn scalars() -> [Vec<f32>; 2] {
    [0.03, 0.9].map(|value| vec![value; ITEMS / BATCH])
}

/// Four steps of training with the loss, the memory's update and a momentum copy; every number that
/// comes out of them.
fn with_a_memory(device: &Device) -> Vec<u32> {
    let graph = residual(20, 18, 16, FEATURES).unwrap();
    let mut training = WithMemory::new(device, &graph, &NetworkOptions::new(BATCH), ITEMS);
    let one = graph.nodes()[0].shape.len();
    let mut source = row_batches(device, uniform(2, ITEMS * one), one, BATCH);
    let mut stream = device.stream().unwrap();
    let order: Vec<u32> = (0..ITEMS as u32).map(|i| i * 7 % ITEMS as u32).collect();
    let scalars = scalars();
    let begun = epoch(&order, 0, &scalars);
    stream.begin_epoch(&mut source, &begun).unwrap();
    let mut all = vec![];
    for _ in 0..STEPS {
        stream.step(&mut source, &mut |s, b| training.step(s, b)).unwrap();
        all.extend(bits(&device.download(&training.rows).unwrap()));
    }
    all.extend(bits(training.state().iter().flatten()));
    all.extend(bits(read_all(&training.copy, Tensors::Values).iter().flatten()));
    all
}

/// Four steps with two passes.
fn of_two_views(device: &Device) -> Vec<u32> {
    let graph = residual(20, 18, 16, FEATURES).unwrap();
    let mut training = TwoViews::new(device, &graph, NetworkOptions::new(BATCH));
    let views = HostViews {
        batch: BATCH,
        views: 2,
        items: ITEMS,
        len: graph.nodes()[0].shape.len(),
        ..HostViews::default()
    };
    let (mut source, mut stream) = (views.on(device), device.stream().unwrap());
    let order: Vec<u32> = (0..ITEMS as u32).collect();
    let scalars = scalars();
    let begun = epoch(&order, 0, &scalars);
    stream.begin_epoch(&mut source, &begun).unwrap();
    let mut all = vec![];
    for _ in 0..STEPS {
        stream.step(&mut source, &mut |s, b| training.step(s, b)).unwrap();
        all.extend(bits(&device.download(&training.rows).unwrap()));
    }
    for which in [Tensors::Values, Tensors::Slot(0), Tensors::Gradients] {
        all.extend(bits(read_all(&training.net, which).iter().flatten()));
    }
    all
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    for train in [with_a_memory, of_two_views] {
        for level in SimdLevel::available() {
            let one = train(&cpu(1, level));
            assert!(one.iter().all(|b| f32::from_bits(*b).is_finite()), "{level}");
            for threads in [2, 4] {
                let more = train(&cpu(threads, level));
                assert_eq!(one.len(), more.len());
                let different = one.iter().zip(&more).filter(|(a, b)| a != b).count();
                assert_eq!(different, 0, "{level}, {threads} threads, of {} values", one.len());
            }
        }
    }
}

/// One caller's work is done in the pool as a whole, the other's call by call. Neither may hold
/// what the pool's thread waits for while it waits for the pool's thread.
#[test]
fn two_callers_may_share_a_device() {
    let (batch, n, dim) = (64, 1024, 32);
    let device = Device::cpu(1);
    let (said, heard) = std::sync::mpsc::channel();
    for within in [true, false] {
        let (device, said) = (device.clone(), said.clone());
        std::thread::spawn(move || {
            let up = |seed, rows| device.hand_over(uniform(seed, rows * dim)).unwrap();
            let (queries, keys) = (up(1, batch), up(9, n));
            let positives = device.positives(&itself(batch), n).unwrap();
            let zeros = |len| device.zeros(len).unwrap();
            let (mut rows, mut gradient) = (zeros(batch), zeros(batch * dim));
            let (mut stream, temperature) = (device.stream().unwrap(), 0.1);
            let (queries, keys, positives) = (&queries, &keys, &positives);
            let of = SoftmaxLoss { queries, keys, dim, temperature, positives, items: None };
            let mut ask = || {
                let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 1.0 };
                stream.softmax_loss(&of, loss).unwrap();
            };
            match within {
                true => device.within(|| (0..500).for_each(|_| ask())),
                false => (0..500).for_each(|_| ask()),
            }
            said.send(device.download(&rows).unwrap()).unwrap();
        });
    }
    let wait = || heard.recv_timeout(std::time::Duration::from_secs(60));
    let first = wait().expect("nobody waits for ever");
    assert_eq!(first, wait().expect("nobody waits for ever"));
}
