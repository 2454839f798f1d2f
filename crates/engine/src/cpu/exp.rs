//! e^x for vectors of f32.
//!
//! x = n·ln 2 + r with |r| ≤ ln 2 / 2; e^r by a polynomial, 2^n by the exponent's bits. Within 2
//! units in the last place for −87.3 ≤ x ≤ 88; below that the result is 0; NaN stays NaN. Above 88
//! it is not defined: a softmax that subtracts its maximum first never asks.

use pulp::Simd;

/// The least x whose e^x is a normal number.
const LEAST: f32 = -87.336_54;

/// e^x, lane by lane.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Adding 1.5·2²³ rounds to an integer and leaves it in the low bits, here with the exponent's
    // bias on top.
    let shift = simd.splat_f32s(12_582_912.0 + 127.0);
    let shifted = simd.mul_add_e_f32s(x, simd.splat_f32s(std::f32::consts::LOG2_E), shift);
    let n = simd.sub_f32s(shifted, shift);
    // ln 2 in two parts, so that n times the first is exact.
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-0.693_359_4), x);
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(2.121_944_4e-4), r);
    // Cephes' expf: e^r = 1 + r + r²·p(r).
    let mut p = simd.splat_f32s(1.987_569_1e-4);
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = simd.mul_add_e_f32s(p, r, simd.splat_f32s(c));
    }
    let r_plus_one = simd.add_f32s(r, simd.splat_f32s(1.0));
    let p = simd.mul_add_e_f32s(p, simd.mul_f32s(r, r), r_plus_one);
    let exponent =
        simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let result = simd.mul_f32s(p, simd.transmute_f32s_u32s(exponent));
    let tiny = simd.less_than_f32s(x, simd.splat_f32s(LEAST));
    simd.select_f32s(tiny, simd.splat_f32s(0.0), result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimdLevel;
    use pulp::WithSimd;

    struct Each<'a>(&'a [f32], &'a mut [f32]);

    impl WithSimd for Each<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let lanes = S::F32_LANES;
            for (x, y) in self.0.chunks(lanes).zip(self.1.chunks_mut(lanes)) {
                simd.partial_store_f32s(y, exp(simd, simd.partial_load_f32s(x)));
            }
        }
    }

    fn exp_of(level: SimdLevel, x: &[f32]) -> Vec<f32> {
        let mut y = vec![f32::NAN; x.len()];
        level.arch().unwrap().dispatch(Each(x, &mut y));
        y
    }

    #[test]
    fn within_two_ulp_of_f64() {
        let x: Vec<f32> =
            (0..1_000_003).map(|i| -87.3 + i as f32 * (175.3 / 1_000_003.0)).collect();
        for level in SimdLevel::available() {
            let worst = (x.iter().zip(exp_of(level, &x)))
                .map(|(x, y)| {
                    let exact = f64::from(*x).exp();
                    let ulp = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
                    (f64::from(y) - exact).abs() / ulp
                })
                .fold(0.0, f64::max);
            assert!(worst < 2.0, "{level}: {worst} ulp");
        }
    }

    #[test]
    fn ends_of_the_range() {
        for level in SimdLevel::available() {
            let y = exp_of(level, &[0.0, -90.0, -1e30, f32::NEG_INFINITY, f32::NAN]);
            assert_eq!(y[..4], [1.0, 0.0, 0.0, 0.0], "{level}");
            assert!(y[4].is_nan(), "{level}");
        }
    }
}
