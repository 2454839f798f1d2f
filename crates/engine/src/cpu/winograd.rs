//! 3×3 convolutions of stride 1 by Winograd's minimal filtering F(4×4, 3×3): 36 multiplications for sixteen outputs where
//! the direct sum takes 144 (Lavin and Gray, 2016).
//!
//! ```text
//! V = Bᵀ d B   of each 6×6 tile d of the input        U = G g Gᵀ   of each 3×3 kernel g
//! M = Σ_c V[c] ⊙ U[c]                                 36 matrix products, one for each place in the tile
//! y = Aᵀ M A                                          a 4×4 tile of the output
//! ```
//!
//! In f32 it is off by about 5e-6 of the largest output (the direct sum by 2e-7; the tests state their tolerance).
//! The weight gradient is the adjoint: dU = Σ_tiles V ⊙ (A dy Aᵀ), dg = Gᵀ dU G. The input gradient is the convolution of
//! dy with the kernels turned round and their channels exchanged. Channels lie along the vector lanes, so this file is
//! used where both channel counts are multiples of [`LANES`]; `conv.rs` takes the rest.

use std::cell::RefCell;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::gemm::{self, Gather, Outer, Row};
use super::simd::vectorised;
use crate::Shape;

/// Channel counts must be a multiple of this: the widest vector there is.
pub(super) const LANES: usize = 16;
/// Extent of a tile of the input.
const SIDE: usize = 6;
/// Extent of a tile of the output.
const OUT: usize = 4;
/// Places in a tile of the input.
const PLACES: usize = SIDE * SIDE;
/// Values between the end of one place's rows and the next place's: without them all of them would fall into the
/// same set of the first-level cache.
const GAP: usize = 16;
/// Tiles transformed together: few enough for V to stay in the second-level cache, many enough to make up for reading all
/// of U.
const TILES: usize = 32;
/// Tiles whose products are summed in one go in the weight gradient.
const GRADIENT_TILES: usize = 64;

thread_local! {
    /// Working memory of a task; it grows to the largest layer's need and stays.
    static WORK: RefCell<Vec<f32>> = const { RefCell::new(vec![]) };
}

/// Runs `f` with at least `len` values of this thread's working memory.
fn with_work<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    WORK.with_borrow_mut(|work| {
        if work.len() < len {
            work.resize(len, 0.0);
        }
        f(&mut work[..len])
    })
}

/// From one place's rows to the next place's.
fn stride(tiles: usize, channels: usize) -> usize {
    tiles * channels + GAP
}

/// Values of all places' rows.
fn places_len(tiles: usize, channels: usize) -> usize {
    PLACES * stride(tiles, channels)
}

/// One place's rows.
fn place_of(values: &[f32], e: usize, tiles: usize, channels: usize) -> &[f32] {
    &values[e * stride(tiles, channels)..][..tiles * channels]
}

/// Where one tile reads and writes, as offsets in a picture; −1 where it reaches over the edge.
struct Tile {
    input: [i32; PLACES],
    output: [i32; OUT * OUT],
    /// Whether no input is over the edge.
    inside: bool,
}

/// The tiles of one direction: from pictures of shape `from` to pictures of shape `to`.
pub(super) struct Tiles {
    from: Shape,
    to: Shape,
    tiles: Vec<Tile>,
}

impl Tiles {
    pub(super) fn new(from: Shape, to: Shape, padding: [usize; 2]) -> Self {
        let offset = |s: Shape, y: usize, x: usize| {
            let inside = y < s.height && x < s.width;
            inside
                .then(|| ((y * s.width + x) * s.channels) as i32)
                .unwrap_or(-1)
        };
        let corners = (0..to.height)
            .step_by(OUT)
            .flat_map(|y| (0..to.width).step_by(OUT).map(move |x| (y, x)));
        let tile = |(y, x): (usize, usize)| {
            let input = std::array::from_fn(|e| {
                let (y, x) = (y + e / SIDE, x + e % SIDE);
                offset(from, y.wrapping_sub(padding[0]), x.wrapping_sub(padding[1]))
            });
            Tile {
                input,
                output: std::array::from_fn(|e| offset(to, y + e / OUT, x + e % OUT)),
                inside: input.iter().all(|at| *at >= 0),
            }
        };
        Tiles {
            from,
            to,
            tiles: corners.map(tile).collect(),
        }
    }

    fn count(&self) -> usize {
        self.tiles.len()
    }

