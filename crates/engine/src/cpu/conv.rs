//! 2-D convolution, NHWC, any kernel, stride and padding.
//!
//! ```text
//! y[b][o][n]      =  Σ_t Σ_c x[b][in(o, t)][c] · w[t][c][n]     forward (writes =)
//! dx[b][i][c] (+)= Σ_t Σ_n dy[b][out(i, t)][n] · w[t][c][n]     input gradient (writes = or +=)
//! dw[t][c][n]     =  Σ_b Σ_o x[b][in(o, t)][c] · dy[b][o][n]    weight gradient (writes =)
//! ```
//!
//! t runs over the taps of the kernel; in(o, t) is the input place that tap t of output place o
//! reads, if it is not in the padding. Weights are HWIO here ([tap][in][out]). Both tables are made
//! once. For the input gradient, input places are sorted into classes by their position modulo the
//! stride: all places of a class use the same taps.
//!
//! Work is cut by the geometry alone, never by the number of threads, and partial sums are added in
//! a fixed order, so results are the same to the bit on any number of threads.

use pulp::Arch;
use rayon::prelude::*;

use super::gemm::{self, Gather, Offsets, Outer, PairList, Pairs, Row};
use super::simd::vectorised;
use super::winograd::{self, Tiles};
use crate::{Shape, Window};

/// Output places a task computes, about.
const ROWS_PER_TASK: usize = 256;
/// Places whose outer products are summed before the next tile of the weight gradient.
const PLACES_PER_BLOCK: usize = 256;
/// Weight gradients up to this many values are split over pictures, each split with its own copy.
const SPLIT_LIMIT: usize = 256 * 1024;
/// At most so many splits.
const SPLITS: usize = 16;
/// Input channels of a task where the weight gradient is split by rows.
const CHANNELS_PER_TASK: usize = 64;

/// A convolution's geometry and tables.
pub(super) struct Conv {
    pub(super) input: Shape,
    pub(super) output: Shape,
    taps: usize,
    /// [output place][tap]: the input offset or −1.
    by_place: Offsets,
    /// [tap]: the places of a picture whose tap is not in the padding.
    by_tap: Vec<TapPairs>,
    all_taps: Vec<u32>,
    classes: Vec<Class>,
    zeros: Vec<f32>,
    /// Forwards and backwards, where Winograd's method applies.
    winograd: Option<[Tiles; 2]>,
}

/// Input places that use the same taps in the input gradient.
struct Class {
    taps: Vec<u32>,
    /// Offsets of the places in a picture of the input.
    places: Vec<u32>,
    /// [place][tap]: offset in a picture of the output's gradient, or −1.
    table: Offsets,
}

/// Where a tap's input and output lie in a picture, place after place.
struct TapPairs {
    pairs: PairList,
    /// How many are of places before each block.
    before: Vec<usize>,
}

impl TapPairs {
    /// `inputs` are the input offsets of all output places, −1 in the padding; places have `n`
    /// values.
    fn new(inputs: impl Iterator<Item = i32>, n: usize) -> Self {
        let (mut pairs, mut before) = (vec![], vec![]);
        for (place, input) in inputs.enumerate() {
            if place.is_multiple_of(PLACES_PER_BLOCK) {
                before.push(pairs.len());
            }
            if input >= 0 {
                pairs.push([input as u32, (place * n) as u32]);
            }
        }
        before.push(pairs.len());
        TapPairs { pairs: PairList::new(pairs), before }
    }

    fn of_block(&self, block: usize) -> Pairs<'_> {
        self.pairs.part(self.before[block]..self.before[block + 1])
    }
}

