//! The augmentation as a CUDA kernel: its source, and the words that tell it what to do.
//!
//! `augment.cu` draws the same bits as [`AugmentParams::draw`](super::AugmentParams::draw) and
//! computes the same bits as [`apply`](super::apply). It is launched once for each view, with one
//! block of [`THREADS`] threads per picture of the batch, no dynamic shared memory, and seven
//! arguments: the view's number, a u32 by value, and pointers into device memory:
//!
//! | argument | what |
//! |---|---|
//! | words | [`AugmentKernel::words`] of the view's settings, uploaded once |
//! | pictures | bytes of the data set (N×h×w×3, or N slots) or, with a ring, of some batches |
//! | indices | u32: which item each block makes |
//! | current | two u64: the step in the epoch (read only with a ring), the epoch |
//! | view | the view's number, from 0 |
//! | out | batch×h×w×channels, f32 or bf16 |
//! | chosen | null, or an [`AugmentParams`](super::AugmentParams) per picture, written for tests |
//!
//! Block b augments item `indices[b]` with [`view_draws`](super::view_draws) of that item, epoch
//! and view.

use super::params::log;
use super::{Augmentation, blur};

/// The kernel in CUDA C++; it includes nothing.
pub const SOURCE: &str = include_str!("augment.cu");
/// The kernel's name in [`SOURCE`].
pub const NAME: &str = "augment";
/// Threads of a block.
pub const THREADS: u32 = 512;
/// How many words the kernel reads.
pub const WORDS: usize = 32;

/// What does not change during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AugmentKernel {
    /// How strongly pictures are changed, in this view.
    pub how: Augmentation,
    /// Rows of a picture.
    pub height: u32,
    /// Columns of a picture.
    pub width: u32,
    /// Channels of the output, at least 3; those beyond are zero.
    pub channels: u32,
    /// Whether the output is bf16; f32 otherwise.
    pub bf16: bool,
    /// 0 where `pictures` is the whole data set. Else so many batches take turns in it, each in its
    /// order: that of step s is at place s modulo this.
    pub ring: u32,
    /// 0 where items are pictures of that height and width. Else bytes of a slot, which begins with
    /// the rows and columns of what crops are cut from, u32 each.
    pub slot: u32,
    /// The run's seed.
    pub seed: u64,
    /// Subtracted from each channel.
    pub mean: [f32; 3],
    /// Divides each channel.
    pub std: [f32; 3],
}

impl AugmentKernel {
    /// The kernel's first argument, in the order of its `enum Word`.
    pub fn words(&self) -> [u32; WORDS] {
        let how = &self.how;
        let whole = [
            self.height,
            self.width,
            self.channels,
            u32::from(self.bf16),
            self.ring,
            self.seed as u32,
            (self.seed >> 32) as u32,
            blur::radius(self.height as usize, self.width as usize) as u32,
            self.slot,
        ];
        let real = [
            how.crop_scale.0,
            how.crop_scale.1,
            how.crop_ratio.0,
            how.crop_ratio.1,
            // As the CPU computes them, so that no library of the GPU's has a say.
            log(how.crop_ratio.0),
            log(how.crop_ratio.1),
            how.brightness,
            how.contrast,
            how.saturation,
            how.hue,
            how.grey,
            how.flip,
            how.jitter,
            how.blur,
            how.blur_sigma.0,
            how.blur_sigma.1,
            how.solarise,
        ];
        let real = real.into_iter().chain(self.mean).chain(self.std);
        let mut words = whole.into_iter().chain(real.map(f32::to_bits));
        std::array::from_fn(|_| words.next().expect("as many words as that"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel names its words in an enum; they must be as many as are written, and in this
    /// order.
    #[test]
    fn words_are_those_the_kernel_reads() {
        let names = SOURCE.split("enum Word {").nth(1).unwrap();
        let names = names.split('}').next().unwrap().split(',').map(str::trim);
        let names: Vec<&str> = names.collect();
        let kernel = AugmentKernel {
            how: Augmentation { jitter: 0.8, solarise: 0.2, flip: 0.25, ..Augmentation::default() },
            height: 70,
            width: 90,
            channels: 4,
            bf16: true,
            ring: 0,
            slot: 20,
            seed: 7 << 32 | 9,
            mean: [0.5, 0.6, 0.7],
            std: [0.1, 0.2, 0.3],
        };
        let words = kernel.words();
        let place = |name: &str| names.iter().position(|n| *n == name).unwrap();
        let real = |name: &str| f32::from_bits(words[place(name)]);
        assert_eq!(words[place("WIDTH")], 90);
        assert_eq!(words[place("BLUR_RADIUS")], 3);
        assert_eq!(words[place("BF16")], 1);
        assert_eq!(words[place("SLOT")], 20);
        assert_eq!((words[place("SEED_LOW")], words[place("SEED_HIGH")]), (9, 7));
        assert_eq!(real("SCALE_LOW"), 0.2);
        assert_eq!(real("RATIO_LOW"), 0.75);
        assert_eq!(real("LOG_RATIO_LOW"), (0.75_f64).ln() as f32);
        assert_eq!(real("HUE"), 0.4);
        assert_eq!(real("FLIP"), 0.25);
        assert_eq!(real("JITTER"), 0.8);
        assert_eq!((real("SIGMA_LOW"), real("SIGMA_HIGH")), (0.1, 2.0));
        assert_eq!(real("SOLARISE"), 0.2);
        let mean = place("MEAN");
        assert_eq!(names[mean + 1], "STD = MEAN + 3");
        assert_eq!(f32::from_bits(words[mean + 2]), 0.7);
        assert_eq!(f32::from_bits(words[mean + 3]), 0.1);
        assert_eq!(mean + 6, WORDS);
    }

    #[test]
    fn constants_are_those_of_the_kernel() {
        assert!(SOURCE.contains(&format!("#define THREADS {THREADS}\n")));
        assert!(SOURCE.contains(&format!("__launch_bounds__(THREADS)\n    {NAME}(")));
        let stream = anchorhood_storage::random::Stream::Augment as u32;
        assert!(SOURCE.contains(&format!("#define STREAM_AUGMENT {stream}\n")));
        let (blocks, radius) = (crate::augment::VIEW_BLOCKS, blur::MOST_RADIUS);
        assert!(SOURCE.contains(&format!("#define VIEW_BLOCKS {blocks}\n")));
        assert!(SOURCE.contains(&format!("#define MOST_RADIUS {radius}\n")));
    }
}
