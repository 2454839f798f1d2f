//! Block after block of a scan: its coefficients are read, and become values of a plane.

use super::huffman::{Bits, Huffman, Skipper};
use super::means::Waves;
use super::plane::Plane;

/// What a scan has of one component.
pub(super) struct ScanPart<'a> {
    pub plane: usize,
    /// Codes of first coefficients; a scan that adds bits to them needs none.
    pub first: Option<&'a Huffman>,
    /// Codes of the others, where they are here.
    pub others: Option<&'a Huffman>,
    pub told: Told,
    /// The first coefficient of the block before.
    pub before: i32,
}

/// What is told of a block, and what becomes of it.
pub(super) enum Told {
    /// Bits of its first coefficient: which of them were told before, and which are now.
    First(Waves<1>, u8),
    /// All, of which the mean is kept.
    Mean(Waves<1>, Skipper),
    /// All, of which means of parts are kept.
    Means4(Box<Waves<4>>),
    Means16(Box<Waves<16>>),
    Means64(Box<Waves<64>>),
}

impl ScanPart<'_> {
    #[inline(always)]
    /// Reads the block at row `y` and column `x`. None where it makes no sense.
    pub fn block(&mut self, bits: &mut Bits, plane: &mut Plane, y: usize, x: usize) -> Option<()> {
        bits.refill();
        let before = &mut self.before;
        match &self.told {
            Told::First(waves, approximation) => {
                let (told, now) = (approximation >> 4, approximation & 15);
                let first = plane.first.get_mut(y * plane.stride + x)?;
                match told {
                    0 => *first = next_first(self.first?, bits, before)? << now,
                    _ => {
                        *first |= (bits.peek(1) as i32) << now;
                        bits.skip(1);
                    }
                }
                let first = *first;
                plane.put(y, x, waves, first, |_| Some(()))
            }
            Told::Mean(waves, skipper) => {
                let first = next_first(self.first?, bits, before)?;
                let others = self.others?;
                plane.put(y, x, waves, first, |_| skipper.skip_block(others, bits))
            }
            Told::Means4(waves) => {
                let first = next_first(self.first?, bits, before)?;
                let others = self.others?;
                plane.put(y, x, waves, first, |m| add_others(waves, others, bits, m))
            }
            Told::Means16(waves) => {
                let first = next_first(self.first?, bits, before)?;
                let others = self.others?;
                plane.put(y, x, waves, first, |m| add_others(waves, others, bits, m))
            }
            Told::Means64(waves) => {
                let first = next_first(self.first?, bits, before)?;
                let others = self.others?;
                plane.put(y, x, waves, first, |m| add_others(waves, others, bits, m))
            }
        }
    }
}

/// A block's first coefficient, which is told as its difference from the one before.
#[inline(always)]
fn next_first(codes: &Huffman, bits: &mut Bits, before: &mut i32) -> Option<i32> {
    let size = codes.symbol(bits).filter(|size| *size < 16)?;
    *before = before.wrapping_add(bits.value(size.into()));
    Some(*before)
}

#[inline(always)]
fn add_others<const A: usize>(
    waves: &Waves<A>,
    codes: &Huffman,
    bits: &mut Bits,
    means: &mut [f32; A],
) -> Option<()> {
    let mut k = 1;
    while k < 64 {
        bits.refill();
        let symbol = codes.symbol(bits)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        match (run, size) {
            (0..15, 0) => return Some(()),
            (_, 0) => k += 16,
            (run, size) => {
                k += run;
                (k < 64).then_some(())?;
                waves.add(k, bits.value(size), means);
                k += 1;
            }
        }
    }
    (k == 64).then_some(())
}
