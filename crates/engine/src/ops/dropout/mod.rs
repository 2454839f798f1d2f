//! Zeroes each value with a probability in training, and scales the rest.

use anchorhood_storage::random::{Draws, Stream, unit};
use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, Unary};
use crate::cpu::elementwise::TASK;
use crate::cuda::{Pointer, eights};
use crate::{Error, Graph, NodeId, Op, Result};

/// A dropout layer in a pass of a network. A mask's numbers depend on this, the step, and their
/// place among the values of all processes: other networks of a run are initialised by other seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropoutKey {
    /// The seed that the network was initialised by.
    pub seed: u64,
    /// The pass.
    pub pass: usize,
    /// The layer's index.
    pub layer: usize,
}

impl DropoutKey {
    /// Which block of a place's random words the layer draws in the pass.
    pub fn block(&self) -> u32 {
        ((self.pass as u32) << 16) + self.layer as u32
    }
}

/// Dropout, with this probability.
pub(crate) struct Dropout(pub(super) f32);

impl Unary for Dropout {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        match at.draw {
            Some((key, step)) => {
                let mask = dropout_mask(key, step, self.0, x.len());
                x.iter().zip(mask).map(|(x, m)| x * m).collect()
            }
            None => x.to_vec(),
        }
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        self.naive(at, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        match at.draw {
            Some(draw) => self.on_cpu(draw, x, false, y),
            None => y.copy_from_slice(x),
        }
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        if let Some(draw) = at.draw {
            self.on_cpu(draw, dy, add, dx);
        }
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        match at.draw {
            Some(draw) => self.on_gpu(at, draw, x, false, y),
            None => at.kernels.finish(x, 0, 0, false, at.output.channels, at.len, y),
        }
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        match at.draw {
            Some(draw) => self.on_gpu(at, draw, of[2], add, dx),
            None => Ok(()),
        }
    }
}

impl Dropout {
    /// y (+)= x where kept, scaled by 1/(1 − p), and zero elsewhere, but for what is not finite:
    /// that is NaN. The mask is drawn from (key, step, place), so the backward pass draws it again
    /// instead of storing it.
    ///
    /// Tensors of `rank` other processes, as long as this one, come before it.
    fn on_cpu(
        &self,
        (key, step, rank): (DropoutKey, u64, usize),
        x: &[f32],
        accumulate: bool,
        y: &mut [f32],
    ) {
        let p = self.0;
        let before = rank * y.len().div_ceil(4);
        let scale = 1.0 / (1.0 - p);
        let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK)).enumerate();
        tasks.for_each(|(task, (y, x))| {
            for (i, (y, x)) in y.chunks_mut(4).zip(x.chunks(4)).enumerate() {
                let block = (before + task * TASK / 4 + i) as u64;
                let draws = Draws::new(key.seed, Stream::Dropout, step % (1 << 20), block);
                let words = draws.block(key.block());
                for ((y, x), word) in y.iter_mut().zip(x).zip(words) {
                    let value = if unit(word) < p { x * 0.0 + 0.0 } else { x * scale };
                    *y = if accumulate { *y + value } else { value };
                }
            }
        });
    }

    /// The same; `step` is a place that holds the step.
    fn on_gpu(
        &self,
        at: &CudaAt,
        (key, step, rank): (DropoutKey, Pointer, usize),
        x: Pointer,
        accumulate: bool,
        y: Pointer,
    ) -> Result<()> {
        let (add, n) = (i32::from(accumulate), at.len as u64);
        let before = (rank * at.len.div_ceil(4)) as u64;
        let arguments = (x, key.seed, key.block(), step, before, self.0, add, n, y);
        at.launch(|k| &k.dropout, eights(at.len)?, arguments)
    }
}

/// What dropout multiplies each of `len` values with in training: 0 with probability `p`, else 1/(1
/// − p).
///
/// Value e of the key's layer in `step` is dropped when its random number is below `p`. The number
/// depends on nothing but these three, so forward and backward passes, any number of threads and
/// any device agree on it.
pub fn dropout_mask(key: DropoutKey, step: u64, p: f32, len: usize) -> Vec<f64> {
    let epoch = step % (1 << 20);
    let factor = |e: usize| {
        let draws = Draws::new(key.seed, Stream::Dropout, epoch, (e / 4) as u64);
        let words = draws.block(((key.pass << 16) + key.layer) as u32);
        if unit(words[e % 4]) < p { 0.0 } else { 1.0 / (1.0 - f64::from(p)) }
    };
    (0..len).map(factor).collect()
}

/// The last one's step is beyond the generator's 2^20, where steps wrap round rather than overflow.
pub(super) fn cases() -> Vec<Case> {
    let none = Case::over_shapes(7, |g, x| g.dropout("drop", x, 0.0));
    let some = Case::over_shapes(7, |g, x| g.dropout("drop", x, 0.3));
    let most = Case::over_shapes(7, |g, x| g.dropout("drop", x, 0.9));
    let late = Case::new((1 << 20) + 3, 3, [2, 3, 5], |g, x| g.dropout("drop", x, 0.5));
    none.chain(some).chain(most).chain([late]).collect()
}

impl Graph {
    /// Dropout.
    pub fn dropout(&mut self, name: &str, x: NodeId, p: f32) -> Result<NodeId> {
        Error::refuse(!(0.0..1.0).contains(&p), || {
            format!("{name}: a dropout of {p} is not in 0..1")
        })?;
        self.push(name, Op::Dropout(p), vec![x], self.shape(x))
    }
}
