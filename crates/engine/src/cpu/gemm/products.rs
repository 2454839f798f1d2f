//! Many small matrix products of one shape.

use pulp::{Arch, Simd, WithSimd};

use super::{PANEL_VECTORS, add_products, in_blocks};

/// The operands of [`products`]: several matrix products of one shape, C[m][n] = Σ_k A[m][k] ·
/// B[k][n], each with its own A, B (a packed panel) and C.
#[derive(Clone, Copy)]
pub(crate) struct Products<'a> {
    /// How many.
    pub(crate) count: usize,
    /// Rows of A and of C.
    pub(crate) rows: usize,
    /// Columns of A, rows of B.
    pub(crate) depth: usize,
    /// Columns of C: whole vectors, at most a panel's.
    pub(crate) columns: usize,
    /// The left factors, contiguous rows.
    pub(crate) a: &'a [f32],
    /// From one A to the next.
    pub(crate) a_stride: usize,
    /// The panels, one behind the other.
    pub(crate) b: &'a [f32],
    /// From one C to the next.
    pub(crate) c_stride: usize,
}

/// Computes all products.
#[inline]
pub(crate) fn products(arch: Arch, op: Products, c: &mut [f32]) {
    arch.dispatch(ProductsCall { op, c });
}

struct ProductsCall<'a> {
    op: Products<'a>,
    c: &'a mut [f32],
}

impl WithSimd for ProductsCall<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ProductsCall { op, c } = self;
        let width = S::F32_LANES * PANEL_VECTORS;
        for i in 0..op.count {
            let a = &op.a[i * op.a_stride..][..op.rows * op.depth];
            let b = &op.b[i * op.depth * width..][..op.depth * width];
            let c = &mut c[i * op.c_stride..][..op.rows * op.columns];
            if op.columns == width {
                in_blocks!(
                    op.rows,
                    S,
                    PANEL_VECTORS,
                    dense_rows::<S, PANEL_VECTORS>(simd, op.depth, a, b, c)
                );
            } else {
                assert_eq!(op.columns, S::F32_LANES, "columns are whole vectors");
                in_blocks!(op.rows, S, 1, dense_rows::<S, 1>(simd, op.depth, a, b, c));
            }
        }
    }
}

/// `valid` rows of C from row `first` on, at most MR, of NV vectors: C = A · B.
#[inline(always)]
fn dense_rows<S: Simd, const NV: usize, const MR: usize>(
    simd: S,
    depth: usize,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    first: usize,
    valid: usize,
) {
    let a = &a[first * depth..][..valid * depth];
    let columns = NV * S::F32_LANES;
    let c = &mut c[first * columns..][..valid * columns];
    assert!(valid <= MR && b.len() == depth * S::F32_LANES * PANEL_VECTORS);
    let mut rows = [a.as_ptr(); MR];
    for (m, row) in rows.iter_mut().enumerate() {
        // Rows beyond the last valid one are that one again, and not stored.
        // SAFETY: a has `valid` rows, sliced just above.
        *row = unsafe { a.as_ptr().add(m.min(valid - 1) * depth) };
    }
    let mut acc = [[simd.splat_f32s(0.0); NV]; MR];
    // SAFETY: every row has `depth` values, and b as many rows, as asserted.
    unsafe { add_products(simd, rows, b.as_ptr(), depth, &mut acc) };
    for (m, acc) in acc.iter().enumerate() {
        if m < valid {
            // SAFETY: c has `valid` rows of NV vectors, sliced just above.
            unsafe {
                let c = c.as_mut_ptr().add(m * columns).cast::<[S::f32s; NV]>();
                c.write_unaligned(*acc);
            }
        }
    }
}
