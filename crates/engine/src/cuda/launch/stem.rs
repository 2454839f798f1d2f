//! Launches of stem.cu: a network's first convolution, where cuDNN's ways are far from what the
//! chip can do.

use cudarc::driver::CudaFunction;

use super::{Kernels, shape};
use crate::cuda::cudnn::{Call, Direction, Problem};
use crate::cuda::{Cuda, Precision, allow_shared};
use crate::{Result, Window};

/// Channels out, taps, channels of a place.
const MATRIX: [usize; 3] = [64, 9, 8];

/// Channels that may be other than zero.
const USED: usize = 4;

/// Places of a tile, and tiles on their way at once.
const TILE: usize = 128;
const STAGES: usize = 3;

/// The widest picture whose tiles, with what their windows see around them, fit into shared memory:
/// smaller chips have 99 KB for a block.
const WIDEST: usize = 256;

/// The kernels, loaded.
pub(super) struct Stem {
    forward: CudaFunction,
    weight_gradient: CudaFunction,
    weight_sums: CudaFunction,
}

impl Stem {
    /// Nothing for other precisions.
    pub(super) fn load(cuda: &Cuda) -> Result<Option<Self>> {
        if cuda.precision() != Precision::Bf16 {
            return Ok(None);
        }
        let load = |name| cuda.function("stem", name);
        let weight_gradient = load("stem_weight_gradient")?;
        allow_shared(&weight_gradient, shared_bytes(WIDEST))?;
        Ok(Some(Stem {
            forward: load("stem_forward")?,
            weight_gradient,
            weight_sums: load("stem_weight_sums")?,
        }))
    }
}

/// The weight gradient's tiles, each with what is seen around it, and a place of zeros.
fn shared_bytes(width: usize) -> usize {
    let [out, _, channels] = MATRIX;
    let seen = TILE + 2 * (width + 1);
    STAGES * 2 * (TILE * out + seen * channels) + 2 * channels
}

impl Kernels {
    /// Whether a convolution can be computed in this direction.
    pub(in crate::cuda) fn stem_does(&self, p: &Problem, direction: Direction) -> bool {
        let [out, _, channels] = MATRIX;
        self.stem.is_some()
            && direction != Direction::InputGradient
            && p.used <= USED
            && [p.input.channels, p.output.channels] == [channels, out]
            && p.window == Window::square(3, 1, 1)
            && p.input.width <= WIDEST
            && (p.batch * p.input.pixels()).is_multiple_of(TILE)
    }

    /// Bytes of working memory.
    pub(in crate::cuda) fn stem_workspace(&self, direction: Direction) -> usize {
        match direction {
            Direction::WeightGradient => {
                self.multiprocessors * MATRIX.iter().product::<usize>() * 4
            }
            _ => 0,
        }
    }

    /// Computes what it does.
    pub(in crate::cuda) fn stem(
        &self,
        p: &Problem,
        direction: Direction,
        call: &Call,
    ) -> Result<()> {
        match direction {
            Direction::Forward => self.stem_forward(p, call),
            _ => self.stem_weight_gradient(p, call),
        }
    }

    fn stem_forward(&self, p: &Problem, call: &Call) -> Result<()> {
        let stem = self.stem.as_ref().expect("asked before");
        let (height, width) = (p.input.height as u32, p.input.width as u32);
        let tiles = (p.batch * p.input.pixels() / 16) as u32;
        // A warp goes from tile to tile with the weights it has read once.
        let blocks = (4 * self.multiprocessors as u32).min(tiles.div_ceil(4));
        let arguments = (call.first, call.second, height, width, tiles, call.result);
        self.launch(&stem.forward, shape([blocks, 1, 1], [128, 1], 0), arguments)
    }

    fn stem_weight_gradient(&self, p: &Problem, call: &Call) -> Result<()> {
        let stem = self.stem.as_ref().expect("asked before");
        let (height, width) = (p.input.height as u32, p.input.width as u32);
        let tiles = (p.batch * p.input.pixels() / TILE) as u32;
        let blocks = (self.multiprocessors as u32).min(tiles);
        let (x, dy, dw, partials) = (call.first, call.second, call.result, call.workspace);
        let on_tiles = shape([blocks, 1, 1], [256, 1], shared_bytes(p.input.width));
        let arguments = (x, dy, height, width, tiles, partials);
        self.launch(&stem.weight_gradient, on_tiles, arguments)?;
        let values = MATRIX.iter().product::<usize>() as u32;
        let on_values = shape([values / 32, 1, 1], [256, 1], 0);
        self.launch(&stem.weight_sums, on_values, (partials, blocks, dw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        let source = include_str!("../kernels/stem.cu");
        let [out, taps, _] = MATRIX;
        for (name, value) in [("OUT", out), ("TAPS", taps), ("TILE", TILE), ("STAGES", STAGES)] {
            assert!(source.contains(&format!("#define {name} {value}\n")), "{name}");
        }
        assert!(shared_bytes(WIDEST) <= 99 << 10);
    }
}
