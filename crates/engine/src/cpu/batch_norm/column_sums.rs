//! Sums over rows, channel by channel, in the order of the rows.
//!
//! A strip of channels is summed in registers while the rows go by: in memory, each row would wait
//! for the one before it to be stored. (Left to the compiler, rows of 16 channels were summed one
//! value at a time at AVX2: 14 times as long.)

use pulp::{Arch, Simd, WithSimd};

/// Values of the rows that all strips are summed over before the next rows: so few that memory is
/// read nearly in order.
const VALUES: usize = 256;

/// What a row adds to its channels' N sums.
trait Addend<const N: usize>: Copy {
    fn add<S: Simd, const TAIL: bool>(self, s: S, strip: Strip<S>, sums: &mut [S::f32s; N]);
}

/// A vector of channels in one row, which have this mean.
#[derive(Clone, Copy)]
struct Strip<S: Simd> {
    mean: S::f32s,
    /// Where its first channel is in arrays of rows.
    at: usize,
    /// Channels, where there are fewer than lanes.
    used: usize,
}

/// The vector of `values` from `at` on; anything beyond `used` lanes in a tail: mostly the next
/// row, which is as quick as a whole vector.
#[inline(always)]
fn load<S: Simd, const TAIL: bool>(s: S, values: &[f32], at: usize, used: usize) -> S::f32s {
    if TAIL && at + S::F32_LANES > values.len() {
        return s.partial_load_f32s(&values[at..at + used]);
    }
    let values = &values[at..at + S::F32_LANES];
    // SAFETY: one whole vector, sliced just above.
    unsafe { values.as_ptr().cast::<S::f32s>().read_unaligned() }
}

/// Writes the vector to `values`, which in a tail are fewer than lanes.
#[inline(always)]
fn store<S: Simd, const TAIL: bool>(s: S, values: &mut [f32], vector: S::f32s) {
    if TAIL {
        return s.partial_store_f32s(values, vector);
    }
    let values = &mut values[..S::F32_LANES];
    // SAFETY: one whole vector, sliced just above.
    unsafe { values.as_mut_ptr().cast::<S::f32s>().write_unaligned(vector) }
}

/// Σ x.
pub(super) fn sum(arch: Arch, rows: &[f32], sums: &mut [f32]) {
    #[derive(Clone, Copy)]
    struct Sum<'a>(&'a [f32]);
    impl Addend<1> for Sum<'_> {
        #[inline(always)]
        fn add<S: Simd, const TAIL: bool>(self, s: S, strip: Strip<S>, sums: &mut [S::f32s; 1]) {
            let x = load::<S, TAIL>(s, self.0, strip.at, strip.used);
            sums[0] = s.add_f32s(sums[0], x);
        }
    }
    let len = rows.len();
    arch.dispatch(Call::new(Sum(rows), &[], len, [sums]));
}

/// Σ (x − mean)².
pub(super) fn squared_deviations(arch: Arch, rows: &[f32], mean: &[f32], sums: &mut [f32]) {
    #[derive(Clone, Copy)]
    struct Squares<'a>(&'a [f32]);
    impl Addend<1> for Squares<'_> {
        #[inline(always)]
        fn add<S: Simd, const TAIL: bool>(self, s: S, strip: Strip<S>, sums: &mut [S::f32s; 1]) {
            let x = load::<S, TAIL>(s, self.0, strip.at, strip.used);
            let off = s.sub_f32s(x, strip.mean);
            sums[0] = s.add_f32s(sums[0], s.mul_f32s(off, off));
        }
    }
    let len = rows.len();
    arch.dispatch(Call::new(Squares(rows), mean, len, [sums]));
}

