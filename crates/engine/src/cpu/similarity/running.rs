//! What is known of some queries after some of the keys: entropy sums under a running maximum, and
//! the best keys.
//!
//! With u = s / temperature − max, Z = Σ e^u and T = Σ u·e^u, the entropy is −Σ p ln p = ln Z − T /
//! Z. When the maximum grows by d, Z becomes Z·e^−d and T becomes (T − d·Z)·e^−d.
//!
//! A tile is searched for neighbours of a query only where its greatest similarity passes the
//! query's k-th best so far.

use super::best::Best;
use super::tile::{Lanes, QUERIES, Tile};
use crate::cpu::exp::exp;
use crate::similarity::Scan;
use pulp::{Arch, Simd, WithSimd};

/// Up to [`QUERIES`] queries, of which `first` is the number of the first.
pub(super) struct Running {
    first: usize,
    /// Key i is query i, and no neighbour of it.
    same: bool,
    /// One over the temperature, where the entropy is asked for.
    inverse_temperature: Option<f32>,
    max: Lanes,
    z: [f64; QUERIES],
    t: [f64; QUERIES],
    best: Vec<Best>,
}

/// One query's sums and best keys.
pub(super) struct Sums {
    max: f64,
    z: f64,
    t: f64,
    pub(super) best: Best,
}

impl Running {
    pub(super) fn new(first: usize, count: usize, scan: &Scan, k: usize) -> Self {
        Running {
            first,
            same: scan.same,
            inverse_temperature: scan.entropy_temperature.map(f32::recip),
            max: Lanes([f32::NEG_INFINITY; QUERIES]),
            z: [0.0; QUERIES],
            t: [0.0; QUERIES],
            best: (0..count).map(|_| Best::new(k)).collect(),
        }
    }

    /// Spares the queries keys that cannot be among their best: those below `least`, one for each
    /// query.
    pub(super) fn expect(&mut self, least: &[f32]) {
        for (best, least) in self.best.iter_mut().zip(least) {
            best.expect(*least);
        }
    }

    /// Takes in a tile whose columns are these queries and whose `rows` rows are the keys from
    /// `first_key` on.
    pub(super) fn see_columns(
        &mut self,
        arch: Arch,
        tile: &Tile,
        rows: usize,
        width: usize,
        first_key: usize,
    ) {
        let values = &tile.0[..rows * width];
        let greatest = tile.max_of_columns(arch, rows, width);
        self.search(&greatest, first_key, |query| values[query..].iter().step_by(width));
        self.add_sums(&greatest, width, |scale, max, z, t| {
            arch.dispatch(TileSums::<false> { values, scale, max, z, t });
        });
    }

    /// Takes in a tile whose rows are these queries and whose columns, all `width` of them, are the
    /// keys.
    pub(super) fn see_rows(&mut self, arch: Arch, tile: &Tile, width: usize, first_key: usize) {
        let rows = self.best.len();
        let values = &tile.0[..rows * width];
        let greatest = tile.max_of_rows(arch, rows, width);
        self.search(&greatest, first_key, |query| {
            values[query * width..(query + 1) * width].iter()
        });
        self.add_sums(&greatest, rows, |scale, max, z, t| {
            arch.dispatch(TileSums::<true> { values, scale, max, z, t });
        });
    }

    /// Offers a tile's keys as neighbours; `of` gives a query's similarities with them.
    #[inline(always)]
    fn search<'a, I: Iterator<Item = &'a f32>>(
        &mut self,
        greatest: &Lanes,
        first_key: usize,
        of: impl Fn(usize) -> I,
    ) {
        for (lane, best) in self.best.iter_mut().enumerate() {
            if greatest.0[lane] <= best.threshold() {
                continue;
            }
            let query = self.first + lane;
            for (key, similarity) in (first_key..).zip(of(lane)) {
                if *similarity > best.threshold() && !(self.same && key == query) {
                    best.push(*similarity, key as u32);
                }
            }
        }
    }

    /// Raises the maxima and adds a tile's sums, if the entropy is asked for.
    #[inline(always)]
    fn add_sums(
        &mut self,
        greatest: &Lanes,
        lanes: usize,
        sum: impl FnOnce(f32, &[f32], &mut [f32], &mut [f32]),
    ) {
        let Some(scale) = self.inverse_temperature else {
            return;
        };
        self.raise(greatest, scale, lanes);
        let (mut z, mut t) = (Lanes([0.0; QUERIES]), Lanes([0.0; QUERIES]));
        let max = &self.max.0[..lanes];
        sum(scale, max, &mut z.0[..lanes], &mut t.0[..lanes]);
        for lane in 0..QUERIES {
            self.z[lane] += f64::from(z.0[lane]);
            self.t[lane] += f64::from(t.0[lane]);
        }
    }

