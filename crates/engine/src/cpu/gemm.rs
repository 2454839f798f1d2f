//! The three matrix kernels that convolution, linear layers, the loss and discovery are all made
//! of.
//!
//! [`gather`]: `C[m][n] (+)= Σ_t Σ_k A[row(m, t) + k] · B[t][k][n]`. Rows of A are found through a
//! table of offsets, one for each output place and tap of the kernel, so a convolution needs no
//! im2col copy: the taps of a place are read where they lie, and a tap in the padding reads zeros.
//! B is packed in panels of [`panel_width`] columns.
//!
//! [`products`]: many small matrix products `C = A · B` of one shape, rows of A contiguous:
//! Winograd's.
//!
//! [`outer`]: `C[i][n] += Σ_p A[a(p) + i] · B[b(p) + n]`: the sum of outer products that gives
//! weight gradients. Pairs whose left factor lies in the padding are simply not listed.
//!
//! All keep a block of C in registers (8 rows × 2 vectors where there are 32 registers, 6 × 2 where
//! there are 16, 8 × 1 where C is no wider than a vector) over the whole sum; how many rows share a
//! block does not change their bits.
//!
//! Kept by hand: crates for matrix products (`gemm`, `matrixmultiply`) want their factors as whole
//! matrices, for which every convolution would have to be copied out first.

mod gather;
mod outer;
mod products;

use pulp::{Arch, Simd, WithSimd};

pub(crate) use gather::{Gather, Offsets, Row, Table, gather};
pub(crate) use outer::{Outer, PairList, Pairs, outer};
pub(crate) use products::{Products, products};

/// Vectors across a panel of packed columns.
const PANEL_VECTORS: usize = 2;

/// Columns in a full panel at this level.
pub(crate) fn panel_width(arch: Arch) -> usize {
    struct Width;
    impl WithSimd for Width {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES * PANEL_VECTORS
        }
    }
    arch.dispatch(Width)
}

/// Length of a packed matrix of `depth` rows and `n` columns.
pub(crate) fn packed_len(depth: usize, n: usize, width: usize) -> usize {
    depth * n.next_multiple_of(width)
}

/// Packs `depth` rows of `n` columns into panels [panel][depth][width], the last padded with zeros.
/// `row(k)` gives the start of row k in `b`; columns are `step` apart.
#[inline(always)]
pub(crate) fn pack(
    b: &[f32],
    depth: usize,
    n: usize,
    step: usize,
    width: usize,
    row: impl Fn(usize) -> usize,
    out: &mut [f32],
) {
    for (panel, out) in
        out[..packed_len(depth, n, width)].chunks_exact_mut(depth * width).enumerate()
    {
        let n0 = panel * width;
        let columns = width.min(n - n0);
        for (k, out) in out.chunks_exact_mut(width).enumerate() {
            let start = row(k) + n0 * step;
            if step == 1 {
                out[..columns].copy_from_slice(&b[start..start + columns]);
            } else {
                for (j, out) in out[..columns].iter_mut().enumerate() {
                    *out = b[start + j * step];
                }
            }
            out[columns..].fill(0.0);
        }
    }
}

/// Calls `work::<MR>(first, valid)` for blocks of rows: of 8 where there are registers for so many
/// rows of NV vectors, else of 6, and of 4 for what sixes leave. A block of which only some rows
/// are valid ends the matrix.
macro_rules! in_blocks {
    ($rows:expr, $simd:ident, $vectors:expr, $work:ident::<$($type:tt),*>($($arg:expr),*)) => {{
        let mut first = 0;
        while first < $rows {
            let left: usize = $rows - first;
            if $simd::REGISTER_COUNT >= 32 || $vectors == 1 {
                $work::<$($type,)* 8>($($arg,)* first, left.min(8));
                first += 8;
            } else if left >= 6 && left != 8 {
                $work::<$($type,)* 6>($($arg,)* first, 6);
                first += 6;
            } else {
                $work::<$($type,)* 4>($($arg,)* first, left.min(4));
                first += 4;
            }
        }
    }};
}
use in_blocks;