/// Σ dz and Σ dz · (c − mean), where dz is dy where y > 0 (or everywhere without y).
pub(super) fn gradient(
    arch: Arch,
    dy: &[f32],
    c: &[f32],
    y: Option<&[f32]>,
    mean: &[f32],
    sum: &mut [f32],
    product: &mut [f32],
) {
    #[derive(Clone, Copy)]
    struct Gradient<'a, const RELU: bool> {
        dy: &'a [f32],
        c: &'a [f32],
        y: &'a [f32],
    }
    impl<const RELU: bool> Addend<2> for Gradient<'_, RELU> {
        #[inline(always)]
        fn add<S: Simd, const TAIL: bool>(self, s: S, strip: Strip<S>, sums: &mut [S::f32s; 2]) {
            let row = |values: &[f32]| load::<S, TAIL>(s, values, strip.at, strip.used);
            let mut dz = row(self.dy);
            if RELU {
                let zero = s.splat_f32s(0.0);
                let positive = s.less_than_f32s(zero, row(self.y));
                dz = s.select_f32s(positive, dz, zero);
            }
            let off = s.sub_f32s(row(self.c), strip.mean);
            sums[0] = s.add_f32s(sums[0], dz);
            sums[1] = s.add_f32s(sums[1], s.mul_f32s(dz, off));
        }
    }
    let len = dy.len();
    let sums = [sum, product];
    match y {
        Some(y) => {
            let addend = Gradient::<true> { dy, c, y: &y[..len] };
            arch.dispatch(Call::new(addend, mean, len, sums));
        }
        None => {
            let addend = Gradient::<false> { dy, c, y: dy };
            arch.dispatch(Call::new(addend, mean, len, sums));
        }
    }
}

/// Sums of all rows: `len` values, in rows as long as the sums.
struct Call<'a, A, const N: usize> {
    addend: A,
    /// Of each channel, where the addend asks for it.
    mean: &'a [f32],
    len: usize,
    sums: [&'a mut [f32]; N],
}

impl<'a, A: Addend<N>, const N: usize> Call<'a, A, N> {
    fn new(addend: A, mean: &'a [f32], len: usize, sums: [&'a mut [f32]; N]) -> Self {
        Call { addend, mean, len, sums }
    }

    /// Adds the rows that begin in `from..to` to NV vectors of channels.
    #[inline(always)]
    fn strip<S: Simd, const NV: usize, const TAIL: bool>(
        &mut self,
        s: S,
        from: usize,
        to: usize,
        channel: usize,
    ) {
        let channels = self.sums[0].len();
        let used = S::F32_LANES.min(channels - channel);
        let mut sums = [[s.splat_f32s(0.0); N]; NV];
        let mut mean = [s.splat_f32s(0.0); NV];
        for (v, sums) in sums.iter_mut().enumerate() {
            let channel = channel + v * S::F32_LANES;
            for (sum, values) in sums.iter_mut().zip(&self.sums) {
                *sum = load::<S, TAIL>(s, values, channel, used);
            }
            if !self.mean.is_empty() {
                mean[v] = load::<S, TAIL>(s, self.mean, channel, used);
            }
        }
        for row in (from..to).step_by(channels) {
            for (v, sums) in sums.iter_mut().enumerate() {
                let at = row + channel + v * S::F32_LANES;
                let strip = Strip { mean: mean[v], at, used };
                self.addend.add::<S, TAIL>(s, strip, sums);
            }
        }
        for (v, sums) in sums.iter().enumerate() {
            for (sum, values) in sums.iter().zip(&mut self.sums) {
                let values = &mut values[channel + v * S::F32_LANES..];
                store::<S, TAIL>(s, &mut values[..used], *sum);
            }
        }
    }
}

impl<A: Addend<N>, const N: usize> WithSimd for Call<'_, A, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, s: S) {
        let (channels, lanes) = (self.sums[0].len(), S::F32_LANES);
        self.sums.iter_mut().for_each(|sums| sums.fill(0.0));
        let block = (VALUES / channels).max(1) * channels;
        for from in (0..self.len).step_by(block) {
            let to = self.len.min(from + block);
            let mut channel = 0;
            while channel + 2 * lanes <= channels {
                self.strip::<S, 2, false>(s, from, to, channel);
                channel += 2 * lanes;
            }
            while channel + lanes <= channels {
                self.strip::<S, 1, false>(s, from, to, channel);
                channel += lanes;
            }
            if channel < channels {
                self.strip::<S, 1, true>(s, from, to, channel);
            }
        }
    }
}
