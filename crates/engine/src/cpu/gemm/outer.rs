//! Sums of outer products: weight gradients.

use pulp::{Arch, Simd, WithSimd};

use super::store;

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
        let inside = |[a, b]: &[u32; 2]| {
            (*a as usize + op.rows <= op.a.len()) & (*b as usize + op.n <= op.b.len())
        };
        assert!(op.pairs.iter().all(inside), "a factor is not there");
        let mut n0 = 0;
        while n0 < op.n {
            let left = op.n - n0;
            // SAFETY: every pair's factors are there, as asserted.
            n0 += unsafe {
                if left >= 2 * lanes {
                    outer_columns::<S, 2, false>(simd, &op, n0, 2 * lanes, c)
                } else if left >= lanes {
                    outer_columns::<S, 1, false>(simd, &op, n0, lanes, c)
                } else {
                    outer_columns::<S, 1, true>(simd, &op, n0, left, c)
                }
            };
        }
    }
}

/// All rows of C for NV vectors of columns, in the largest blocks that fit the registers; gives the number of columns.
///
/// # Safety
/// Every pair's factors are there, whole.
#[inline(always)]
unsafe fn outer_columns<S: Simd, const NV: usize, const TAIL: bool>(
    simd: S,
    op: &Outer,
    n0: usize,
    columns: usize,
    c: &mut [f32],
) -> usize {
    let many = S::REGISTER_COUNT >= 32;
    let mut i = 0;
    macro_rules! block {
        ($rows:literal) => {{
            // SAFETY: as the caller promises.
            unsafe { outer_block::<S, $rows, NV, TAIL>(simd, op, i, n0, columns, c) };
            i += $rows;
        }};
    }
    while i < op.rows {
        let left = op.rows - i;
        if left >= 16 && NV == 1 && many {
            block!(16);
        } else if left >= 8 && (NV == 1 || many) {
            block!(8);
        } else if left >= 6 && left != 8 {
            block!(6);
        } else if left >= 4 {
            block!(4);
        } else if left == 3 {
            block!(3);
        } else {
            block!(1);
        }
    }
    columns
}

/// MI rows × NV vectors of C, summed in registers over all pairs.
///
/// # Safety
/// Every pair's factors are there, whole.
#[inline(always)]
unsafe fn outer_block<S: Simd, const MI: usize, const NV: usize, const TAIL: bool>(
    simd: S,
    op: &Outer,
    i: usize,
    n0: usize,
    columns: usize,
    c: &mut [f32],
) {
    assert!(i + MI <= op.rows && n0 + columns <= op.n);
    assert!(TAIL || columns == NV * S::F32_LANES);
    let mut acc = [[simd.splat_f32s(0.0); NV]; MI];
    for [a, b] in op.pairs {
        // SAFETY: all pairs have `rows` and `n` values, as the caller asserts, and this block lies within those; without a
        // tail, `columns` is NV whole vectors.
        unsafe {
            let a = op.a.as_ptr().add(*a as usize + i);
            let b = op.b.as_ptr().add(*b as usize + n0);
            let b: [S::f32s; NV] = if TAIL {
                [simd.partial_load_f32s(std::slice::from_raw_parts(b, columns)); NV]
            } else {
                b.cast::<[S::f32s; NV]>().read_unaligned()
            };
            for (m, acc) in acc.iter_mut().enumerate() {
                let x = simd.splat_f32s(*a.add(m));
                for v in 0..NV {
                    acc[v] = simd.mul_add_e_f32s(x, b[v], acc[v]);
                }
            }
        }
    }
    for (m, acc) in acc.iter().enumerate() {
        let c = &mut c[(i + m) * op.n + n0..][..columns];
        store(simd, acc, true, c);
    }
}
