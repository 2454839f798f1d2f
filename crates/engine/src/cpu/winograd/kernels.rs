//! Kernels in and out of the transformed domain: U = G g Gᵀ, and the gradient dg = Gᵀ dU G. Kernels
//! lie along the lanes.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::super::gemm;
use super::super::simd::vectorised;
use super::transforms::{column, load, save};
use super::{PLACES, SIDE};

/// Length of a layer's transformed and packed kernels, [panel][place][in][width].
pub(in crate::cpu) fn packed_len(c: usize, n: usize, width: usize) -> usize {
    PLACES * gemm::packed_len(c, n, width)
}

/// Transforms and packs HWIO kernels of `c` input and `n` output channels. With `turn`, the kernels
/// of the input gradient: turned by 180° and channels exchanged, so that they take n and give c.
pub(in crate::cpu) fn pack(
    arch: Arch,
    weights: &[f32],
    c: usize,
    n: usize,
    turn: bool,
    packed: &mut [f32],
) {
    let width = gemm::panel_width(arch);
    let (depth, columns) = if turn { (n, c) } else { (c, n) };
    let panels = packed[..packed_len(depth, columns, width)].par_chunks_mut(PLACES * depth * width);
    panels.enumerate().for_each(|(panel, out)| {
        let first = panel * width;
        let used = width.min(columns - first);
        let mut taps = [[0.0; BLOCK * STRIP]; 9];
        for k in (0..depth).step_by(BLOCK) {
            for (t, kernels) in taps.iter_mut().enumerate() {
                if turn {
                    let from = &weights[((8 - t) * c + first) * n + k..];
                    fetch_turned(from, n, used, kernels);
                } else {
                    let from = &weights[(t * c + k) * n + first..];
                    fetch(from, n, used, kernels);
                }
            }
            arch.dispatch(KernelTransform {
                taps: &taps,
                depth,
                width,
                out: &mut out[k * width..],
            });
        }
    });
}

/// Kernels transformed together, one in each lane; no panel is wider.
pub(super) const STRIP: usize = 32;

/// Input channels fetched together: a cache line of the weights, where they lie along it. Depths
/// are multiples of it.
const BLOCK: usize = super::LANES;

/// kernels[k][j] = from[k][j], for rows `n` apart.
fn fetch(from: &[f32], n: usize, used: usize, kernels: &mut [f32; BLOCK * STRIP]) {
    for (from, to) in from.chunks(n).zip(kernels.chunks_exact_mut(STRIP)) {
        to[..used].copy_from_slice(&from[..used]);
    }
}

/// kernels[k][j] = from[j][k], for rows `n` apart.
fn fetch_turned(from: &[f32], n: usize, used: usize, kernels: &mut [f32; BLOCK * STRIP]) {
    for (j, from) in from.chunks(n).take(used).enumerate() {
        for (k, value) in from[..BLOCK].iter().enumerate() {
            kernels[k * STRIP + j % STRIP] = *value;
        }
    }
}

/// U = G g Gᵀ of kernels by tap, [input channel][lane], into a panel [place][input channel][lane].
struct KernelTransform<'a> {
    taps: &'a [[f32; BLOCK * STRIP]; 9],
    depth: usize,
    width: usize,
    out: &'a mut [f32],
}

impl WithSimd for KernelTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        assert!(self.out.len() >= ((PLACES - 1) * self.depth + BLOCK) * self.width);
        assert!(self.width <= STRIP && self.width.is_multiple_of(S::F32_LANES));
        for k in 0..BLOCK {
            for j in (0..self.width).step_by(S::F32_LANES) {
                let mut g = [simd.splat_f32s(0.0); 9];
                for (g, kernels) in g.iter_mut().zip(self.taps) {
                    // SAFETY: k < BLOCK, and the lanes from j on are below STRIP, as asserted.
                    *g = unsafe { load(simd, kernels.as_ptr().add(k * STRIP + j)) };
                }
                let half = [
                    kernel_line(simd, [g[0], g[3], g[6]]),
                    kernel_line(simd, [g[1], g[4], g[7]]),
                    kernel_line(simd, [g[2], g[5], g[8]]),
                ];
                for y in 0..SIDE {
                    let line = kernel_line(simd, column(&half, y));
                    for (x, value) in line.into_iter().enumerate() {
                        let at = ((y * SIDE + x) * self.depth + k) * self.width + j;
                        // SAFETY: `out` reaches to the last place's channel BLOCK − 1, as asserted.
                        unsafe { save(simd, self.out.as_mut_ptr().add(at), value) };
                    }
                }
            }
        }
    }
}

/// x / divisor.
#[inline(always)]
fn over<S: Simd>(s: S, x: S::f32s, divisor: f32) -> S::f32s {
    s.div_f32s(x, s.splat_f32s(divisor))
}

/// G along one line.
#[inline(always)]
fn kernel_line<S: Simd>(s: S, [a, b, c]: [S::f32s; 3]) -> [S::f32s; SIDE] {
    let outer = s.add_f32s(a, c);
    let even = s.add_f32s(over(s, a, 24.0), over(s, c, 6.0));
    let odd = over(s, b, 12.0);
    [
        s.mul_f32s(a, s.splat_f32s(0.25)),
        over(s, s.add_f32s(outer, b), -6.0),
        over(s, s.sub_f32s(outer, b), -6.0),
        s.add_f32s(even, odd),
        s.sub_f32s(even, odd),
        c,
    ]
}

/// Gᵀ along one line.
#[inline(always)]
fn kernel_gradient_line(u: [f32; SIDE]) -> [f32; 3] {
    let (near, far) = (u[1] + u[2], u[3] + u[4]);
    [
        u[0] / 4.0 - near / 6.0 + far / 24.0,
        (u[2] - u[1]) / 6.0 + (u[3] - u[4]) / 12.0,
        (far - near) / 6.0 + u[5],
    ]
}

vectorised! {
    /// u[e] = the sum over all parts of `used` values of place e from `at` on.
    pub(super) fn add_sums<'a>(
        sums: &'a [f32],
        place: usize,
        at: usize,
        used: usize,
        u: &'a mut [[f32; STRIP]; PLACES],
    ) {
        for part in sums.chunks_exact(PLACES * place) {
            for (e, u) in u.iter_mut().enumerate() {
                for (u, s) in u.iter_mut().zip(&part[e * place + at..][..used]) {
                    *u += s;
                }
            }
        }
    }
}

vectorised! {
    /// dg = Gᵀ dU G of a strip of 3×3 kernels.
    pub(super) fn kernel_gradient<'a>(u: &'a [[f32; STRIP]; PLACES], g: &'a mut [[f32; STRIP]; 9]) {
        for j in 0..STRIP {
            let mut half = [[0.0; 3]; SIDE];
            for (x, half) in half.iter_mut().enumerate() {
                let mut column = [0.0; SIDE];
                for (y, c) in column.iter_mut().enumerate() {
                    *c = u[y * SIDE + x][j];
                }
                *half = kernel_gradient_line(column);
            }
            for y in 0..3 {
                let mut line = [0.0; SIDE];
                for (l, half) in line.iter_mut().zip(&half) {
                    *l = half[y];
                }
                for (x, value) in kernel_gradient_line(line).into_iter().enumerate() {
                    g[y * 3 + x][j] = value;
                }
            }
        }
    }
}
