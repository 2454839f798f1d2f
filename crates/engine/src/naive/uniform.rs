//! Numbers in [−1, 1) that a step draws: value e depends on nothing but the seed, the step and e,
//! so that any number of threads and any device agree on it.

use anchorhood_storage::random::{Draws, Stream, unit};

/// So many of a step's.
pub fn uniform(seed: u64, step: u64, len: usize) -> Vec<f64> {
    let value = |e: usize| {
        let draws = Draws::new(seed, Stream::Latent, step % (1 << 20), (e / 4) as u64);
        f64::from(unit(draws.block(0)[e % 4])) * 2.0 - 1.0
    };
    (0..len).map(value).collect()
}
