//! The weight gradient: dU = Σ_tiles V ⊙ (A dy Aᵀ), then dg = Gᵀ dU G.

use pulp::Arch;
use rayon::prelude::*;

use super::super::gemm::{self, Outer, Pairs};
use super::kernels::{STRIP, add_sums, kernel_gradient};
use super::transforms::IntoPlaces;
use super::{PLACES, Tiles, place_of, places_len, with_work};

/// Tiles whose products are summed in one go in the weight gradient.
const GRADIENT_TILES: usize = 64;

/// With many tiles and few channels, the weight gradient is summed by parts of the batch, of at
/// least so many tiles each, with a sum each; else by place and channel, all tasks reading the same
/// transformed tiles.
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
        if parts < *SPLITS.start() || pairs > SPLIT_PAIRS { 1 } else { parts.min(*SPLITS.end()) }
    }

    /// Scratch values of [`Tiles::weight_gradient`].
    pub(in crate::cpu) fn gradient_scratch(&self, batch: usize) -> usize {
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
    pub(in crate::cpu) fn weight_gradient(
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
        arch.dispatch(IntoPlaces::<false> { tiles: self, from: x, start, used, to: v });
        arch.dispatch(IntoPlaces::<true> { tiles: self, from: dy, start, used, to: m });
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

    /// The sum over all pictures: blocks of tiles are transformed by one task each, then every task
    /// adds their products to its place and channels.
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
            v.par_chunks_mut(v_len).zip(m.par_chunks_mut(m_len)).take(blocks).enumerate().for_each(
                |(b, (v, m))| {
                    let start = start + b * GRADIENT_TILES;
                    self.transform_both(arch, x, dy, start, used(b), v, m);
                },
            );
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
            pairs: Pairs::new(&pairs[..used]),
            times: 1,
            apart: [0; 2],
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

// SAFETY: `write` is the only access, and its caller promises that no two threads write the same
// place.
unsafe impl Sync for Scattered {}

impl Scattered {
    fn new(values: &mut [f32]) -> Self {
        Scattered { start: values.as_mut_ptr(), len: values.len() }
    }

    /// # Safety
    /// No other thread may write these places, and the slice must outlive the call.
    unsafe fn write(&self, at: usize, values: &[f32]) {
        assert!(at + values.len() <= self.len);
        // SAFETY: within the slice, as just checked; alone there, as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.start.add(at), values.len()) };
    }
}
