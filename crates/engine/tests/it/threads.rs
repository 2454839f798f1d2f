//! The number of threads changes nothing, not even the last bit.

use anchorhood_engine::{
    Device, Loss, NetworkOptions, Positives, Result, SimdLevel, SoftmaxLoss, Stream, Tensors,
};

use crate::common::graphs::residual;
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
        let asked = stream.step(&mut source, &mut |s, b| training.step(s, b));
        asked.unwrap();
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
    let views =
        HostViews { batch: BATCH, views: 2, items: ITEMS, len: graph.nodes()[0].shape.len() };
    let (mut source, mut stream) = (views.on(device), device.stream().unwrap());
    let order: Vec<u32> = (0..ITEMS as u32).collect();
    let scalars = scalars();
    let begun = epoch(&order, 0, &scalars);
    stream.begin_epoch(&mut source, &begun).unwrap();
    let mut all = vec![];
    for _ in 0..STEPS {
        let asked = stream.step(&mut source, &mut |s, b| training.step(s, b));
        asked.unwrap();
        all.extend(bits(&device.download(&training.rows).unwrap()));
    }
    for which in [Tensors::Values, Tensors::Slot(0), Tensors::Gradients] {
        all.extend(bits(read_all(&training.net, which).iter().flatten()));
    }
    all
}

/// The losses over rows and what they write, and the means of other views.
fn losses_over_rows(device: &Device) -> Vec<u32> {
    const ROWS: usize = 66;
    const DIM: usize = 131;
    let up = |seed| device.upload(&uniform(seed, ROWS * DIM)).unwrap();
    let (a, b) = (up(3), up(4));
    let words: Vec<u32> = (0..ROWS as u32).collect();
    let words = device.upload_indices(&words).unwrap();
    let by_class = device.upload(&uniform(5, DIM)).unwrap();
    let mut all = vec![];
    let mut run = |work: &dyn Fn(&mut Stream, Loss) -> Result<()>| {
        let zeros = |len| device.zeros(len).unwrap();
        let (mut rows, mut gradient) = (zeros(ROWS), zeros(ROWS * DIM));
        let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 0.7 };
        work(&mut device.stream().unwrap(), loss).unwrap();
        for buffer in [rows, gradient] {
            all.extend(bits(&device.download(&buffer).unwrap()));
        }
    };
    run(&|s, loss| s.cross_entropy(&a, DIM, &words, &words, loss));
    run(&|s, loss| s.weighted_cross_entropy(&a, &words, &words, &by_class, loss));
    run(&|s, loss| s.contrastive(&a, 3, DIM, 0.1, loss));
    run(&|s, loss| s.cosine(&a, &b, DIM, loss));
    run(&|s, loss| s.mean_squared(&a, &b, DIM, loss));
    run(&|s, loss| s.mean_of_others(&a, 3, DIM, true, loss.gradient));
    all
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    for train in [with_a_memory, of_two_views, losses_over_rows] {
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
            let mut positives = Positives::default();
            (0..batch as u32).for_each(|i| positives.push([i]));
            let positives = device.positives(&positives, n).unwrap();
            let zeros = |len| device.zeros(len).unwrap();
            let (mut rows, mut gradient) = (zeros(batch), zeros(batch * dim));
            let mut stream = device.stream().unwrap();
            let mut ask = || {
                let of = SoftmaxLoss {
                    queries: &queries,
                    keys: &keys,
                    dim,
                    temperature: 0.1,
                    positives: &positives,
                    items: None,
                };
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
