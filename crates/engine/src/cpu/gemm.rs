//! The two matrix kernels that convolution, linear layers, the loss and discovery are all made of.
//!
//! [`gather`]: `C[m][n] (+)= Σ_t Σ_k A[row(m, t) + k] · B[t][k][n]`. Rows of A are found through a table of offsets, one
//! for each output place and tap of the kernel, so a convolution needs no im2col copy: the taps of a place are read where
//! they lie, and a tap in the padding reads zeros. B is packed in panels of [`panel_width`] columns.
//!
//! [`outer`]: `C[i][n] += Σ_p A[a(p) + i] · B[b(p) + n]`: the sum of outer products that gives weight gradients. Pairs whose
//! left factor lies in the padding are simply not listed.
//!
//! Both keep a block of C in registers (8 rows × 2 vectors where there are 32 registers) over the whole sum.

use pulp::{Arch, Simd, WithSimd};

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

/// Packs `depth` rows of `n` columns into panels [panel][depth][width], the last padded with zeros. `row(k)` gives the
/// start of row k in `b`; columns are `step` apart.
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
    for (panel, out) in out[..packed_len(depth, n, width)]
        .chunks_exact_mut(depth * width)
        .enumerate()
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

/// Where one row of C gets its values from and where it goes.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Added to the offsets of this row.
    pub(crate) base: usize,
    /// The row's first offset in the table; one per tap.
    pub(crate) table: usize,
    /// The row's start in C.
    pub(crate) c: usize,
}

/// The operands of [`gather`].
#[derive(Clone, Copy)]
pub(crate) struct Gather<'a> {
    /// The values rows are made of.
    pub(crate) a: &'a [f32],
    /// Offsets into `a` relative to a row's base; negative means zeros.
    pub(crate) table: &'a [i32],
    /// At least `depth` zeros.
    pub(crate) zeros: &'a [f32],
    /// Which of B's taps are used, in the table's order.
    pub(crate) taps: &'a [u32],
    /// Values a tap reads.
    pub(crate) depth: usize,
    /// Packed panels [panel][tap][depth][width].
    pub(crate) b: &'a [f32],
    /// Taps in `b`, used or not.
    pub(crate) b_taps: usize,
    /// Columns of C.
    pub(crate) n: usize,
    /// Whether C is added to.
    pub(crate) accumulate: bool,
}

/// Computes `rows` rows of C.
#[inline]
pub(crate) fn gather<F: Fn(usize) -> Row>(
    arch: Arch,
    op: Gather,
    rows: usize,
    row: F,
    c: &mut [f32],
) {
    arch.dispatch(GatherCall { op, rows, row, c });
}

struct GatherCall<'a, F> {
    op: Gather<'a>,
    rows: usize,
    row: F,
    c: &'a mut [f32],
}

impl<F: Fn(usize) -> Row> WithSimd for GatherCall<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 {
            self.run::<S, 8>(simd);
        } else {
            self.run::<S, 4>(simd);
        }
    }
}

impl<F: Fn(usize) -> Row> GatherCall<'_, F> {
    #[inline(always)]
    fn run<S: Simd, const MR: usize>(self, simd: S) {
        let GatherCall { op, rows, row, c } = self;
        let width = S::F32_LANES * PANEL_VECTORS;
        let panel_len = op.b_taps * op.depth * width;
        let panels = op.n.div_ceil(width);
        assert!(op.b.len() >= panels * panel_len && op.zeros.len() >= op.depth);
        for panel in 0..panels {
            let b = &op.b[panel * panel_len..(panel + 1) * panel_len];
            let n0 = panel * width;
            let columns = width.min(op.n - n0);
            for m0 in (0..rows).step_by(MR) {
                let valid = MR.min(rows - m0);
                let mut block = [row(m0); MR];
                for (m, r) in block.iter_mut().enumerate().take(valid).skip(1) {
                    *r = row(m0 + m);
                }
                if columns <= S::F32_LANES {
                    let acc = gather_block::<S, MR, 1>(simd, &op, b, &block);
                    put(simd, acc, &block[..valid], n0, columns, op.accumulate, c);
                } else {
                    let acc = gather_block::<S, MR, PANEL_VECTORS>(simd, &op, b, &block);
                    put(simd, acc, &block[..valid], n0, columns, op.accumulate, c);
                }
            }
        }
    }
}

/// MR rows × NV vectors of C, summed in registers.
#[inline(always)]
fn gather_block<S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    op: &Gather,
    b: &[f32],
    rows: &[Row; MR],
) -> [[S::f32s; NV]; MR] {
    let width = S::F32_LANES * PANEL_VECTORS;
    let mut acc = [[simd.splat_f32s(0.0); NV]; MR];
    for (t, tap) in op.taps.iter().enumerate() {
        // No array::from_fn in here: its closures are not always inlined into code with more vector instructions.
        let mut parts = [&op.zeros[..op.depth]; MR];
        for (part, row) in parts.iter_mut().zip(rows) {
            let offset = op.table[row.table + t];
            if offset >= 0 {
                *part = &op.a[row.base + offset as usize..][..op.depth];
            }
        }
        let b = &b[*tap as usize * op.depth * width..][..op.depth * width];
        for k in 0..op.depth {
            // SAFETY: every row has `depth` values and b has `depth` rows of `width` ≥ NV vectors, sliced just above.
            unsafe {
                let b = b.as_ptr().add(k * width).cast::<[S::f32s; NV]>();
                let b = b.read_unaligned();
                for m in 0..MR {
                    let x = simd.splat_f32s(*parts[m].get_unchecked(k));
                    for v in 0..NV {
                        acc[m][v] = simd.mul_add_e_f32s(x, b[v], acc[m][v]);
                    }
                }
            }
        }
    }
    acc
}

