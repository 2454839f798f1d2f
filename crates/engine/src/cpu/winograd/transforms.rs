//! Tiles in and out of the transformed domain: V = Bᵀ d B, y = Aᵀ M A, and A dy Aᵀ for the weight
//! gradient. Channels lie along the lanes.

use pulp::{Simd, WithSimd};

use super::{LANES, OUT, PLACES, SIDE, Tiles, stride};

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

/// The vector at `from`.
///
/// # Safety
/// A whole vector lies there.
#[inline(always)]
pub(super) unsafe fn load<S: Simd>(_: S, from: *const f32) -> S::f32s {
    // SAFETY: as the caller promises.
    unsafe { from.cast::<S::f32s>().read_unaligned() }
}

/// Writes a vector.
///
/// # Safety
/// There is room for it at `to`.
#[inline(always)]
pub(super) unsafe fn save<S: Simd>(_: S, to: *mut f32, value: S::f32s) {
    // SAFETY: as the caller promises.
    unsafe { to.cast::<S::f32s>().write_unaligned(value) }
}

/// What is read beyond a picture's edge: a vector of zeros.
static BEYOND: [f32; LANES] = [0.0; LANES];

/// The vector at an offset of a picture, or zeros where the offset is negative. Which is decided by
/// the address, not by a branch: tiles at the edges would have it guessed wrong.
///
/// # Safety
/// Offsets that are not negative have a whole vector behind them; all are such if `INSIDE`.
#[inline(always)]
unsafe fn load_at<S: Simd, const INSIDE: bool>(s: S, picture: *const f32, at: i32) -> S::f32s {
    let inside = picture.wrapping_add(at as usize);
    let from = if INSIDE || at >= 0 { inside } else { BEYOND.as_ptr() };
    // SAFETY: as the caller promises; no vector is longer than `BEYOND`.
    unsafe { load(s, from) }
}

/// The six lines of a tile. Filled one by one in a loop, the array would first be cleared, by a
/// call to memset.
#[inline(always)]
fn six<T>(line: impl Fn(usize) -> T) -> [T; SIDE] {
    [line(0), line(1), line(2), line(3), line(4), line(5)]
}

/// The four lines of a tile of the output.
#[inline(always)]
fn four<T>(line: impl Fn(usize) -> T) -> [T; OUT] {
    [line(0), line(1), line(2), line(3)]
}

/// Column x of a tile held by lines.
#[inline(always)]
pub(super) fn column<T: Copy, const W: usize, const H: usize>(
    lines: &[[T; W]; H],
    x: usize,
) -> [T; H] {
    let mut column = [lines[0][x]; H];
    for (c, line) in column.iter_mut().zip(lines) {
        *c = line[x];
    }
    column
}

/// Into the transformed domain, [place][tile][channel], `used` tiles from tile `start` on: V =
/// Bᵀ d B of the input, or A dy Aᵀ of the output's gradient.
pub(super) struct IntoPlaces<'a, const GRADIENT: bool> {
    pub(super) tiles: &'a Tiles,
    pub(super) from: &'a [f32],
    pub(super) start: usize,
    pub(super) used: usize,
    pub(super) to: &'a mut [f32],
}

impl<const GRADIENT: bool> WithSimd for IntoPlaces<'_, GRADIENT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let shape = if GRADIENT { self.tiles.to } else { self.tiles.from };
        let stride = stride(self.used, shape.channels);
        self.tiles.assert_whole(shape, self.from, self.start, self.used);
        assert!(self.to.len() >= PLACES * stride);
        for ((picture, tile), i) in self.tiles.tiles_from(self.start).zip(0..self.used) {
            for c in (0..shape.channels).step_by(S::F32_LANES) {
                // SAFETY: the picture is whole, as asserted, a tile's offsets are its places, and
                // channels are whole vectors; there is a vector for each place of tile i, as
                // asserted.
                unsafe {
                    let from = self.from.as_ptr().add(picture * shape.len() + c);
                    let to = self.to.as_mut_ptr().add(i * shape.channels + c);
                    if GRADIENT {
                        gradient_tile(simd, from, &tile.output, to, stride);
                    } else if tile.inside {
                        input_tile::<S, true>(simd, from, &tile.input, to, stride);
                    } else {
                        input_tile::<S, false>(simd, from, &tile.input, to, stride);
                    }
                }
            }
        }
    }
}

