//! L2 normalisation of each picture's vector.
//!
//! ```text
//! y = x / max(‖x‖, 1e-12);   dx (+)= (dy − y · (y·dy)) / max(‖x‖, 1e-12)
//! ```

use rayon::prelude::*;

const EPSILON: f32 = 1e-12;

fn norm(x: &[f32]) -> f32 {
    let squares: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (squares.sqrt() as f32).max(EPSILON)
}

pub(crate) fn forward(x: &[f32], dim: usize, y: &mut [f32]) {
    let rows = y.par_chunks_mut(dim).zip(x.par_chunks(dim));
    rows.for_each(|(y, x)| {
        let norm = norm(x);
        for (y, x) in y.iter_mut().zip(x) {
            *y = x / norm;
        }
    });
}

pub(crate) fn backward(
    x: &[f32],
    y: &[f32],
    dy: &[f32],
    dim: usize,
    accumulate: bool,
    dx: &mut [f32],
) {
    dx.par_chunks_mut(dim).enumerate().for_each(|(row, dx)| {
        let at = row * dim..(row + 1) * dim;
        let (x, y, dy) = (&x[at.clone()], &y[at.clone()], &dy[at]);
        let norm = norm(x);
        let along: f64 = y.iter().zip(dy).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum();
        let along = along as f32;
        for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
            *dx = if accumulate { *dx } else { 0.0 } + (dy - y * along) / norm;
        }
    });
}
