//! Each image's vector divided by its Euclidean norm, as PyTorch's `F.normalize`:
//!
//! ```text
//! y = x / max(‖x‖, 1e-12)
//! dx (+)= (dy − y·⟨y, dy⟩) / ‖x‖          (‖x‖ below 1e-12 is a constant: dx = dy / 1e-12)
//! ```

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, SavedForBackward, Unary};
use crate::cuda::{Pointer, blocks};
use crate::{Graph, NodeId, Op, Result};

/// Unit length.
pub(crate) struct L2Normalise;

/// The smallest norm divided by.
const EPSILON: f64 = 1e-12;

impl Unary for L2Normalise {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::BOTH
    }

    fn is_wide(&self) -> bool {
        true
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        let unit = |row: &[f64]| {
            let norm = length(row).max(EPSILON);
            row.iter().map(|v| v / norm).collect::<Vec<f64>>()
        };
        x.chunks(at.input.len()).flat_map(unit).collect()
    }

    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        let dim = at.input.len();
        let mut dx = vec![];
        for (row, d) in x.chunks(dim).zip(dy.chunks(dim)) {
            let norm = length(row);
            if norm < EPSILON {
                dx.extend(d.iter().map(|d| d / EPSILON));
                continue;
            }
            let along: f64 = row.iter().zip(d).map(|(v, d)| v / norm * d).sum();
            dx.extend(row.iter().zip(d).map(|(v, d)| (d - v / norm * along) / norm));
        }
        dx
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        let dim = at.input.len();
        let rows = y.par_chunks_mut(dim).zip(x.par_chunks(dim));
        rows.for_each(|(y, x)| {
            let norm = norm(x);
            for (y, x) in y.iter_mut().zip(x) {
                *y = x / norm;
            }
        });
    }

    fn cpu_backward(&self, at: &CpuAt, [x, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let dim = at.input.len();
        dx.par_chunks_mut(dim).enumerate().for_each(|(row, dx)| {
            let at = row * dim..(row + 1) * dim;
            let (x, y, dy) = (&x[at.clone()], &y[at.clone()], &dy[at]);
            let norm = norm(x);
            let along: f64 = y.iter().zip(dy).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum();
            let along = along as f32;
            for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
                *dx = if add { *dx } else { 0.0 } + (dy - y * along) / norm;
            }
        });
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let dim = at.input.len() as u32;
        at.launch(|k| &k.l2_normalise, blocks(at.batch, 128)?, (x, dim, y, at.wide))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let [x, _, dy] = of;
        let arguments = (x, dy, at.wide, at.input.len() as u32, i32::from(add), dx);
        at.launch(|k| &k.l2_normalise_backward, blocks(at.batch, 128)?, arguments)
    }
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// At least [`EPSILON`].
fn norm(x: &[f32]) -> f32 {
    let squares: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (squares.sqrt() as f32).max(EPSILON as f32)
}

pub(super) fn cases() -> Vec<Case> {
    let sizes = [(1, 1), (2, 3), (3, 7), (5, 16), (2, 17), (3, 128), (4, 515)];
    let case =
        |(batch, channels)| Case::new(8, batch, [1, 1, channels], |g, x| g.l2_normalise("unit", x));
    sizes.map(case).into()
}

impl Graph {
    /// Each picture's vector divided by its norm.
    pub fn l2_normalise(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        self.push(name, Op::L2Normalise, vec![x], self.shape(x))
    }
}
