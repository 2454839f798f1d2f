//! Tiles in and out of the transformed domain: V = Bᵀ d B, y = Aᵀ M A, and A dy Aᵀ for the weight gradient. Channels lie
//! along the lanes.

use pulp::{Simd, WithSimd};

use super::{OUT, SIDE, Tiles, stride};

/// Bᵀ along one line.
#[inline(always)]
fn input_line<S: Simd>(simd: S, d: [S::f32s; SIDE]) -> [S::f32s; SIDE] {
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_e_f32s(simd.splat_f32s(k), a, b);
    let (even, odd) = (times(-4.0, d[2], d[4]), times(-4.0, d[1], d[3]));
    let (near, far) = (simd.sub_f32s(d[4], d[2]), simd.sub_f32s(d[3], d[1]));
    [
        times(4.0, d[0], times(-5.0, d[2], d[4])),
        simd.add_f32s(even, odd),
        simd.sub_f32s(even, odd),
        times(2.0, far, near),
        times(-2.0, far, near),
        times(4.0, d[1], times(-5.0, d[3], d[5])),
    ]
}

/// Aᵀ along one line.
#[inline(always)]
fn output_line<S: Simd>(simd: S, m: [S::f32s; SIDE]) -> [S::f32s; OUT] {
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_e_f32s(simd.splat_f32s(k), a, b);
    let (near, far) = (simd.add_f32s(m[1], m[2]), simd.add_f32s(m[3], m[4]));
    let (near_odd, far_odd) = (simd.sub_f32s(m[1], m[2]), simd.sub_f32s(m[3], m[4]));
    [
        simd.add_f32s(m[0], simd.add_f32s(near, far)),
        times(2.0, far_odd, near_odd),
        times(4.0, far, near),
        simd.add_f32s(m[5], times(8.0, far_odd, near_odd)),
    ]
}

/// A along one line.
#[inline(always)]
fn gradient_line<S: Simd>(simd: S, y: [S::f32s; OUT]) -> [S::f32s; SIDE] {
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_e_f32s(simd.splat_f32s(k), a, b);
    let (even, odd) = (simd.add_f32s(y[0], y[2]), simd.add_f32s(y[1], y[3]));
    let far_even = times(4.0, y[2], y[0]);
    let far_odd = times(4.0, y[3], y[1]);
    [
        y[0],
        simd.add_f32s(even, odd),
        simd.sub_f32s(even, odd),
        times(2.0, far_odd, far_even),
        times(-2.0, far_odd, far_even),
        y[3],
    ]
}

#[inline(always)]
fn load<S: Simd>(_: S, from: &[f32], at: usize) -> S::f32s {
    let from = &from[at..at + S::F32_LANES];
    // SAFETY: one whole vector, sliced just above.
    unsafe { from.as_ptr().cast::<S::f32s>().read_unaligned() }
}

#[inline(always)]
fn save<S: Simd>(_: S, to: &mut [f32], at: usize, value: S::f32s) {
    let to = &mut to[at..at + S::F32_LANES];
    // SAFETY: one whole vector, sliced just above.
    unsafe { to.as_mut_ptr().cast::<S::f32s>().write_unaligned(value) }
}

/// The six lines of a tile. Filled one by one in a loop, the array would first be cleared, by a call to memset.
#[inline(always)]
fn six<T>(line: impl Fn(usize) -> T) -> [T; SIDE] {
    [line(0), line(1), line(2), line(3), line(4), line(5)]
}

/// Column x of a tile held by lines.
#[inline(always)]
fn column<T: Copy, const W: usize, const H: usize>(lines: &[[T; W]; H], x: usize) -> [T; H] {
    let mut column = [lines[0][x]; H];
    for (c, line) in column.iter_mut().zip(lines) {
        *c = line[x];
    }
    column
}

/// V = Bᵀ d B of `used` tiles from tile `start` on, [place][tile][channel].
pub(super) struct InputTransform<'a> {
    pub(super) tiles: &'a Tiles,
    pub(super) x: &'a [f32],
    pub(super) start: usize,
    pub(super) used: usize,
    pub(super) v: &'a mut [f32],
}

