//! Matrix products whose left rows are found through a table of offsets: convolutions without a
//! copy.

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

/// Offsets of the values that rows are made of, relative to a row's base; negative means zeros.
pub(crate) struct Offsets {
    values: Vec<i32>,
    farthest: usize,
}

impl Offsets {
    pub(crate) fn new(values: Vec<i32>) -> Self {
        let farthest = values.iter().copied().max().unwrap_or(0).max(0) as usize;
        Offsets { values, farthest }
    }

    pub(crate) fn table(&self) -> Table<'_> {
        Table { offsets: &self.values, farthest: self.farthest }
    }
}

/// The same, borrowed: none is greater than the farthest.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    offsets: &'a [i32],
    farthest: usize,
}

impl Table<'static> {
    /// One offset, that of the base itself.
    pub(crate) const BASE: Self = Table { offsets: &[0], farthest: 0 };
}

/// The operands of [`gather`].
#[derive(Clone, Copy)]
pub(crate) struct Gather<'a> {
    /// The values rows are made of.
    pub(crate) a: &'a [f32],
    /// Where in `a`.
    pub(crate) table: Table<'a>,
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
            if panel.columns <= S::F32_LANES {
                in_blocks!(rows, S, 1, gather_rows::<S, F, 1>(simd, &op, panel, &row, c));
            } else {
                in_blocks!(
                    rows,
                    S,
                    PANEL_VECTORS,
                    gather_rows::<S, F, PANEL_VECTORS>(simd, &op, panel, &row, c)
                );
            }
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
fn gather_rows<S: Simd, F: Fn(usize) -> Row, const NV: usize, const MR: usize>(
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
    let acc = gather_block::<S, MR, NV>(simd, op, b, &block);
    put(simd, acc, &block[..valid], n0, columns, op.accumulate, c);
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
    let zeros = op.zeros[..op.depth].as_ptr();
    let reach = op.table.farthest + op.depth;
    // No array::from_fn in here: its closures are not always inlined into code with more vector
    // instructions.
    let mut places = [(zeros, op.table.offsets.as_ptr()); MR];
    for (place, row) in places.iter_mut().zip(rows) {
        let values = &op.a[row.base..][..reach];
        let offsets = &op.table.offsets[row.table..][..op.taps.len()];
        *place = (values.as_ptr(), offsets.as_ptr());
    }
    for (t, tap) in op.taps.iter().enumerate() {
        let mut parts = [zeros; MR];
        for (part, (values, offsets)) in parts.iter_mut().zip(&places) {
            // SAFETY: a row has an offset for each tap, and `depth` values from each of them on,
            // sliced just above.
            unsafe {
                let offset = *offsets.add(t);
                if offset >= 0 {
                    *part = values.add(offset as usize);
                }
            }
        }
        let b = &b[*tap as usize * op.depth * width..][..op.depth * width];
        // SAFETY: every row has `depth` values and b has `depth` rows of `width`, sliced just
        // above.
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
