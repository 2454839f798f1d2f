//! What the parts of a picture add up to, and what another picture must not: see
//! [`crate::Counting`].
//!
//! With D_i = S_i − φ_i, E_i = S_i − φ_j and a_i = 1 where |E_i|² < margin, else 0, the gradient of
//! weight · mean(losses) is, times 2 · weight / B:
//!
//! ```text
//! of every part of i   D_i − a_i · E_i
//! of the whole of i    −D_i + a_h · E_h,   h the picture before i
//! ```
//!
//! Sums over parts are taken anew where they are needed: the parts are few, and nothing has to be
//! kept.

use rayon::prelude::*;

use super::LEAST_ROWS;

/// Rows of `dim`: the wholes of all pictures, then every picture's first part, and so on.
pub(crate) struct Parts<'a> {
    pub(crate) rows: &'a [f32],
    pub(crate) views: usize,
    pub(crate) dim: usize,
}

impl Parts<'_> {
    fn pictures(&self) -> usize {
        self.rows.len() / (self.views * self.dim)
    }

    /// What the parts of a picture add up to at a place of their rows, less the whole of another.
    fn apart(&self, parts_of: usize, whole_of: usize, at: usize) -> f32 {
        let value = |row: usize| self.rows[row * self.dim + at];
        let rows = (1..self.views).map(|view| view * self.pictures() + parts_of);
        rows.map(value).sum::<f32>() - value(whole_of)
    }

    /// |S − φ|² of the parts of one picture and the whole of another.
    fn distance(&self, parts_of: usize, whole_of: usize) -> f32 {
        let square = |at| f64::from(self.apart(parts_of, whole_of, at)).powi(2);
        (0..self.dim).map(square).sum::<f64>() as f32
    }
}

/// See the module; `distances` takes (`=`) −|E_i|² and −|D_i|².
pub(crate) fn counting(
    of: &Parts,
    margin: f32,
    weight: f32,
    distances: &mut [f32],
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let n = of.pictures();
    let scale = 2.0 * weight / n as f32;
    (distances.par_chunks_mut(2).zip(&mut *losses).enumerate()).with_min_len(LEAST_ROWS).for_each(
        |(i, (distances, loss))| {
            let [own, other] = [i, (i + 1) % n].map(|whole| of.distance(i, whole));
            distances.copy_from_slice(&[-other, -own]);
            // What is not a number stays so.
            let short = if other >= margin { 0.0 } else { margin - other };
            *loss = own + short;
        },
    );
    let asked = |i: usize| -distances[2 * i] < margin;
    (gradient.par_chunks_mut(of.dim).enumerate()).with_min_len(LEAST_ROWS).for_each(
        |(row, gradient)| {
            let (view, i) = (row / n, row % n);
            let (before, after) = ((i + n - 1) % n, (i + 1) % n);
            for (at, g) in gradient.iter_mut().enumerate() {
                let own = of.apart(i, i, at);
                let contrast = match view {
                    0 if asked(before) => of.apart(before, i, at),
                    1.. if asked(i) => -of.apart(i, after, at),
                    _ => 0.0,
                };
                *g = scale * (if view == 0 { -own } else { own } + contrast);
            }
        },
    );
}