impl Conv {
    pub(super) fn new(input: Shape, output: Shape, window: Window) -> Self {
        let [kh, kw] = window.kernel;
        let taps = kh * kw;
        let inside = |o: usize, k: usize, axis: usize, extent: usize| {
            let at = (o * window.stride[axis] + k) as isize - window.padding[axis] as isize;
            (0..extent as isize).contains(&at).then_some(at as usize)
        };
        let mut by_place = Vec::with_capacity(output.pixels() * taps);
        for oy in 0..output.height {
            for ox in 0..output.width {
                for t in 0..taps {
                    let y = inside(oy, t / kw, 0, input.height);
                    let x = inside(ox, t % kw, 1, input.width);
                    by_place.push(match (y, x) {
                        (Some(y), Some(x)) => ((y * input.width + x) * input.channels) as i32,
                        _ => -1,
                    });
                }
            }
        }
        let of_tap = |tap: usize| {
            let inputs = by_place.iter().skip(tap).step_by(taps).copied();
            TapPairs::new(inputs, output.channels)
        };
        let by_tap = (0..taps).map(of_tap).collect();
        Conv {
            input,
            output,
            taps,
            by_place: Offsets::new(by_place),
            by_tap,
            all_taps: (0..taps as u32).collect(),
            classes: classes(input, output, window),
            zeros: vec![0.0; input.channels.max(output.channels)],
            winograd: tiles(input, output, window),
        }
    }

    /// Values in the weights.
    pub(super) fn weights(&self) -> usize {
        self.taps * self.input.channels * self.output.channels
    }

    fn pictures_per_task(&self) -> usize {
        (ROWS_PER_TASK / self.output.pixels()).max(1)
    }

    /// Values of the output a task computes.
    pub(super) fn task_len(&self) -> usize {
        self.pictures_per_task() * self.output.len()
    }

    /// Scratch values needed by the weights packed for either direction.
    pub(super) fn packed_len(&self, width: usize) -> usize {
        let (c, n) = (self.input.channels, self.output.channels);
        if self.winograd.is_some() {
            return winograd::packed_len(c, n, width).max(winograd::packed_len(n, c, width));
        }
        gemm::packed_len(self.taps * c, n, width).max(gemm::packed_len(self.taps * n, c, width))
    }

    /// Packs weights for [`Conv::forward`].
    pub(super) fn pack_forward(&self, arch: Arch, weights: &[f32], packed: &mut [f32]) {
        let (c, n) = (self.input.channels, self.output.channels);
        if self.winograd.is_some() {
            return winograd::pack(arch, weights, c, n, false, packed);
        }
        pack_parallel(arch, weights, self.taps * c, n, 1, |k| k * n, packed);
    }

    /// Packs weights for [`Conv::input_gradient`].
    pub(super) fn pack_backward(&self, arch: Arch, weights: &[f32], packed: &mut [f32]) {
        let (c, n) = (self.input.channels, self.output.channels);
        if self.winograd.is_some() {
            return winograd::pack(arch, weights, c, n, true, packed);
        }
        let row = |k: usize| (k / n) * c * n + k % n;
        pack_parallel(arch, weights, self.taps * n, c, n, row, packed);
    }

    /// One task's share of the forward pass: the output of the pictures from `first` on that fill
    /// `y`.
    #[inline]
    pub(super) fn forward_task(
        &self,
        arch: Arch,
        x: &[f32],
        packed: &[f32],
        task: usize,
        y: &mut [f32],
    ) {
        let first = task * self.pictures_per_task();
        if let Some([tiles, _]) = &self.winograd {
            return tiles.convolve(arch, x, packed, first, false, y);
        }
        let (places, n) = (self.output.pixels(), self.output.channels);
        let op = Gather {
            a: x,
            table: self.by_place.table(),
            zeros: &self.zeros,
            taps: &self.all_taps,
            depth: self.input.channels,
            b: packed,
            b_taps: self.taps,
            n,
            accumulate: false,
        };
        let row = |m: usize| Row {
            base: (first + m / places) * self.input.len(),
            table: m % places * self.taps,
            c: m * n,
        };
        gemm::gather(arch, op, y.len() / n, row, y);
    }

    /// The gradient of the input; `packed` by [`Conv::pack_backward`].
    pub(super) fn input_gradient(
        &self,
        arch: Arch,
        dy: &[f32],
        packed: &[f32],
        accumulate: bool,
        dx: &mut [f32],
    ) {
        let pictures = (ROWS_PER_TASK / self.input.pixels()).max(1);
        dx.par_chunks_mut(pictures * self.input.len()).enumerate().for_each(|(task, dx)| {
            if let Some([_, tiles]) = &self.winograd {
                return tiles.convolve(arch, dy, packed, task * pictures, accumulate, dx);
            }
            for class in &self.classes {
                self.input_gradient_class(arch, dy, packed, accumulate, task * pictures, class, dx);
            }
        });
    }

