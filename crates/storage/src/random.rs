//! Counter-based random numbers: the same draw for the same (seed, stream, position), on any thread
//! or device.
//!
//! The generator is Philox4x32-10 (Salmon et al., SC 2011): a keyed bijection of a 128-bit counter.
//! There is no state to pass along, so draws do not depend on thread count or on what was drawn
//! before, and resuming a run is exact.
//!
//! Kept by hand: it is a few lines, of which a GPU's kernel must have the same bits.

/// What a number is drawn for. Streams never overlap, whatever their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// Initial weights of a network.
    Weights = 0,
    /// The memory bank before training.
    Memory = 1,
    /// The order of the pictures in an epoch.
    Order = 2,
    /// Augmentation of one picture in one epoch.
    Augment = 3,
    /// Dropout masks.
    Dropout = 4,
    /// Pictures of the `shapes` data set.
    Shapes = 5,
    /// Which pictures are held out for evaluation.
    Split = 6,
    /// Anything in a test.
    Test = 7,
    /// Where clusters begin, and by which queries a search is tried.
    Search = 8,
    /// Which pictures features are judged on without labels, and how their copies are changed.
    Copies = 9,
    /// Points that features are to go to, and who changes them with whom.
    Targets = 10,
    /// Which rows of the memory stand for all in a step's loss.
    LossRows = 16,
    /// Which puzzle a picture sets, and where its tiles are cut.
    Puzzle = 17,
    /// What pictures are made from.
    Latent = 18,
}

/// Philox4x32-10: four random words for a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = 0xD251_1F53_u64 * u64::from(counter[0]);
        let b = 0xCD9E_8D57_u64 * u64::from(counter[2]);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// Maps a word to [0, 1) with 24 bits, exactly representable as f32.
pub fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The random words of one thing (an image in an epoch, a parameter tensor): blocks of four, by
/// number.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: [u32; 2],
    /// That of the first block.
    counter: [u32; 4],
}

impl Draws {
    /// Draws for `item` (at most 2^40) of `stream` in `epoch` (at most 2^20) under `seed`.
    pub fn new(seed: u64, stream: Stream, epoch: u64, item: u64) -> Self {
        debug_assert!(epoch < 1 << 20 && item < 1 << 40);
        Draws {
            key: [seed as u32, (seed >> 32) as u32],
            counter: [
                0,
                item as u32,
                (item >> 32) as u32 | (epoch as u32) << 8,
                (stream as u32) << 8 | (epoch >> 24) as u32,
            ],
        }
    }

    /// The same words without the first `blocks` blocks.
    pub fn skip(mut self, blocks: u32) -> Self {
        self.counter[0] = self.counter[0].wrapping_add(blocks);
        self
    }

    /// Four random words.
    pub fn block(&self, number: u32) -> [u32; 4] {
        let [first, a, b, c] = self.counter;
        philox([first.wrapping_add(number), a, b, c], self.key)
    }

    /// Four numbers in [0, 1).
    pub fn units(&self, number: u32) -> [f32; 4] {
        self.block(number).map(unit)
    }

    /// The `index`-th word of the sequence of blocks.
    pub fn word(&self, index: u64) -> u32 {
        self.block((index / 4) as u32)[(index % 4) as usize]
    }

    /// Fills `out` with numbers uniform in [-limit, limit).
    pub fn fill_symmetric(&self, out: &mut [f32], limit: f32) {
        for (number, chunk) in out.chunks_mut(4).enumerate() {
            for (value, unit) in chunk.iter_mut().zip(self.units(number as u32)) {
                *value = (unit * 2.0 - 1.0) * limit;
            }
        }
    }

    /// A permutation of 0..n (Fisher–Yates; words multiplied, not divided, into range).
    pub fn permutation(&self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        let mut block = [0; 4];
        for i in (1..n).rev() {
            if i == n - 1 || i % 4 == 3 {
                block = self.block((i / 4) as u32);
            }
            let j = (u64::from(block[i % 4]) * (i as u64 + 1)) >> 32;
            order.swap(i, j as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers from Random123's kat_vectors (philox4x32-10).
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]
        );
        assert_eq!(
            philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn things_do_not_share_draws() {
        let mut seen = std::collections::HashSet::new();
        for stream in [Stream::Weights, Stream::Augment] {
            for epoch in [0, 1, 255, 256, 70_000] {
                for item in [0, 1, 255, 256, 1 << 33] {
                    assert!(seen.insert(Draws::new(1, stream, epoch, item).block(0)));
                }
            }
        }
    }

    #[test]
    fn skipping_goes_on_with_later_blocks() {
        let draws = Draws::new(1, Stream::Test, 2, 3);
        assert_eq!(draws.skip(5).block(2), draws.block(7));
        assert_eq!(draws.skip(5).skip(1).word(4), draws.word(28));
    }

    #[test]
    fn permutation_is_one() {
        let mut p = Draws::new(3, Stream::Order, 0, 0).permutation(1000);
        assert_ne!(p, (0..1000).collect::<Vec<u32>>());
        p.sort_unstable();
        assert_eq!(p, (0..1000).collect::<Vec<u32>>());
    }

    /// Runs that were stopped must find the same order again, in any later version.
    #[test]
    fn permutation_stays_what_it_was() {
        let p = Draws::new(3, Stream::Order, 0, 0).permutation(10);
        assert_eq!(p, [9, 4, 7, 8, 1, 0, 6, 2, 5, 3]);
    }

    #[test]
    fn units_fill_their_range() {
        let d = Draws::new(0, Stream::Test, 0, 0);
        let all: Vec<f32> = (0..1000).flat_map(|i| d.units(i)).collect();
        assert!(all.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = all.iter().sum::<f32>() / all.len() as f32;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