    /// Tiles from tile `start` of the batch on, each with its picture.
    #[inline(always)]
    fn from_tile(&self, start: usize) -> impl Iterator<Item = (usize, &Tile)> {
        let (mut picture, mut t) = (start / self.count(), start % self.count());
        std::iter::from_fn(move || {
            let item = (picture, &self.tiles[t]);
            t += 1;
            if t == self.count() {
                (picture, t) = (picture + 1, 0);
            }
            Some(item)
        })
    }

    /// The convolution of the pictures that fill `y`, from picture `first` on.
    pub(super) fn convolve(
        &self,
        arch: Arch,
        x: &[f32],
        packed: &[f32],
        first: usize,
        accumulate: bool,
        y: &mut [f32],
    ) {
        let (c, n) = (self.from.channels, self.to.channels);
        let width = gemm::panel_width(arch);
        let tiles = y.len() / self.to.len() * self.count();
        let x = &x[first * self.from.len()..];
        let block = TILES.min(tiles);
        with_work(places_len(block, c) + places_len(block, width), |work| {
            let (v, m) = work.split_at_mut(places_len(block, c));
            for start in (0..tiles).step_by(block) {
                let used = block.min(tiles - start);
                arch.dispatch(InputTransform {
                    tiles: self,
                    x,
                    start,
                    used,
                    v,
                });
                for n0 in (0..n).step_by(width) {
                    let columns = width.min(n - n0);
                    for e in 0..PLACES {
                        let panel = (n0 / width * PLACES + e) * c * width;
                        let op = Gather {
                            a: place_of(v, e, used, c),
                            table: &[0],
                            zeros: &v[..c],
                            taps: &[0],
                            depth: c,
                            b: &packed[panel..][..c * width],
                            b_taps: 1,
                            n: columns,
                            accumulate: false,
                        };
                        let row = |i: usize| Row {
                            base: i * c,
                            table: 0,
                            c: i * columns,
                        };
                        let m = &mut m[e * stride(used, columns)..][..used * columns];
                        gemm::gather(arch, op, used, row, m);
                    }
                    arch.dispatch(OutputTransform {
                        tiles: self,
                        m,
                        start,
                        used,
                        n0,
                        columns,
                        accumulate,
                        y,
                    });
                }
            }
        });
    }
}

/// Length of a layer's transformed and packed kernels, [panel][place][in][width].
pub(super) fn packed_len(c: usize, n: usize, width: usize) -> usize {
    PLACES * gemm::packed_len(c, n, width)
}

/// Transforms and packs HWIO kernels of `c` input and `n` output channels. With `turn`, the kernels of the input
/// gradient: turned by 180° and channels exchanged, so that they take n and give c.
pub(super) fn pack(
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
        for k in 0..depth {
            let mut g = [[0.0; STRIP]; 9];
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
            let mut u = [[0.0; STRIP]; PLACES];
            kernel_transform(arch, &g, &mut u);
            for (e, u) in u.iter().enumerate() {
                out[(e * depth + k) * width..][..width].copy_from_slice(&u[..width]);
            }
        }
    });
}

/// Kernels transformed together, one in each lane; no panel is wider.
const STRIP: usize = 32;

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
    fn add_sums<'a>(
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
    fn kernel_gradient<'a>(u: &'a [[f32; STRIP]; PLACES], g: &'a mut [[f32; STRIP]; 9]) {
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

/// Bᵀ along one line.
#[inline(always)]
fn input_line<S: Simd>(simd: S, d: [S::f32s; SIDE]) -> [S::f32s; SIDE] {
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_f32s(simd.splat_f32s(k), a, b);
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
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_f32s(simd.splat_f32s(k), a, b);
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
    let times = |k: f32, a: S::f32s, b: S::f32s| simd.mul_add_f32s(simd.splat_f32s(k), a, b);
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
struct InputTransform<'a> {
    tiles: &'a Tiles,
    x: &'a [f32],
    start: usize,
    used: usize,
    v: &'a mut [f32],
}

