//! Sums of outer products: weight gradients.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::store;

/// Where the factors of each product to sum start, in `a` and in `b`.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a> {
    starts: &'a [[u32; 2]],
    /// None starts farther than here.
    farthest: [u32; 2],
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(starts: &'a [[u32; 2]]) -> Self {
        let farthest = (starts.iter()).fold([0; 2], |[x, y], [a, b]| [x.max(*a), y.max(*b)]);
        Pairs { starts, farthest }
    }
}

/// Pairs that are kept.
pub(crate) struct PairList {
    starts: Vec<[u32; 2]>,
    farthest: [u32; 2],
}

impl PairList {
    pub(crate) fn new(starts: Vec<[u32; 2]>) -> Self {
        let farthest = Pairs::new(&starts).farthest;
        PairList { starts, farthest }
    }

    /// Some of them.
    pub(crate) fn part(&self, range: Range<usize>) -> Pairs<'_> {
        Pairs { starts: &self.starts[range], farthest: self.farthest }
    }
}

/// The operands of [`outer`].
#[derive(Clone, Copy)]
pub(crate) struct Outer<'a> {
    /// The values the left factors are read from.
    pub(crate) a: &'a [f32],
    /// The values the right factors are read from.
    pub(crate) b: &'a [f32],
    /// Where.
    pub(crate) pairs: Pairs<'a>,
    /// How often all of them are summed, each time so much farther on in `a` and in `b`.
    pub(crate) times: usize,
    pub(crate) apart: [usize; 2],
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
        if op.times == 0 || op.pairs.starts.is_empty() {
            return;
        }
        let end = |i: usize| (op.times - 1) * op.apart[i] + op.pairs.farthest[i] as usize;
        let inside = end(0) + op.rows <= op.a.len() && end(1) + op.n <= op.b.len();
        assert!(inside, "a factor is not there");
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

/// All rows of C for NV vectors of columns, in the largest blocks that fit the registers; gives the
/// number of columns.
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
    for time in 0..op.times {
        let [first_a, first_b] = [time * op.apart[0] + i, time * op.apart[1] + n0];
        for [a, b] in op.pairs.starts {
            let (a, b) = (first_a + *a as usize, first_b + *b as usize);
            // SAFETY: all pairs have `rows` and `n` values, as the caller asserts, and this block
            // lies within those; without a tail, `columns` is NV whole vectors. In one, what lies
            // behind the columns is not stored.
            unsafe {
                let (a, at) = (op.a.as_ptr().add(a), op.b.as_ptr().add(b));
                let b: [S::f32s; NV] = if TAIL && b + S::F32_LANES > op.b.len() {
                    [simd.partial_load_f32s(std::slice::from_raw_parts(at, columns)); NV]
                } else {
                    at.cast::<[S::f32s; NV]>().read_unaligned()
                };
                for (m, acc) in acc.iter_mut().enumerate() {
                    let x = simd.splat_f32s(*a.add(m));
                    for v in 0..NV {
                        acc[v] = simd.mul_add_e_f32s(x, b[v], acc[v]);
                    }
                }
            }
        }
    }
    for (m, acc) in acc.iter().enumerate() {
        let c = &mut c[(i + m) * op.n + n0..][..columns];
        store(simd, acc, true, c);
    }
}