/// V = Bᵀ d B of one tile's vector of channels; places are `stride` apart in `v`.
///
/// # Safety
/// There is a vector at every offset of `x` that is not negative (none is, if `INSIDE`), and at
/// every place of `v`.
#[inline(always)]
unsafe fn input_tile<S: Simd, const INSIDE: bool>(
    simd: S,
    x: *const f32,
    at: &[i32; PLACES],
    v: *mut f32,
    stride: usize,
) {
    let half = six(
        #[inline(always)]
        |y| {
            // SAFETY: as the caller promises.
            let d = six(
                #[inline(always)]
                |column| unsafe { load_at::<S, INSIDE>(simd, x, at[y * SIDE + column]) },
            );
            input_line(simd, d)
        },
    );
    for x in 0..SIDE {
        let column = input_line(simd, column(&half, x));
        for (y, value) in column.into_iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { save(simd, v.add((y * SIDE + x) * stride), value) };
        }
    }
}

/// y (+)= Aᵀ M A of `used` tiles from tile `start` on, for a panel of columns; M is
/// [place][tile][column].
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
        let (to, stride) = (self.tiles.to, stride(self.used, self.columns));
        self.tiles.assert_whole(to, self.y, self.start, self.used);
        assert!(self.n0 + self.columns <= to.channels && self.m.len() >= PLACES * stride);
        for ((picture, tile), i) in self.tiles.tiles_from(self.start).zip(0..self.used) {
            for c in (0..self.columns).step_by(S::F32_LANES) {
                // SAFETY: the picture is whole, as asserted, a tile's offsets are its places, and
                // columns are whole vectors; M has a vector for each place of tile i, as asserted.
                unsafe {
                    let m = self.m.as_ptr().add(i * self.columns + c);
                    let y = self.y.as_mut_ptr();
                    let y = y.add(picture * to.len() + self.n0 + c);
                    match self.accumulate {
                        true => output_tile::<S, true>(simd, m, stride, &tile.output, y),
                        false => output_tile::<S, false>(simd, m, stride, &tile.output, y),
                    }
                }
            }
        }
    }
}

/// y (+)= Aᵀ M A of one tile's vector of channels; places are `stride` apart in `m`.
///
/// # Safety
/// There is a vector at every place of `m` and at every offset of `y` that is not negative.
#[inline(always)]
unsafe fn output_tile<S: Simd, const ACCUMULATE: bool>(
    simd: S,
    m: *const f32,
    stride: usize,
    at: &[i32; OUT * OUT],
    out: *mut f32,
) {
    let half = six(
        #[inline(always)]
        |y| {
            // SAFETY: as the caller promises.
            let line = six(
                #[inline(always)]
                |x| unsafe { load(simd, m.add((y * SIDE + x) * stride)) },
            );
            output_line(simd, line)
        },
    );
    for x in 0..OUT {
        let values = output_line(simd, column(&half, x));
        for (y, mut value) in values.into_iter().enumerate() {
            let at = at[y * OUT + x];
            if at < 0 {
                continue;
            }
            // SAFETY: as the caller promises.
            unsafe {
                let out = out.add(at as usize);
                if ACCUMULATE {
                    value = simd.add_f32s(value, load(simd, out));
                }
                save(simd, out, value);
            }
        }
    }
}

/// A dy Aᵀ of one tile's vector of channels; places are `stride` apart in `out`.
///
/// # Safety
/// There is a vector at every offset of `dy` that is not negative, and at every place of `out`.
#[inline(always)]
unsafe fn gradient_tile<S: Simd>(
    simd: S,
    dy: *const f32,
    at: &[i32; OUT * OUT],
    out: *mut f32,
    stride: usize,
) {
    let half = four(
        #[inline(always)]
        |y| {
            // SAFETY: as the caller promises.
            let line = four(
                #[inline(always)]
                |x| unsafe { load_at::<S, false>(simd, dy, at[y * OUT + x]) },
            );
            gradient_line(simd, line)
        },
    );
    for x in 0..SIDE {
        let values = gradient_line(simd, column(&half, x));
        for (y, value) in values.into_iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { save(simd, out.add((y * SIDE + x) * stride), value) };
        }
    }
}