    /// Takes over greater maxima of s / temperature.
    fn raise(&mut self, greatest: &Lanes, scale: f32, lanes: usize) {
        for lane in 0..lanes {
            let new = greatest.0[lane] * scale;
            let old = self.max.0[lane];
            if new > old {
                self.max.0[lane] = new;
                let moved = moved(self.z[lane], self.t[lane], f64::from(old) - f64::from(new));
                (self.z[lane], self.t[lane]) = moved;
            }
        }
    }

    /// Each query by itself.
    pub(super) fn into_sums(self) -> impl Iterator<Item = Sums> {
        (self.best.into_iter().enumerate()).map(move |(lane, best)| Sums {
            max: f64::from(self.max.0[lane]),
            z: self.z[lane],
            t: self.t[lane],
            best,
        })
    }
}

impl Sums {
    /// Nothing seen yet.
    pub(super) fn new(k: usize) -> Self {
        Sums { max: f64::NEG_INFINITY, z: 0.0, t: 0.0, best: Best::new(k) }
    }

    /// Takes in what the same query found among later keys.
    pub(super) fn add(&mut self, later: Sums) {
        let max = self.max.max(later.max);
        let (z, t) = moved(self.z, self.t, self.max - max);
        let (more_z, more_t) = moved(later.z, later.t, later.max - max);
        (self.max, self.z, self.t) = (max, z + more_z, t + more_t);
        self.best.add(later.best);
    }

    /// ln Σ e^(s / temperature).
    pub(super) fn log_sum(&self) -> f64 {
        self.max + self.z.ln()
    }

    pub(super) fn entropy(&self) -> f32 {
        (self.z.ln() - self.t / self.z) as f32
    }
}

/// Z and T under a maximum that differs by `by` (old less new).
fn moved(z: f64, t: f64, by: f64) -> (f64, f64) {
    if z == 0.0 {
        return (0.0, 0.0); // nothing summed: the old maximum may be −∞
    }
    (z * by.exp(), (t + by * z) * by.exp())
}

/// Adds e^u to z and u·e^u to t, where u = scale·s − max, over the rows of a tile, or over its
/// columns.
struct TileSums<'a, const COLUMNS: bool> {
    values: &'a [f32],
    scale: f32,
    max: &'a [f32],
    z: &'a mut [f32],
    t: &'a mut [f32],
}

impl<const COLUMNS: bool> WithSimd for TileSums<'_, COLUMNS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, _) = S::as_simd_f32s(self.values);
        let scale = simd.splat_f32s(self.scale);
        if COLUMNS {
            let vectors = rows.len() / self.max.len();
            for (row, values) in rows.chunks_exact(vectors).enumerate() {
                let less_max = simd.splat_f32s(-self.max[row]);
                let nothing = simd.splat_f32s(0.0);
                let (sum, weighted) = sums(simd, values, scale, less_max, (nothing, nothing));
                self.z[row] += simd.reduce_sum_f32s(sum);
                self.t[row] += simd.reduce_sum_f32s(weighted);
            }
            return;
        }
        let (max, _) = S::as_simd_f32s(self.max);
        let (z, _) = S::as_mut_simd_f32s(self.z);
        let (t, _) = S::as_mut_simd_f32s(self.t);
        for v in 0..max.len() {
            let column = rows.chunks_exact(max.len()).map(|row| &row[v]);
            (z[v], t[v]) = sums(simd, column, scale, simd.neg_f32s(max[v]), (z[v], t[v]));
        }
    }
}

/// Adds e^u and u·e^u of each vector of similarities.
#[inline(always)]
fn sums<'a, S: Simd>(
    simd: S,
    values: impl IntoIterator<Item = &'a S::f32s>,
    scale: S::f32s,
    less_max: S::f32s,
    (mut sum, mut weighted): (S::f32s, S::f32s),
) -> (S::f32s, S::f32s) {
    for value in values {
        let u = simd.mul_add_e_f32s(*value, scale, less_max);
        let e = exp(simd, u);
        sum = simd.add_f32s(sum, e);
        weighted = simd.mul_add_e_f32s(u, e, weighted);
    }
    (sum, weighted)
}