/// acc[m] += Σ_k a[m][k] · B[k], for NV vectors of B's columns.
///
/// # Safety
/// Every row of `a` has `depth` values, and `b` has `depth` rows of a panel's width.
#[inline(always)]
unsafe fn add_products<S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    a: [*const f32; MR],
    b: *const f32,
    depth: usize,
    acc: &mut [[S::f32s; NV]; MR],
) {
    if NV == 1 {
        // SAFETY: as the caller promises.
        return unsafe { add_narrow(simd, a, b, depth, acc) };
    }
    let width = S::F32_LANES * PANEL_VECTORS;
    for k in 0..depth {
        // SAFETY: as the caller promises; NV vectors are no wider than a panel.
        unsafe {
            let b = b.add(k * width).cast::<[S::f32s; NV]>().read_unaligned();
            for m in 0..MR {
                let x = simd.splat_f32s(*a[m].add(k));
                for v in 0..NV {
                    acc[m][v] = simd.mul_add_e_f32s(x, b[v], acc[m][v]);
                }
            }
        }
    }
}

/// The same for one vector, some rows of B at a time: a row of C then waits for its sums while
/// those of the others are computed, and its pointer is looked up once for all of them.
///
/// # Safety
/// As [`add_products`].
#[inline(always)]
unsafe fn add_narrow<S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    a: [*const f32; MR],
    b: *const f32,
    depth: usize,
    acc: &mut [[S::f32s; NV]; MR],
) {
    let mut k = 0;
    // SAFETY: as the caller promises; no chunk goes beyond `depth`.
    unsafe {
        while k + 4 <= depth {
            add_chunk::<S, MR, NV, 4>(simd, a, b, k, acc);
            k += 4;
        }
        match depth - k {
            3 => add_chunk::<S, MR, NV, 3>(simd, a, b, k, acc),
            2 => add_chunk::<S, MR, NV, 2>(simd, a, b, k, acc),
            1 => add_chunk::<S, MR, NV, 1>(simd, a, b, k, acc),
            _ => {}
        }
    }
}

/// K rows of B from row `k` on, for the first vector.
///
/// # Safety
/// As [`add_products`], with a depth of at least k + K.
#[inline(always)]
unsafe fn add_chunk<S: Simd, const MR: usize, const NV: usize, const K: usize>(
    simd: S,
    a: [*const f32; MR],
    b: *const f32,
    k: usize,
    acc: &mut [[S::f32s; NV]; MR],
) {
    let width = S::F32_LANES * PANEL_VECTORS;
    let mut rows = [simd.splat_f32s(0.0); K];
    // SAFETY: as the caller promises.
    unsafe {
        for (i, row) in rows.iter_mut().enumerate() {
            *row = b.add((k + i) * width).cast::<S::f32s>().read_unaligned();
        }
        for m in 0..MR {
            let a = a[m].add(k);
            for (i, row) in rows.iter().enumerate() {
                acc[m][0] = simd.mul_add_e_f32s(simd.splat_f32s(*a.add(i)), *row, acc[m][0]);
            }
        }
    }
}

/// Writes or adds vectors to a slice that may end within the last.
#[inline(always)]
fn store<S: Simd, const NV: usize>(simd: S, acc: &[S::f32s; NV], accumulate: bool, c: &mut [f32]) {
    if c.len() == NV * S::F32_LANES {
        let c = c.as_mut_ptr().cast::<S::f32s>();
        for (v, acc) in acc.iter().enumerate() {
            // SAFETY: c has NV whole vectors, as just checked.
            unsafe {
                let c = c.add(v);
                c.write_unaligned(if accumulate {
                    simd.add_f32s(*acc, c.read_unaligned())
                } else {
                    *acc
                });
            }
        }
        return;
    }
    for (acc, c) in acc.iter().zip(c.chunks_mut(S::F32_LANES)) {
        let value = if accumulate { simd.add_f32s(*acc, simd.partial_load_f32s(c)) } else { *acc };
        simd.partial_store_f32s(c, value);
    }
}