    fn input_gradient_class(
        &self,
        arch: Arch,
        dy: &[f32],
        packed: &[f32],
        accumulate: bool,
        first: usize,
        class: &Class,
        dx: &mut [f32],
    ) {
        let pictures = dx.len() / self.input.len();
        if class.taps.is_empty() && accumulate {
            return;
        }
        let op = Gather {
            a: dy,
            table: class.table.table(),
            zeros: &self.zeros,
            taps: &class.taps,
            depth: self.output.channels,
            b: packed,
            b_taps: self.taps,
            n: self.input.channels,
            accumulate,
        };
        let places = class.places.len();
        let row = |m: usize| Row {
            base: (first + m / places) * self.output.len(),
            table: m % places * class.taps.len(),
            c: m / places * self.input.len() + class.places[m % places] as usize,
        };
        gemm::gather(arch, op, pictures * places, row, dx);
    }

    fn splits(&self, batch: usize) -> usize {
        if self.weights() <= SPLIT_LIMIT { batch.min(SPLITS) } else { 1 }
    }

    /// Scratch values needed by [`Conv::weight_gradient`].
    pub(super) fn gradient_scratch(&self, batch: usize) -> usize {
        if let Some([tiles, _]) = &self.winograd {
            return tiles.gradient_scratch(batch);
        }
        match self.splits(batch) {
            1 => 0,
            splits => splits * self.weights(),
        }
    }

    /// The gradient of the weights.
    pub(super) fn weight_gradient(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        scratch: &mut [f32],
        dw: &mut [f32],
    ) {
        if let Some([tiles, _]) = &self.winograd {
            return tiles.weight_gradient(arch, x, dy, scratch, dw);
        }
        let batch = dy.len() / self.output.len();
        let splits = self.splits(batch);
        if splits == 1 {
            let c = self.input.channels;
            let group = if c.is_multiple_of(CHANNELS_PER_TASK) { CHANNELS_PER_TASK } else { c };
            let tasks = dw.par_chunks_mut(group * self.output.channels);
            tasks.enumerate().for_each(|(g, dw)| {
                dw.fill(0.0);
                let first = g * group;
                self.add_products(arch, x, dy, 0..batch, first / c..first / c + 1, first % c, dw);
            });
            return;
        }
        let partial = &mut scratch[..splits * self.weights()];
        let tasks = partial.par_chunks_mut(self.weights()).enumerate();
        tasks.for_each(|(s, dw)| {
            dw.fill(0.0);
            let pictures = batch * s / splits..batch * (s + 1) / splits;
            self.add_products(arch, x, dy, pictures, 0..self.taps, 0, dw);
        });
        sum_partials(arch, partial, dw);
    }

    /// Adds to `dw` (taps × its share of the channels × out) what the pictures give.
    fn add_products(
        &self,
        arch: Arch,
        x: &[f32],
        dy: &[f32],
        pictures: std::ops::Range<usize>,
        taps: std::ops::Range<usize>,
        channel: usize,
        dw: &mut [f32],
    ) {
        let (places, n) = (self.output.pixels(), self.output.channels);
        let tap_len = dw.len() / taps.len();
        // Blocks of some places, of several pictures where one has fewer.
        let (together, blocks) =
            ((PLACES_PER_BLOCK / places).max(1), places.div_ceil(PLACES_PER_BLOCK));
        for first in pictures.clone().step_by(together) {
            let x = &x[first * self.input.len() + channel..];
            let dy = &dy[first * self.output.len()..];
            for block in 0..blocks {
                for (tap, dw) in taps.clone().zip(dw.chunks_exact_mut(tap_len)) {
                    let op = Outer {
                        a: x,
                        b: dy,
                        pairs: self.by_tap[tap].of_block(block),
                        times: together.min(pictures.end - first),
                        apart: [self.input.len(), self.output.len()],
                        rows: tap_len / n,
                        n,
                    };
                    gemm::outer(arch, op, dw);
                }
            }
        }
    }
}

