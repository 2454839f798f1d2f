//! Kernels in and out of the transformed domain: U = G g Gᵀ, and the gradient dg = Gᵀ dU G. Kernels lie along the lanes.

use pulp::Arch;
use rayon::prelude::*;

use super::super::gemm;
use super::super::simd::vectorised;
use super::{PLACES, SIDE};

/// Length of a layer's transformed and packed kernels, [panel][place][in][width].
pub(in crate::cpu) fn packed_len(c: usize, n: usize, width: usize) -> usize {
    PLACES * gemm::packed_len(c, n, width)
}

/// Transforms and packs HWIO kernels of `c` input and `n` output channels. With `turn`, the kernels of the input
/// gradient: turned by 180° and channels exchanged, so that they take n and give c.
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
        let n0 = panel * width;
        let (mut g, mut u) = ([[0.0; STRIP]; 9], [[0.0; STRIP]; PLACES]);
        for k in 0..depth {
            for (t, g) in g.iter_mut().enumerate() {
                for (j, g) in g[..width.min(columns - n0)].iter_mut().enumerate() {
                    let (tap, ci, co) = if turn {
                        (8 - t, n0 + j, k)
                    } else {
                        (t, k, n0 + j)
                    };
                    *g = weights[(tap * c + ci) * n + co];
                }
            }
            kernel_transform(arch, &g, &mut u);
            for (e, u) in u.iter().enumerate() {
                out[(e * depth + k) * width..][..width].copy_from_slice(&u[..width]);
            }
        }
    });
}

/// Kernels transformed together, one in each lane; no panel is wider.
pub(super) const STRIP: usize = 32;

/// G along one line.
#[inline(always)]
fn kernel_line([a, b, c]: [f32; 3]) -> [f32; SIDE] {
    let (outer, middle) = (a + c, b);
    let (even, odd) = (a / 24.0 + c / 6.0, b / 12.0);
    [
        a / 4.0,
        (outer + middle) / -6.0,
        (outer - middle) / -6.0,
        even + odd,
        even - odd,
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
    /// U = G g Gᵀ of a strip of 3×3 kernels.
    fn kernel_transform<'a>(g: &'a [[f32; STRIP]; 9], u: &'a mut [[f32; STRIP]; PLACES]) {
        for j in 0..STRIP {
            let mut half = [[0.0; SIDE]; 3];
            for (x, half) in half.iter_mut().enumerate() {
                *half = kernel_line([g[x][j], g[3 + x][j], g[6 + x][j]]);
            }
            for y in 0..SIDE {
                let line = kernel_line([half[0][y], half[1][y], half[2][y]]);
                for (x, value) in line.into_iter().enumerate() {
                    u[y * SIDE + x][j] = value;
                }
            }
        }
    }
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
