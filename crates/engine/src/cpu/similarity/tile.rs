//! One tile of similarities: some keys (rows) × a block of queries (columns).

use crate::cpu::gemm::{self, Gather, Row, Table};
use pulp::{Arch, Simd, WithSimd};

/// Keys in a tile.
pub(super) const KEYS: usize = 96;

/// The most queries a block takes.
pub(super) const QUERIES: usize = 64;

/// Queries in a full block at this level: two panels.
pub(super) fn block_width(arch: Arch) -> usize {
    let width = 2 * gemm::panel_width(arch);
    assert!(width <= QUERIES);
    width
}

/// A tile's values, key after key, `width` queries each.
#[repr(align(64))]
pub(super) struct Tile(pub(super) [f32; KEYS * QUERIES]);

/// One value per query of a block.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f32; QUERIES]);

impl Tile {
    pub(super) fn new() -> Self {
        Tile([0.0; KEYS * QUERIES])
    }

    /// Fills the tile with the inner products of `keys` (count × dim) and a packed block of `width`
    /// queries.
    pub(super) fn fill(
        &mut self,
        arch: Arch,
        keys: &[f32],
        dim: usize,
        packed: &[f32],
        width: usize,
    ) {
        let op = Gather {
            a: keys,
            table: Table::BASE,
            zeros: packed, // no row is padding, and there are at least `dim` values
            taps: &[0],
            depth: dim,
            b: packed,
            b_taps: 1,
            n: width,
            accumulate: false,
        };
        let row = |key| Row { base: key * dim, table: 0, c: key * width };
        gemm::gather(arch, op, keys.len() / dim, row, &mut self.0);
    }

    /// The greatest value of each column over the first `rows` rows.
    pub(super) fn max_of_columns(&self, arch: Arch, rows: usize, width: usize) -> Lanes {
        let mut out = Lanes([f32::NEG_INFINITY; QUERIES]);
        let values = &self.0[..rows * width];
        arch.dispatch(MaxOfColumns(values, &mut out.0[..width]));
        out
    }

    /// The greatest value of each of the first `rows` rows.
    pub(super) fn max_of_rows(&self, arch: Arch, rows: usize, width: usize) -> Lanes {
        let mut out = Lanes([f32::NEG_INFINITY; QUERIES]);
        let values = &self.0[..rows * width];
        arch.dispatch(MaxOfRows(values, &mut out.0[..rows]));
        out
    }
}

/// Columns of a block of `count` queries: whole panels.
pub(super) fn padded(arch: Arch, count: usize) -> usize {
    count.next_multiple_of(gemm::panel_width(arch))
}

/// Packs queries (rows of length `dim`), times `scale`, as the columns of a block; columns beyond
/// the last are zero.
pub(super) fn pack(arch: Arch, queries: &[f32], dim: usize, scale: f32, out: &mut [f32]) {
    let count = queries.len() / dim;
    gemm::pack(queries, dim, count, dim, gemm::panel_width(arch), |k| k, out);
    out.iter_mut().for_each(|v| *v *= scale);
}

struct MaxOfColumns<'a>(&'a [f32], &'a mut [f32]);

impl WithSimd for MaxOfColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, _) = S::as_simd_f32s(self.0);
        let (out, _) = S::as_mut_simd_f32s(self.1);
        let vectors = out.len();
        for (v, out) in out.iter_mut().enumerate() {
            for row in rows.chunks_exact(vectors) {
                *out = simd.max_f32s(*out, row[v]);
            }
        }
    }
}

struct MaxOfRows<'a>(&'a [f32], &'a mut [f32]);

impl WithSimd for MaxOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, _) = S::as_simd_f32s(self.0);
        let vectors = rows.len() / self.1.len();
        for (row, out) in rows.chunks_exact(vectors).zip(self.1) {
            let max = row[1..].iter().fold(row[0], |m, v| simd.max_f32s(m, *v));
            *out = simd.reduce_max_f32s(max);
        }
    }
}
