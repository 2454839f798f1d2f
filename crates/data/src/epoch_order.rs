//! In which order does an epoch go through the pictures?
//!
//! By `Draws(seed, Order, epoch, 0).permutation(pictures)`, batch after batch; what does not fill a
//! last one is left out. Where several processes train together each keeps its own places of every
//! batch alone. While they are drawn all are in memory, four bytes each: a permutation by swaps has
//! no shorter way to some of its places.

use std::ops::Range;

use anchorhood_storage::random::{Draws, Stream};

/// The order of any epoch, or of some places of its batches.
#[derive(Clone, Debug)]
pub struct EpochOrder {
    /// Decides it.
    pub seed: u64,
    /// How many there are to go through.
    pub pictures: usize,
    /// Pictures in a batch.
    pub batch: usize,
    /// The places of each batch that are asked for.
    pub part: Range<usize>,
}

impl EpochOrder {
    /// The pictures in these places of an epoch's batches, batch after batch.
    pub fn of(&self, epoch: u64) -> Vec<u32> {
        let all = Draws::new(self.seed, Stream::Order, epoch, 0).permutation(self.pictures);
        if self.part.len() == self.batch {
            return all;
        }
        let batches = all.chunks_exact(self.batch.max(1));
        let own = batches.flat_map(|batch| &batch[self.part.clone()]);
        let mut order = Vec::with_capacity(self.pictures / self.batch.max(1) * self.part.len());
        order.extend(own);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_batches_are_those_of_the_whole_and_no_more_is_kept() {
        let part = |part| EpochOrder { seed: 3, pictures: 50, batch: 8, part };
        let whole = part(0..8).of(2);
        let parts = [part(0..3).of(2), part(3..8).of(2)];
        for (number, batch) in whole.chunks_exact(8).enumerate() {
            assert_eq!(parts[0][3 * number..][..3], batch[..3]);
            assert_eq!(parts[1][5 * number..][..5], batch[3..]);
        }
        assert_eq!(parts.each_ref().map(Vec::len), [18, 30]);
        assert_eq!(parts[0].capacity(), 18);
        assert_ne!(whole, part(0..8).of(3));
    }
}
