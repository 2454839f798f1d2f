//! 3×3 convolutions of stride 1 by Winograd's minimal filtering F(2×2, 3×3): 16 multiplications for four outputs where
//! the direct sum takes 36 (Lavin and Gray, 2016).
//!
//! ```text
//! V = Bᵀ d B   of each 4×4 tile d of the input        U = G g Gᵀ   of each 3×3 kernel g
//! M = Σ_c V[c] ⊙ U[c]                                 sixteen matrix products, one for each place in the tile
//! y = Aᵀ M A                                          a 2×2 tile of the output
//! ```
//!
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
/// Places in a tile.
const PLACES: usize = 16;
/// Values between the end of one place's rows and the next place's: without them all sixteen would fall into the same
/// set of the first-level cache.
const GAP: usize = 16;
/// Tiles transformed together, about: their V should stay in the second-level cache.
const TILES: usize = 64;
/// Tiles whose products are summed in one go in the weight gradient.
const GRADIENT_TILES: usize = 128;

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
    output: [i32; 4],
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
            inside.then(|| ((y * s.width + x) * s.channels) as i32).unwrap_or(-1)
        };
        let corners = (0..to.height).step_by(2).flat_map(|y| (0..to.width).step_by(2).map(move |x| (y, x)));
        let tile = |(y, x): (usize, usize)| {
            let input = std::array::from_fn(|e| {
                let (y, x) = (y + e / 4, x + e % 4);
                offset(from, y.wrapping_sub(padding[0]), x.wrapping_sub(padding[1]))
            });
            Tile {
                input,
                output: std::array::from_fn(|e| offset(to, y + e / 2, x + e % 2)),
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
pub(super) fn pack(arch: Arch, weights: &[f32], c: usize, n: usize, turn: bool, packed: &mut [f32]) {
    let width = gemm::panel_width(arch);
    let (depth, columns) = if turn { (n, c) } else { (c, n) };
    let panels = packed[..packed_len(depth, columns, width)].par_chunks_mut(PLACES * depth * width);
    panels.enumerate().for_each(|(panel, out)| {
        let n0 = panel * width;
        for k in 0..depth {
            let mut g = [[0.0; STRIP]; 9];
            for (t, g) in g.iter_mut().enumerate() {
                for (j, g) in g[..width.min(columns - n0)].iter_mut().enumerate() {
                    let (tap, ci, co) = if turn { (8 - t, n0 + j, k) } else { (t, k, n0 + j) };
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

vectorised! {
    /// U = G g Gᵀ of a strip of 3×3 kernels.
    fn kernel_transform<'a>(g: &'a [[f32; STRIP]; 9], u: &'a mut [[f32; STRIP]; PLACES]) {
        for j in 0..STRIP {
            let mut half = [[0.0; 4]; 3];
            for x in 0..3 {
                let (a, b, c) = (g[x][j], g[3 + x][j], g[6 + x][j]);
                half[x] = [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c];
            }
            for y in 0..4 {
                let (a, b, c) = (half[0][y], half[1][y], half[2][y]);
                u[y * 4][j] = a;
                u[y * 4 + 1][j] = 0.5 * (a + b + c);
                u[y * 4 + 2][j] = 0.5 * (a - b + c);
                u[y * 4 + 3][j] = c;
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
            let mut half = [[0.0; 3]; 4];
            for x in 0..4 {
                let (a, b, c, d) = (u[x][j], u[4 + x][j], u[8 + x][j], u[12 + x][j]);
                half[x] = [a + 0.5 * (b + c), 0.5 * (b - c), 0.5 * (b + c) + d];
            }
            for y in 0..3 {
                let (a, b, c, d) = (half[0][y], half[1][y], half[2][y], half[3][y]);
                g[y * 3][j] = a + 0.5 * (b + c);
                g[y * 3 + 1][j] = 0.5 * (b - c);
                g[y * 3 + 2][j] = 0.5 * (b + c) + d;
            }
        }
    }
}

/// Bᵀ along one line.
#[inline(always)]
fn input_line<S: Simd>(simd: S, d: [S::f32s; 4]) -> [S::f32s; 4] {
    [
        simd.sub_f32s(d[0], d[2]),
        simd.add_f32s(d[1], d[2]),
        simd.sub_f32s(d[2], d[1]),
        simd.sub_f32s(d[1], d[3]),
    ]
}

/// Aᵀ along one line.
#[inline(always)]
fn output_line<S: Simd>(simd: S, m: [S::f32s; 4]) -> [S::f32s; 2] {
    [
        simd.add_f32s(simd.add_f32s(m[0], m[1]), m[2]),
        simd.sub_f32s(simd.sub_f32s(m[1], m[2]), m[3]),
    ]
}

/// A along one line.
#[inline(always)]
fn gradient_line<S: Simd>(simd: S, y: [S::f32s; 2]) -> [S::f32s; 4] {
    [
        y[0],
        simd.add_f32s(y[0], y[1]),
        simd.sub_f32s(y[0], y[1]),
        simd.sub_f32s(simd.splat_f32s(0.0), y[1]),
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
                let mut d = [[simd.splat_f32s(0.0); 4]; 4];
                if tile.inside {
                    for e in 0..PLACES {
                        d[e / 4][e % 4] = load(simd, x, tile.input[e] as usize + c);
                    }
                } else {
                    for e in 0..PLACES {
                        if tile.input[e] >= 0 {
                            d[e / 4][e % 4] = load(simd, x, tile.input[e] as usize + c);
                        }
                    }
                }
                for line in &mut d {
                    *line = input_line(simd, *line);
                }
                for x in 0..4 {
                    let column = input_line(simd, [d[0][x], d[1][x], d[2][x], d[3][x]]);
                    for (y, value) in column.into_iter().enumerate() {
                        let at = (y * 4 + x) * stride + i * channels + c;
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
                let mut half = [[simd.splat_f32s(0.0); 4]; 2];
                for x in 0..4 {
                    let mut column = [simd.splat_f32s(0.0); 4];
                    for (y, m) in column.iter_mut().enumerate() {
                        let at = (y * 4 + x) * stride + i * self.columns + c;
                        *m = load(simd, self.m, at);
                    }
                    let [top, bottom] = output_line(simd, column);
                    half[0][x] = top;
                    half[1][x] = bottom;
                }
                let [top, bottom] = half;
                let [a, b] = output_line(simd, top);
                let [c_, d] = output_line(simd, bottom);
                for (value, at) in [a, b, c_, d].into_iter().zip(tile.output) {
                    if at >= 0 {
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
                let mut d = [simd.splat_f32s(0.0); 4];
                for (d, at) in d.iter_mut().zip(tile.output) {
                    if at >= 0 {
                        *d = load(simd, dy, at as usize + c);
                    }
                }
                let left = gradient_line(simd, [d[0], d[2]]);
                let right = gradient_line(simd, [d[1], d[3]]);
                for y in 0..4 {
                    let line = gradient_line(simd, [left[y], right[y]]);
                    for (x, value) in line.into_iter().enumerate() {
                        let at = (y * 4 + x) * stride + i * channels + c;
                        save(simd, self.out, at, value);
                    }
                }
            }
        }
    }
}

/// Where there are many tiles, the weight gradient is summed by parts of the batch of at least so many tiles, each with a
/// sum of its own; where there are few, by place and channel, all tasks reading the same transformed tiles.
const SPLIT_TILES: usize = 512;
/// At least and at most so many parts.
const SPLITS: std::ops::RangeInclusive<usize> = 8..=16;
/// Blocks of tiles transformed before their products are summed, where tasks share them.
const SHARED_BLOCKS: usize = 4;
/// Input channels of a task, where tasks share tiles.
const CHANNELS: usize = 64;

impl Tiles {
    fn splits(&self, batch: usize) -> usize {
        let parts = (batch * self.count() / SPLIT_TILES).min(batch);
        if parts < *SPLITS.start() {
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
        sum.fill(0.0);
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