impl WithSimd for InputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.tiles.from.channels;
        let stride = stride(self.used, channels);
        for ((picture, tile), i) in self.tiles.tiles_from(self.start).zip(0..self.used) {
            let x = &self.x[picture * self.tiles.from.len()..][..self.tiles.from.len()];
            for c in (0..channels).step_by(S::F32_LANES) {
                let half = six(
                    #[inline(always)]
                    |y| {
                        let mut line = [simd.splat_f32s(0.0); SIDE];
                        for (d, at) in line.iter_mut().zip(&tile.input[y * SIDE..]) {
                            if tile.inside || *at >= 0 {
                                *d = load(simd, x, *at as usize + c);
                            }
                        }
                        input_line(simd, line)
                    },
                );
                for x in 0..SIDE {
                    let column = input_line(simd, column(&half, x));
                    for (y, value) in column.into_iter().enumerate() {
                        let at = (y * SIDE + x) * stride + i * channels + c;
                        save(simd, self.v, at, value);
                    }
                }
            }
        }
    }
}

/// y (+)= Aᵀ M A of `used` tiles from tile `start` on, for a panel of columns; M is [place][tile][column].
pub(super) struct OutputTransform<'a> {
    pub(super) tiles: &'a Tiles,
    pub(super) m: &'a [f32],
    pub(super) start: usize,
    pub(super) used: usize,
    pub(super) n0: usize,
    pub(super) columns: usize,
    pub(super) accumulate: bool,
    pub(super) y: &'a mut [f32],
}

impl WithSimd for OutputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = stride(self.used, self.columns);
        for ((picture, tile), i) in self.tiles.tiles_from(self.start).zip(0..self.used) {
            let base = picture * self.tiles.to.len() + self.n0;
            for c in (0..self.columns).step_by(S::F32_LANES) {
                let half = six(
                    #[inline(always)]
                    |y| {
                        let mut line = [simd.splat_f32s(0.0); SIDE];
                        for (x, m) in line.iter_mut().enumerate() {
                            let at = (y * SIDE + x) * stride + i * self.columns + c;
                            *m = load(simd, self.m, at);
                        }
                        output_line(simd, line)
                    },
                );
                for x in 0..OUT {
                    let values = output_line(simd, column(&half, x));
                    for (y, value) in values.into_iter().enumerate() {
                        let at = tile.output[y * OUT + x];
                        if at < 0 {
                            continue;
                        }
                        let at = base + at as usize + c;
                        let value = if self.accumulate {
                            simd.add_f32s(value, load(simd, self.y, at))
                        } else {
                            value
                        };
                        save(simd, self.y, at, value);
                    }
                }
            }
        }
    }
}

/// A dy Aᵀ of `used` tiles from tile `start` on, [place][tile][channel].
pub(super) struct GradientTransform<'a> {
    pub(super) tiles: &'a Tiles,
    pub(super) dy: &'a [f32],
    pub(super) start: usize,
    pub(super) used: usize,
    pub(super) out: &'a mut [f32],
}

impl WithSimd for GradientTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.tiles.to.channels;
        let stride = stride(self.used, channels);
        for ((picture, tile), i) in self.tiles.tiles_from(self.start).zip(0..self.used) {
            let dy = &self.dy[picture * self.tiles.to.len()..][..self.tiles.to.len()];
            for c in (0..channels).step_by(S::F32_LANES) {
                let mut half = [[simd.splat_f32s(0.0); SIDE]; OUT];
                for (half, at) in half.iter_mut().zip(tile.output.chunks_exact(OUT)) {
                    let mut line = [simd.splat_f32s(0.0); OUT];
                    for (d, at) in line.iter_mut().zip(at) {
                        if *at >= 0 {
                            *d = load(simd, dy, *at as usize + c);
                        }
                    }
                    *half = gradient_line(simd, line);
                }
                for x in 0..SIDE {
                    let values = gradient_line(simd, column(&half, x));
                    for (y, value) in values.into_iter().enumerate() {
                        let at = (y * SIDE + x) * stride + i * channels + c;
                        save(simd, self.out, at, value);
                    }
                }
            }
        }
    }
}
