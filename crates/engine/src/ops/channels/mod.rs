//! Channels moved: channel c of a place of the output is channel c + first of the input where there
//! is one, else zero. The gradient of the input is the same of dy, moved back.

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, Unary};
use crate::cpu::elementwise::TASK;
use crate::cuda::{Pointer, ones};
use crate::{Error, Graph, NodeId, Op, Result, Shape};

/// Slices and pads.
pub(crate) struct Channels {
    /// The input's channel that is the first.
    pub(super) first: isize,
}

impl Unary for Channels {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive(x, at.input.channels, self.first, at.output.channels)
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive(dy, at.output.channels, -self.first, at.input.channels)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        on_cpu(x, [at.input.channels, at.output.channels], self.first, false, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        on_cpu(dy, [at.output.channels, at.input.channels], -self.first, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let turned = [at.input.channels, at.output.channels];
        on_gpu(at, x, turned, self.first, false, at.len, y)
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let ([_, _, dy], turned) = (of, [at.output.channels, at.input.channels]);
        on_gpu(at, dy, turned, -self.first, add, at.batch * at.input.len(), dx)
    }
}

/// Places have so many channels in x and in the result.
fn naive(x: &[f64], from: usize, first: isize, to: usize) -> Vec<f64> {
    let place = |x: &[f64]| {
        let channel = |c: usize| {
            let at = c.checked_add_signed(first);
            at.and_then(|at| x.get(at)).copied().unwrap_or(0.0)
        };
        (0..to).map(channel).collect::<Vec<f64>>()
    };
    x.chunks(from).flat_map(place).collect()
}

/// y (+)= x's channels; places have so many in x and in y.
fn on_cpu(x: &[f32], [from, to]: [usize; 2], first: isize, accumulate: bool, y: &mut [f32]) {
    let places = TASK.div_ceil(to);
    let tasks = y.par_chunks_mut(places * to).zip(x.par_chunks(places * from));
    // Those of y that x has.
    let begin = (-first).clamp(0, to as isize) as usize;
    let end = (from as isize - first).clamp(begin as isize, to as isize) as usize;
    let source = begin.saturating_add_signed(first);
    tasks.for_each(|(y, x)| {
        for (y, x) in y.chunks_exact_mut(to).zip(x.chunks_exact(from)) {
            let there = &x[source.min(from)..][..end - begin];
            match accumulate {
                true => (y[begin..end].iter_mut().zip(there)).for_each(|(y, x)| *y += x),
                false => {
                    y[..begin].fill(0.0);
                    y[begin..end].copy_from_slice(there);
                    y[end..].fill(0.0);
                }
            }
        }
    });
}

/// The same over `len` values of y.
fn on_gpu(
    at: &CudaAt,
    x: Pointer,
    [from, to]: [usize; 2],
    first: isize,
    accumulate: bool,
    len: usize,
    y: Pointer,
) -> Result<()> {
    let (add, n) = (i32::from(accumulate), len as u64);
    let arguments = (x, from as u32, first as i32, to as u32, add, n, y);
    at.launch(|k| &k.channels, ones(len)?, arguments)
}

/// Slices, pads, both at once, and nothing at all; with a gradient that is added to another's; and
/// side by side.
pub(super) fn cases() -> Vec<Case> {
    let moves = [(1, 0, 1), (3, 1, 2), (3, -2, 4), (2, -1, 5), (8, 3, 8), (17, -4, 9)];
    let mut all = vec![];
    for (channels, first, out) in moves {
        let moved = |g: &mut Graph, x| g.channels("moved", x, first, out);
        all.push(Case::new(20, 3, [3, 5, channels], moved));
        all.push(Case::new(21, 2, [3, 5, channels], |g, x| {
            let moved = g.channels("moved", x, first, channels)?;
            g.add("sum", moved, x)
        }));
    }
    for (shape, out) in [([4, 3, 3], 5), ([1, 1, 8], 16)] {
        all.push(Case::new(22, 3, shape, |g, x| {
            let other = g.conv("conv", x, crate::ConvSpec::square(out, 1, 1, 0))?;
            g.concat("both", x, other)
        }));
    }
    all
}

impl Graph {
    /// So many channels of a layer, from one of them on; zeros before and beyond those there are.
    pub fn channels(&mut self, name: &str, x: NodeId, first: isize, out: usize) -> Result<NodeId> {
        let input = self.shape(x);
        let there = -(out as isize) < first && first < input.channels as isize;
        if !there {
            let expected = format!("channels of which some are among {out} from {first} on");
            return Err(Error::shape(name, expected, input));
        }
        let shape = Shape::new(input.height, input.width, out);
        self.push(name, Op::Channels { first }, vec![x], shape)
    }

    /// The channels of two layers of as many places side by side: each one's moved to its place,
    /// and added.
    pub fn concat(&mut self, name: &str, a: NodeId, b: NodeId) -> Result<NodeId> {
        let [own, other] = [a, b].map(|x| self.shape(x).channels);
        let left = self.channels(&format!("{name}.0"), a, 0, own + other)?;
        let right = self.channels(&format!("{name}.1"), b, -(own as isize), own + other)?;
        self.add(name, left, right)
    }
}