/// Writes or adds a block to its rows of C.
#[inline(always)]
fn put<S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    acc: [[S::f32s; NV]; MR],
    rows: &[Row],
    n0: usize,
    columns: usize,
    accumulate: bool,
    c: &mut [f32],
) {
    for (acc, row) in acc.iter().zip(rows) {
        let c = &mut c[row.c + n0..][..columns];
        store(simd, acc, accumulate, c);
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
        let value = if accumulate {
            simd.add_f32s(*acc, simd.partial_load_f32s(c))
        } else {
            *acc
        };
        simd.partial_store_f32s(c, value);
    }
}

/// The operands of [`outer`].
#[derive(Clone, Copy)]
pub(crate) struct Outer<'a> {
    /// The values the left factors are read from.
    pub(crate) a: &'a [f32],
    /// The values the right factors are read from.
    pub(crate) b: &'a [f32],
    /// For each product to sum: where its factors start in `a` and in `b`.
    pub(crate) pairs: &'a [[u32; 2]],
    /// Length of the left factors: rows of C.
    pub(crate) rows: usize,
    /// Length of the right factors: columns of C.
    pub(crate) n: usize,
}

/// Adds the outer products of all pairs to C (rows × n, contiguous).
#[inline]
pub(crate) fn outer(arch: Arch, op: Outer, c: &mut [f32]) {
    arch.dispatch(OuterCall { op, c });
}

struct OuterCall<'a> {
    op: Outer<'a>,
    c: &'a mut [f32],
}

impl WithSimd for OuterCall<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = S::F32_LANES;
        let OuterCall { op, c } = self;
        let mut n0 = 0;
        while n0 < op.n {
            let left = op.n - n0;
            if left >= 2 * lanes {
                outer_columns::<S, 2, false>(simd, &op, n0, 2 * lanes, c);
                n0 += 2 * lanes;
            } else if left >= lanes {
                outer_columns::<S, 1, false>(simd, &op, n0, lanes, c);
                n0 += lanes;
            } else {
                outer_columns::<S, 1, true>(simd, &op, n0, left, c);
                n0 += left;
            }
        }
    }
}

/// All rows of C for NV vectors of columns, in the largest blocks that fit the registers.
#[inline(always)]
fn outer_columns<S: Simd, const NV: usize, const TAIL: bool>(
    simd: S,
    op: &Outer,
    n0: usize,
    columns: usize,
    c: &mut [f32],
) {
    let many = S::REGISTER_COUNT >= 32;
    let mut i = 0;
    while i < op.rows {
        let left = op.rows - i;
        if left >= 16 && NV == 1 && many {
            outer_block::<S, 16, NV, TAIL>(simd, op, i, n0, columns, c);
            i += 16;
        } else if left >= 8 && (NV == 1 || many) {
            outer_block::<S, 8, NV, TAIL>(simd, op, i, n0, columns, c);
            i += 8;
        } else if left >= 4 {
            outer_block::<S, 4, NV, TAIL>(simd, op, i, n0, columns, c);
            i += 4;
        } else if left == 3 {
            outer_block::<S, 3, NV, TAIL>(simd, op, i, n0, columns, c);
            i += 3;
        } else {
            outer_block::<S, 1, NV, TAIL>(simd, op, i, n0, columns, c);
            i += 1;
        }
    }
}

/// MI rows × NV vectors of C, summed in registers over all pairs.
#[inline(always)]
fn outer_block<S: Simd, const MI: usize, const NV: usize, const TAIL: bool>(
    simd: S,
    op: &Outer,
    i: usize,
    n0: usize,
    columns: usize,
    c: &mut [f32],
) {
    let mut acc = [[simd.splat_f32s(0.0); NV]; MI];
    for [a, b] in op.pairs {
        let a = &op.a[*a as usize + i..][..MI];
        let b = &op.b[*b as usize + n0..][..columns];
        let b: [S::f32s; NV] = if TAIL {
            [simd.partial_load_f32s(b); NV]
        } else {
            // SAFETY: without a tail, `columns` is NV whole vectors, and b was sliced to that length.
            unsafe { b.as_ptr().cast::<[S::f32s; NV]>().read_unaligned() }
        };
        for m in 0..MI {
            let x = simd.splat_f32s(a[m]);
            for v in 0..NV {
                acc[m][v] = simd.mul_add_e_f32s(x, b[v], acc[m][v]);
            }
        }
    }
    for (m, acc) in acc.iter().enumerate() {
        let c = &mut c[(i + m) * op.n + n0..][..columns];
        store(simd, acc, true, c);
    }
}
