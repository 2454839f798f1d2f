//! A training step allocates nothing. Alone in its binary, since it counts every allocation of the
//! process.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_engine::{Batch, Device, DeviceLoader, NetworkOptions, Result, Stream};
use common::graphs::residual;
use common::training::{HostViews, TwoViews, WithMemory, epoch, losses_of, row_batches};
use common::uniform;

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory it
// manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BATCH: usize = 8;
const FEATURES: usize = 32;
const ITEMS: usize = 496;
const WARM_UP: usize = 3;
const STEPS: usize = 300;

#[test]
fn a_training_step_allocates_nothing() {
    let before = COUNT.load(Ordering::SeqCst);
    std::hint::black_box(vec![0_u8; 10]);
    assert!(COUNT.load(Ordering::SeqCst) > before, "the counter counts");
    for threads in [1, 2] {
        let cpu = Device::cpu(threads);
        for steps in [steps_with_a_memory, steps_of_two_views] {
            let per_step = cpu.within(|| steps(&cpu));
            assert_eq!(per_step.len(), STEPS);
            // A thread that first finds work late, on a busy machine, sets up its queue then, once:
            // of three hundred steps in a row some hundred must be clean.
            let clean = per_step.chunks(100).any(|hundred| hundred.iter().all(|n| *n == 0));
            assert!(clean, "{threads} threads, allocations of each step: {per_step:?}");
        }
    }
}

/// The softmax over a memory, and a momentum copy.
fn steps_with_a_memory(device: &Device) -> Vec<usize> {
    let graph = residual(16, 16, 16, FEATURES).unwrap();
    let mut training = WithMemory::new(device, &graph, &NetworkOptions::new(BATCH), ITEMS);
    let one = graph.nodes()[0].shape.len();
    let source = row_batches(device, uniform(1, ITEMS * one), one, BATCH);
    let per_step = allocations_per_step(device, source, &mut |s, b| training.step(s, b));
    let losses = device.download(&training.rows).unwrap();
    assert!(losses.iter().all(|l| l.is_finite()));
    per_step
}

/// Two passes and the contrastive loss between them, over batches that a data loader prepares.
fn steps_of_two_views(device: &Device) -> Vec<usize> {
    let graph = residual(16, 16, 16, FEATURES).unwrap();
    let mut training = TwoViews::new(device, &graph, NetworkOptions::new(BATCH));
    let views = HostViews {
        batch: BATCH,
        views: 2,
        items: ITEMS,
        len: graph.nodes()[0].shape.len(),
        ..HostViews::default()
    };
    allocations_per_step(device, views.on(device), &mut |s, b| training.step(s, b))
}

/// Counts in a training loop as one is meant to be: inside the device. (From outside, every call
/// hands rayon a task through a queue that allocates a block for some sixty of them.)
fn allocations_per_step(
    device: &Device,
    mut source: DeviceLoader,
    work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
) -> Vec<usize> {
    let mut stream = device.stream().unwrap();
    let order: Vec<u32> = (0..ITEMS as u32).collect();
    let steps = ITEMS / BATCH;
    let scalars = [vec![0.03; steps], vec![0.9; steps]];
    let mut per_step = Vec::with_capacity(STEPS);
    for step in 0..WARM_UP + STEPS {
        if step % steps == 0 {
            let mut begun = epoch(&order, step as u64, &scalars);
            begun.epoch = (step / steps) as u64;
            stream.begin_epoch(&mut source, &begun).unwrap();
        }
        let before = COUNT.load(Ordering::SeqCst);
        stream.step(&mut source, work).unwrap();
        if step >= WARM_UP {
            per_step.push(COUNT.load(Ordering::SeqCst) - before);
        }
    }
    let losses = losses_of(&mut stream);
    assert_eq!(losses.len(), WARM_UP + STEPS);
    assert!(losses.iter().all(|l| l.is_finite()));
    per_step
}