/// Sums copies of one length, in order.
fn sum_partials(arch: Arch, partials: &[f32], sum: &mut [f32]) {
    const CHUNK: usize = 4096;
    vectorised! {
        fn task<'a>(partials: &'a [f32], len: usize, from: usize, sum: &'a mut [f32]) {
            sum.fill(0.0);
            for partial in partials.chunks_exact(len) {
                for (s, p) in sum.iter_mut().zip(&partial[from..]) {
                    *s += p;
                }
            }
        }
    }
    let len = sum.len();
    let tasks = sum.par_chunks_mut(CHUNK).enumerate();
    tasks.for_each(|(i, sum)| task(arch, partials, len, i * CHUNK, sum));
}

/// Packs panels in parallel.
fn pack_parallel(
    arch: Arch,
    b: &[f32],
    depth: usize,
    n: usize,
    step: usize,
    row: impl Fn(usize) -> usize + Sync,
    packed: &mut [f32],
) {
    let width = gemm::panel_width(arch);
    packed[..gemm::packed_len(depth, n, width)].par_chunks_mut(depth * width).enumerate().for_each(
        |(panel, out)| {
            let n0 = panel * width;
            let columns = width.min(n - n0);
            gemm::pack(b, depth, columns, step, width, |k| row(k) + n0 * step, out);
        },
    );
}

/// Winograd's tiles, forwards and backwards, for 3×3 kernels of stride 1 over whole vectors of
/// channels.
fn tiles(input: Shape, output: Shape, window: Window) -> Option<[Tiles; 2]> {
    let whole = |s: Shape| s.channels.is_multiple_of(winograd::LANES);
    let [down, across] = window.padding;
    let fits = window.kernel == [3, 3] && window.stride == [1, 1] && down <= 2 && across <= 2;
    let large = |s: Shape| s.height > 2 && s.width > 2;
    (fits && large(input) && large(output) && whole(input) && whole(output)).then(|| {
        [
            Tiles::new(input, output, [down, across]),
            Tiles::new(output, input, [2 - down, 2 - across]),
        ]
    })
}

fn classes(input: Shape, output: Shape, window: Window) -> Vec<Class> {
    let [kh, kw] = window.kernel;
    let [sh, sw] = window.stride;
    // The output position whose tap k reads input position i, if there is one.
    let reached = |i: usize, k: usize, axis: usize, extent: usize| {
        let at = (i + window.padding[axis]) as isize - k as isize;
        let s = window.stride[axis] as isize;
        let at = (at >= 0 && at % s == 0).then_some((at / s) as usize)?;
        (at < extent).then_some(at)
    };
    let mut classes = vec![];
    for (ry, rx) in (0..sh).flat_map(|y| (0..sw).map(move |x| (y, x))) {
        let fits = |k: usize, r: usize, axis: usize| {
            let stride = window.stride[axis];
            (r + window.padding[axis] + stride * k - k).is_multiple_of(stride)
        };
        let taps: Vec<u32> = (0..kh * kw)
            .filter(|t| fits(t / kw, ry, 0) && fits(t % kw, rx, 1))
            .map(|t| t as u32)
            .collect();
        let (mut places, mut table) = (vec![], vec![]);
        for y in (ry..input.height).step_by(sh) {
            for x in (rx..input.width).step_by(sw) {
                places.push(((y * input.width + x) * input.channels) as u32);
                table.extend(taps.iter().map(|t| {
                    let oy = reached(y, *t as usize / kw, 0, output.height);
                    let ox = reached(x, *t as usize % kw, 1, output.width);
                    match (oy, ox) {
                        (Some(oy), Some(ox)) => ((oy * output.width + ox) * output.channels) as i32,
                        _ => -1,
                    }
                }));
            }
        }
        classes.push(Class { taps, places, table: Offsets::new(table) });
    }
    classes
}
