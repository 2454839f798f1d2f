//! The contrastive loss between views of pictures (NT-Xent of SimCLR, for two views or more), with
//! gradients for both sides.
//!
//! Rows are view 0 of all pictures, then view 1, and so on: N of them, taken as they are. With s_jk
//! = row j · row k / temperature, l_j = ln Σ_{k ≠ j} e^s_jk, and t_jk = 1/(views − 1) where j and k
//! are views of one picture, else 0:
//!
//! ```text
//! losses[j]   = l_j − Σ_k t_jk · s_jk
//! gradient[j] = weight / (N · temperature)
//!               · Σ_{k ≠ j} (e^(s_jk − l_j) + e^(s_jk − l_k) − 2·t_jk) · row k
//! ```
//!
//! since s_jk = s_kj: the second exponential is row j as a key of row k. Losses and gradient are
//! written (`=`). Tiles are computed twice, for l and for the gradient, so that no N × N matrix
//! exists. A block of rows is one task and sees the keys in order: the bits are the same for any
//! number of threads.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::loss::{Exponentials, dot};
use super::tile::{self, KEYS, Lanes, QUERIES, Tile};
use crate::cpu::exp::exp;
use crate::cpu::gemm::{self, Outer, Pairs};

/// The loss of matrices of one shape, with its memory.
pub(crate) struct Contrastive {
    shape: Shape,
    packed: Vec<f32>,
    /// l of each row of this process.
    log_sums: Vec<f32>,
}

/// Rows of all pictures, and which pictures' losses and gradients are wanted here: those of one of
/// several processes, or all.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    pub(crate) views: usize,
    /// All pictures.
    pub(crate) batch: usize,
    pub(crate) dim: usize,
    /// The first picture that is wanted, and how many.
    pub(crate) first: usize,
    pub(crate) own: usize,
}

impl Contrastive {
    /// Allocates what losses of a shape need.
    pub(crate) fn new(shape: Shape) -> Self {
        let n = shape.views * shape.own;
        Contrastive {
            shape,
            packed: vec![0.0; n.next_multiple_of(QUERIES) * shape.dim],
            log_sums: vec![0.0; n],
        }
    }

    /// Losses of the wanted rows (`own`, which are among all `rows`), and their l: that of all rows
    /// is needed for the gradient.
    pub(crate) fn losses(
        &mut self,
        arch: Arch,
        own: &[f32],
        rows: &[f32],
        temperature: f32,
        losses: &mut [f32],
    ) {
        let shape = self.shape;
        let width = tile::block_width(arch);
        let block = width * shape.dim;
        (self.packed.par_chunks_mut(block).zip(own.par_chunks(block))).for_each(|(packed, own)| {
            let len = shape.dim * tile::padded(arch, own.len() / shape.dim);
            tile::pack(arch, own, shape.dim, 1.0 / temperature, &mut packed[..len]);
        });
        (self.log_sums.par_chunks_mut(width))
            .zip(losses.par_chunks_mut(width))
            .zip(self.packed.par_chunks(block))
            .enumerate()
            .for_each(|(number, ((log_sums, losses), packed))| {
                let first = number * width;
                let sums = shape.log_sums(arch, packed, first..first + log_sums.len(), rows);
                for (lane, (log_sum, loss)) in log_sums.iter_mut().zip(losses).enumerate() {
                    let j = shape.place(first + lane);
                    let positives = shape.positives(rows, j) / f64::from(temperature);
                    *log_sum = sums[lane] as f32;
                    *loss = (sums[lane] - positives) as f32;
                }
            });
    }

    /// l of the wanted rows.
    pub(crate) fn log_sums(&self) -> &[f32] {
        &self.log_sums
    }

    /// The gradient of the wanted rows, from l of all rows.
    pub(crate) fn gradient(
        &self,
        arch: Arch,
        rows: &[f32],
        log_sums: &[f32],
        temperature: f32,
        weight: f32,
        gradient: &mut [f32],
    ) {
        let (shape, width) = (self.shape, tile::block_width(arch));
        let (n, block) = (self.log_sums.len(), width * shape.dim);
        let factor = weight / (n as f32 * temperature);
        (gradient.par_chunks_mut(block)).zip(self.packed.par_chunks(block)).enumerate().for_each(
            |(number, (gradient, packed))| {
                shape.gradient(arch, packed, number * width, rows, log_sums, gradient);
                gradient.iter_mut().for_each(|g| *g *= factor);
            },
        );
    }
}

impl Shape {
    /// Which of all rows a wanted one is.
    fn place(self, row: usize) -> usize {
        row / self.own * self.batch + self.first + row % self.own
    }

    /// The other views of row j's picture.
    fn others(self, j: usize) -> impl Iterator<Item = usize> {
        let all = (0..self.views).map(move |u| u * self.batch + j % self.batch);
        all.filter(move |k| *k != j)
    }

    /// The mean inner product of row j and the other views of its picture.
    fn positives(self, rows: &[f32], j: usize) -> f64 {
        let row = |j: usize| &rows[j * self.dim..(j + 1) * self.dim];
        let sum: f64 = self.others(j).map(|k| dot(row(j), row(k))).sum();
        sum / (self.views - 1) as f64
    }

