//! Numbers that a step draws; which, is said in [`crate::naive::uniform`].

use anchorhood_storage::random::{Draws, Stream};

/// Fills `to` with numbers in [−1, 1).
pub(super) fn uniform(seed: u64, step: u64, to: &mut [f32]) {
    for (block, to) in to.chunks_mut(4).enumerate() {
        let draws = Draws::new(seed, Stream::Latent, step % (1 << 20), block as u64);
        draws.fill_symmetric(to, 1.0);
    }
}
