//! The same for each of many, as many at a time as there are threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// What `make` makes of 0, 1, … `count` - 1, in this order. `progress` is told how many are done.
pub fn each<T: Send>(
    count: usize,
    progress: &(dyn Fn(usize) + Sync),
    make: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let done = AtomicUsize::new(0);
    let one = |i| {
        let made = make(i);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        made
    };
    (0..count).into_par_iter().map(one).collect()
}
