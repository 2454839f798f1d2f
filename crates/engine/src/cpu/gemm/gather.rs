//! Matrix products whose left rows are found through a table of offsets: convolutions without a copy.

use pulp::{Arch, Simd, WithSimd};

use super::{PANEL_VECTORS, add_products, in_blocks, store};

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
        let GatherCall { op, rows, row, c } = self;
        let width = S::F32_LANES * PANEL_VECTORS;
        let panel_len = op.b_taps * op.depth * width;
        let panels = op.n.div_ceil(width);
        assert!(op.b.len() >= panels * panel_len && op.zeros.len() >= op.depth);
        for panel in 0..panels {
            let panel = Panel {
                b: &op.b[panel * panel_len..(panel + 1) * panel_len],
                n0: panel * width,
                columns: width.min(op.n - panel * width),
            };
            in_blocks!(
                rows,
                S::REGISTER_COUNT,
                gather_rows::<S, F>(simd, &op, panel, &row, c)
            );
        }
    }
}

/// A panel of B and the columns of C it gives.
#[derive(Clone, Copy)]
struct Panel<'a> {
    b: &'a [f32],
    n0: usize,
    columns: usize,
}

/// `valid` rows of C from row `first` on, at most MR, for one panel.
#[inline(always)]
fn gather_rows<S: Simd, F: Fn(usize) -> Row, const MR: usize>(
    simd: S,
    op: &Gather,
    Panel { b, n0, columns }: Panel,
    row: &F,
    c: &mut [f32],
    first: usize,
    valid: usize,
) {
    let mut block = [row(first); MR];
    for (m, r) in block.iter_mut().enumerate().take(valid).skip(1) {
        *r = row(first + m);
    }
    if columns <= S::F32_LANES {
        let acc = gather_block::<S, MR, 1>(simd, op, b, &block);
        put(simd, acc, &block[..valid], n0, columns, op.accumulate, c);
    } else {
        let acc = gather_block::<S, MR, PANEL_VECTORS>(simd, op, b, &block);
        put(simd, acc, &block[..valid], n0, columns, op.accumulate, c);
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
        let mut parts = [op.zeros[..op.depth].as_ptr(); MR];
        for (part, row) in parts.iter_mut().zip(rows) {
            let offset = op.table[row.table + t];
            if offset >= 0 {
                *part = op.a[row.base + offset as usize..][..op.depth].as_ptr();
            }
        }
        let b = &b[*tap as usize * op.depth * width..][..op.depth * width];
        // SAFETY: every row has `depth` values and b has `depth` rows of `width`, sliced just above.
        unsafe { add_products(simd, parts, b.as_ptr(), op.depth, &mut acc) };
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
