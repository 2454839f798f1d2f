//! The values of one component of a picture that is read small.

use super::markers::{Component, Frame};
use super::means::Waves;
use super::shrunk::Shrink;

/// The values of a component.
pub(super) struct Plane {
    pub component: Component,
    /// Values a side of what becomes of a block: 1, 2, 4 or 8.
    pub side: usize,
    /// Values in a row, with those of blocks that reach over the edge.
    pub stride: usize,
    pub values: Vec<u8>,
    /// A progressive file's first coefficients so far, block by block.
    pub first: Vec<i32>,
    /// Whether a scan had it.
    pub seen: bool,
}

/// Zero of a component, and a half for rounding.
const MIDDLE: f32 = 128.5;

impl Plane {
    /// Without values yet.
    pub fn new(frame: &Frame, component: Component, shrink: Shrink) -> Self {
        let (across, down) = frame.most_sampled();
        let less = (across / component.across).min(down / component.down);
        let side = match (frame.progressive, less) {
            // There is only one value of a block.
            (true, _) => 1,
            (false, 1) => 8 / shrink.by(),
            (false, 2) => (16 / shrink.by()).min(8),
            (false, _) => (32 / shrink.by()).min(8),
        };
        let (wide, high) = frame.units();
        let (wide, high) = (wide * component.across, high * component.down);
        let first = match frame.progressive {
            true => vec![0; wide * high],
            false => vec![],
        };
        Plane {
            component,
            side,
            stride: wide * side,
            values: vec![0; wide * high * side * side],
            first,
            seen: false,
        }
    }

    /// The values of a block: from its first coefficient, and from what `add` adds.
    #[inline(always)]
    pub fn put<const A: usize>(
        &mut self,
        y: usize,
        x: usize,
        waves: &Waves<A>,
        first: i32,
        add: impl FnOnce(&mut [f32; A]) -> Option<()>,
    ) -> Option<()> {
        let mut means = [MIDDLE; A];
        waves.add(0, first, &mut means);
        add(&mut means)?;
        let side = const { A.isqrt() };
        for (row, means) in means.chunks_exact(side).enumerate() {
            let at = (y * side + row) * self.stride + x * side;
            for (value, mean) in self.values.get_mut(at..at + side)?.iter_mut().zip(means) {
                *value = *mean as u8;
            }
        }
        Some(())
    }
}