impl WithSimd for InputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.tiles.from.channels;
        let stride = stride(self.used, channels);
        for ((picture, tile), i) in self.tiles.from_tile(self.start).zip(0..self.used) {
            let x = &self.x[picture * self.tiles.from.len()..][..self.tiles.from.len()];
            for c in (0..channels).step_by(S::F32_LANES) {
                let mut half = [[simd.splat_f32s(0.0); SIDE]; SIDE];
                for (half, at) in half.iter_mut().zip(tile.input.chunks_exact(SIDE)) {
                    let mut line = [simd.splat_f32s(0.0); SIDE];
                    for (d, at) in line.iter_mut().zip(at) {
                        if tile.inside || *at >= 0 {
                            *d = load(simd, x, *at as usize + c);
                        }
                    }
                    *half = input_line(simd, line);
                }
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
struct OutputTransform<'a> {
    tiles: &'a Tiles,
    m: &'a [f32],
    start: usize,
    used: usize,
    n0: usize,
    columns: usize,
    accumulate: bool,
    y: &'a mut [f32],
}

impl WithSimd for OutputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = stride(self.used, self.columns);
        for ((picture, tile), i) in self.tiles.from_tile(self.start).zip(0..self.used) {
            let base = picture * self.tiles.to.len() + self.n0;
            for c in (0..self.columns).step_by(S::F32_LANES) {
                let mut half = [[simd.splat_f32s(0.0); OUT]; SIDE];
                for (y, half) in half.iter_mut().enumerate() {
                    let mut line = [simd.splat_f32s(0.0); SIDE];
                    for (x, m) in line.iter_mut().enumerate() {
                        let at = (y * SIDE + x) * stride + i * self.columns + c;
                        *m = load(simd, self.m, at);
                    }
                    *half = output_line(simd, line);
                }
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
struct GradientTransform<'a> {
    tiles: &'a Tiles,
    dy: &'a [f32],
    start: usize,
    used: usize,
    out: &'a mut [f32],
}

impl WithSimd for GradientTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.tiles.to.channels;
        let stride = stride(self.used, channels);
        for ((picture, tile), i) in self.tiles.from_tile(self.start).zip(0..self.used) {
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

/// With many tiles and few channels, the weight gradient is summed by parts of the batch, of at least so many tiles each,
/// with a sum each; else by place and channel, all tasks reading the same transformed tiles.
const SPLIT_TILES: usize = 128;
/// At least and at most so many parts.
const SPLITS: std::ops::RangeInclusive<usize> = 8..=16;
/// At most so many pairs of channels where the sum is split.
const SPLIT_PAIRS: usize = 64 * 64;
/// Blocks of tiles transformed before their products are summed, where tasks share them.
const SHARED_BLOCKS: usize = 4;
/// Input channels of a task, where tasks share tiles.
const CHANNELS: usize = 64;

impl Tiles {
    fn splits(&self, batch: usize) -> usize {
        let parts = (batch * self.count() / SPLIT_TILES).min(batch);
        let pairs = self.from.channels * self.to.channels;
        if parts < *SPLITS.start() || pairs > SPLIT_PAIRS {
            1
        } else {
            parts.min(*SPLITS.end())
        }
    }

    /// Scratch values of [`Tiles::weight_gradient`].
    pub(super) fn gradient_scratch(&self, batch: usize) -> usize {
        let (c, n) = (self.from.channels, self.to.channels);
        let sums = self.splits(batch) * PLACES * c * n;
        match self.splits(batch) {
            1 => {
                let tiles = places_len(GRADIENT_TILES, c) + places_len(GRADIENT_TILES, n);
                sums + SHARED_BLOCKS * tiles
            }
            _ => sums,
        }
    }

    /// The gradient of the kernels, HWIO.
    pub(super) fn weight_gradient(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        scratch: &mut [f32],
        dw: &mut [f32],
    ) {
        let batch = dy.len() / self.to.len();
        let splits = self.splits(batch);
        let len = PLACES * self.from.channels * self.to.channels;
        let (sums, rest) = scratch.split_at_mut(splits * len);
        if splits == 1 {
            self.sum_shared(arch, x, dy, batch, rest, sums);
        } else {
            sums.par_chunks_mut(len).enumerate().for_each(|(s, sum)| {
                let pictures = batch * s / splits..batch * (s + 1) / splits;
                self.sum_split(arch, x, dy, pictures, sum);
            });
        }
        self.finish_gradient(arch, sums, dw);
    }

    /// dg = Gᵀ (Σ dU) G.
    fn finish_gradient(&self, arch: Arch, sums: &[f32], dw: &mut [f32]) {
        let (c, n) = (self.from.channels, self.to.channels);
        let out = Scattered::new(dw);
        (0..c).into_par_iter().for_each(|ci| {
            for co in (0..n).step_by(STRIP) {
                let used = STRIP.min(n - co);
                let mut u = [[0.0; STRIP]; PLACES];
                add_sums(arch, sums, c * n, ci * n + co, used, &mut u);
                let mut g = [[0.0; STRIP]; 9];
                kernel_gradient(arch, &u, &mut g);
                for (t, g) in g.iter().enumerate() {
                    // SAFETY: input channel ci is this task's alone.
                    unsafe { out.write((t * c + ci) * n + co, &g[..used]) };
                }
            }
        });
    }

    /// V and A dy Aᵀ of `used` tiles from tile `start` on.
    fn transform_both(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        start: usize,
        used: usize,
        v: &mut [f32],
        m: &mut [f32],
    ) {
        arch.dispatch(InputTransform {
            tiles: self,
            x,
            start,
            used,
            v,
        });
        arch.dispatch(GradientTransform {
            tiles: self,
            dy,
            start,
            used,
            out: m,
        });
    }

    /// The sum over some pictures, by one task.
    fn sum_split(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        pictures: std::ops::Range<usize>,
        sum: &mut [f32],
    ) {
        let (c, n) = (self.from.channels, self.to.channels);
        let (first, end) = (pictures.start * self.count(), pictures.end * self.count());
        sum.fill(0.0);
        let v_len = places_len(GRADIENT_TILES, c);
        with_work(v_len + places_len(GRADIENT_TILES, n), |work| {
            let (v, m) = work.split_at_mut(v_len);
            for start in (first..end).step_by(GRADIENT_TILES) {
                let used = GRADIENT_TILES.min(end - start);
                self.transform_both(arch, x, dy, start, used, v, m);
                for (e, sum) in sum.chunks_exact_mut(c * n).enumerate() {
                    self.add_block(arch, v, m, used, e, 0, sum);
                }
            }
        });
    }

    /// The sum over all pictures: blocks of tiles are transformed by one task each, then every task adds their products
    /// to its place and channels.
    fn sum_shared(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        batch: usize,
        scratch: &mut [f32],
        sum: &mut [f32],
    ) {
        let (c, n) = (self.from.channels, self.to.channels);
        let tiles = batch * self.count();
        let (v_len, m_len) = (places_len(GRADIENT_TILES, c), places_len(GRADIENT_TILES, n));
        let (v, rest) = scratch.split_at_mut(SHARED_BLOCKS * v_len);
        let m = &mut rest[..SHARED_BLOCKS * m_len];
        let group = if c % CHANNELS == 0 { CHANNELS } else { c };
        for start in (0..tiles).step_by(SHARED_BLOCKS * GRADIENT_TILES) {
            let blocks = (tiles - start).div_ceil(GRADIENT_TILES).min(SHARED_BLOCKS);
            let used = |block: usize| GRADIENT_TILES.min(tiles - start - block * GRADIENT_TILES);
            v.par_chunks_mut(v_len)
                .zip(m.par_chunks_mut(m_len))
                .take(blocks)
                .enumerate()
                .for_each(|(b, (v, m))| {
                    let start = start + b * GRADIENT_TILES;
                    self.transform_both(arch, x, dy, start, used(b), v, m);
                });
            let (v, m) = (&*v, &*m);
            let tasks = sum.par_chunks_mut(group * n).enumerate();
            tasks.for_each(|(g, sum)| {
                if start == 0 {
                    sum.fill(0.0);
                }
                let (e, channel) = (g * group / c, g * group % c);
                for b in 0..blocks {
                    let (v, m) = (&v[b * v_len..], &m[b * m_len..]);
                    self.add_block(arch, v, m, used(b), e, channel, sum);
                }
            });
        }
    }

    /// Adds a block's products of place e to `sum`, which begins at input channel `channel`.
    fn add_block(
        &self,
        arch: Arch,
        v: &[f32],
        m: &[f32],
        used: usize,
        e: usize,
        channel: usize,
        sum: &mut [f32],
    ) {
        let (c, n) = (self.from.channels, self.to.channels);
        let mut pairs = [[0; 2]; GRADIENT_TILES];
        for (i, pair) in pairs[..used].iter_mut().enumerate() {
            *pair = [(i * c + channel) as u32, (i * n) as u32];
        }
        let op = Outer {
            a: place_of(v, e, used, c),
            b: place_of(m, e, used, n),
            pairs: &pairs[..used],
            rows: sum.len() / n,
            n,
        };
        gemm::outer(arch, op, sum);
    }
}

/// A slice that several tasks write to, each at places of its own.
struct Scattered {
    start: *mut f32,
    len: usize,
}

// SAFETY: `write` is the only access, and its caller promises that no two threads write the same place.
unsafe impl Sync for Scattered {}

impl Scattered {
    fn new(values: &mut [f32]) -> Self {
        Scattered {
            start: values.as_mut_ptr(),
            len: values.len(),
        }
    }

    /// # Safety
    /// No other thread may write these places, and the slice must outlive the call.
    unsafe fn write(&self, at: usize, values: &[f32]) {
        assert!(at + values.len() <= self.len);
        // SAFETY: within the slice, as just checked; alone there, as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.start.add(at), values.len()) };
    }
}
