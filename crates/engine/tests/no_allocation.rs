//! A training step allocates nothing. Alone in its binary, since it counts every allocation of the process.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_engine::{Cpu, Device, Network, NetworkOptions, Positives};
use common::graphs::residual;
use common::{training_step, uniform};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory it manages.
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
const WARM_UP: u64 = 3;
const STEPS: u64 = 300;

#[test]
fn a_training_step_allocates_nothing() {
    let before = COUNT.load(Ordering::SeqCst);
    std::hint::black_box(vec![0_u8; 10]);
    assert!(COUNT.load(Ordering::SeqCst) > before, "the counter counts");
    for threads in [1, 2] {
        let cpu = Cpu::new(threads);
        let per_step = cpu.within(|| allocations_per_step(&cpu));
        // A thread that first finds work late, on a busy machine, sets up its queue then, once: of three hundred steps
        // in a row some hundred must be clean.
        let clean = per_step
            .chunks(100)
            .any(|hundred| hundred.iter().all(|n| *n == 0));
        assert!(
            clean,
            "{threads} threads, allocations of each step: {per_step:?}"
        );
    }
}

/// Counts in a training loop as one is meant to be: inside the device. (From outside, every call hands rayon a task
/// through a queue that allocates a block for some sixty of them.)
fn allocations_per_step(cpu: &Cpu) -> Vec<usize> {
    let graph = residual(16, 16, 16, FEATURES).unwrap();
    let mut net = cpu.network(&graph, &NetworkOptions::new(BATCH)).unwrap();
    net.initialise(0);
    let pixels = uniform(1, BATCH * graph.nodes()[0].shape.len());
    let mut keys = cpu.upload(&uniform(2, 500 * FEATURES)).unwrap();
    let indices: Vec<u32> = (0..BATCH as u32).map(|i| 60 * i).collect();
    let mut positives = Positives::with_capacity(BATCH, 2 * BATCH);
    let mut losses = vec![0.0; BATCH];
    let mut per_step = Vec::with_capacity(STEPS as usize);
    for step in 0..WARM_UP + STEPS {
        let before = COUNT.load(Ordering::SeqCst);
        positives.clear();
        indices.iter().for_each(|i| positives.push([*i, i + 1]));
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
        if step >= WARM_UP {
            per_step.push(COUNT.load(Ordering::SeqCst) - before);
        }
    }
    assert!(losses.iter().all(|l| l.is_finite()));
    per_step
}