    /// l of a block of wanted rows, under a running maximum.
    fn log_sums(
        self,
        arch: Arch,
        packed: &[f32],
        block: Range<usize>,
        rows: &[f32],
    ) -> [f64; QUERIES] {
        let width = tile::padded(arch, block.len());
        let mut tile = Tile::new();
        let mut max = Lanes([f32::NEG_INFINITY; QUERIES]);
        let mut total = [0.0; QUERIES];
        for (keys, first_key) in rows.chunks(KEYS * self.dim).zip((0..).step_by(KEYS)) {
            let here = keys.len() / self.dim;
            tile.fill(arch, keys, self.dim, &packed[..self.dim * width], width);
            for lane in 0..block.len() {
                let j = self.place(block.start + lane);
                if (first_key..first_key + here).contains(&j) {
                    tile.0[(j - first_key) * width + lane] = f32::NEG_INFINITY;
                }
            }
            let greatest = tile.max_of_columns(arch, here, width);
            raise(&mut max, &greatest, &mut total);
            // Where nothing but the row itself was seen, or no row is, any maximum will do.
            let mut sums = Lanes([0.0; QUERIES]);
            let base = Lanes(max.0.map(|m| if m == f32::NEG_INFINITY { 0.0 } else { m }));
            arch.dispatch(Exponentials {
                values: &mut tile.0[..here * width],
                max: &base.0[..width],
                sums: &mut sums.0[..width],
            });
            for (total, sum) in total.iter_mut().zip(sums.0) {
                *total += f64::from(sum);
            }
        }
        std::array::from_fn(|lane| f64::from(max.0[lane]) + total[lane].ln())
    }

    /// Σ_{k ≠ j} (e^(s_jk − l_j) + e^(s_jk − l_k) − 2·t_jk) · row k for the block of wanted rows
    /// from `first` on.
    fn gradient(
        self,
        arch: Arch,
        packed: &[f32],
        first: usize,
        rows: &[f32],
        log_sums: &[f32],
        gradient: &mut [f32],
    ) {
        let count = gradient.len() / self.dim;
        let width = tile::padded(arch, count);
        let mut own = Lanes([0.0; QUERIES]);
        for (lane, own) in own.0[..count].iter_mut().enumerate() {
            *own = log_sums[self.place(first + lane)];
        }
        let pairs: [[u32; 2]; KEYS] =
            std::array::from_fn(|key| [(key * width) as u32, (key * self.dim) as u32]);
        let mut tile = Tile::new();
        gradient.fill(0.0);
        for (keys, first_key) in rows.chunks(KEYS * self.dim).zip((0..).step_by(KEYS)) {
            let here = keys.len() / self.dim;
            tile.fill(arch, keys, self.dim, &packed[..self.dim * width], width);
            arch.dispatch(BothSides {
                values: &mut tile.0[..here * width],
                own: &own.0[..width],
                keys: &log_sums[first_key..first_key + here],
            });
            self.take_positives(
                &mut tile,
                width,
                first..first + count,
                first_key..first_key + here,
            );
            let op = Outer {
                a: &tile.0,
                b: keys,
                pairs: Pairs::new(&pairs[..here]),
                times: 1,
                apart: [0; 2],
                rows: count,
                n: self.dim,
            };
            gemm::outer(arch, op, gradient);
        }
    }

    /// Takes 2·t_jk from a tile of weights, and all of a row's weight for itself.
    fn take_positives(
        self,
        tile: &mut Tile,
        width: usize,
        block: Range<usize>,
        keys: Range<usize>,
    ) {
        let twice = 2.0 / (self.views - 1) as f32;
        for lane in 0..block.len() {
            let j = self.place(block.start + lane);
            let at = |k: usize| (k - keys.start) * width + lane;
            if keys.contains(&j) {
                tile.0[at(j)] = 0.0;
            }
            for k in self.others(j).filter(|k| keys.contains(k)) {
                tile.0[at(k)] -= twice;
            }
        }
    }
}

/// Takes over greater maxima: what was summed under the old ones shrinks.
fn raise(max: &mut Lanes, greatest: &Lanes, total: &mut [f64; QUERIES]) {
    for ((max, new), total) in max.0.iter_mut().zip(greatest.0).zip(total) {
        if new > *max {
            *total *= f64::from(*max - new).exp();
            *max = new;
        }
    }
}

/// Replaces similarities by e^(s − own) + e^(s − key's), where each is at most 1 but for rounding.
struct BothSides<'a> {
    values: &'a mut [f32],
    own: &'a [f32],
    keys: &'a [f32],
}

impl WithSimd for BothSides<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (values, _) = S::as_mut_simd_f32s(self.values);
        let (own, _) = S::as_simd_f32s(self.own);
        let zero = simd.splat_f32s(0.0);
        for (row, key) in values.chunks_exact_mut(own.len()).zip(self.keys) {
            let key = simd.splat_f32s(*key);
            for (value, own) in row.iter_mut().zip(own) {
                let as_query = exp(simd, simd.min_f32s(zero, simd.sub_f32s(*value, *own)));
                let as_key = exp(simd, simd.min_f32s(zero, simd.sub_f32s(*value, key)));
                *value = simd.add_f32s(as_query, as_key);
            }
        }
    }
}
