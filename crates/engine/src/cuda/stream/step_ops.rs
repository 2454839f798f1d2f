//! What steps are made of, on a GPU: each call is a few kernels on the stream.

use std::hash::Hash;
use std::sync::Arc;

use cudarc::driver::{CudaStream, LaunchConfig, PushKernelArg};

use super::super::launch::{Pointer, side_by_side};
use super::super::losses::Losses;
use super::super::profile::{Cost, Part};
use super::super::similarity::{
    self, Blend, Contrastive, CudaPositives, GatheredRows, Nearest, PositivePointers, ShardShape,
    ShardSoftmax, SoftmaxKernels, ViewShape,
};
use super::super::tiles::enqueue_tiles;
use super::super::{failed, slice};
use super::{GpuStream, THREADS, one_block};
use crate::stream::{
    Counting, Labelled, Loss, Rows, SoftmaxLoss, StepOps, Tiles, Views, made_for_shape,
};
use crate::{Buffer, Error, Result, RowSample};

/// A softmax of so many queries over the keys that are here.
struct SoftmaxCall {
    batch: usize,
    n: usize,
    dim: usize,
    /// Queries and keys.
    places: [Pointer; 2],
    /// Temperature and weight.
    numbers: [f32; 2],
    positives: PositivePointers,
    /// Losses and gradient.
    outputs: [Pointer; 2],
}

impl SoftmaxCall {
    fn signature(&self) -> impl Hash {
        let numbers = self.numbers.map(f32::to_bits);
        let places = (self.places, self.outputs, self.positives.signature());
        ("softmax", places, numbers, [self.batch, self.n])
    }

    /// Of so many processes' queries.
    fn cost(&self, ranks: usize) -> Cost {
        Cost {
            flops: 4.0 * (ranks * self.batch * self.n * self.dim) as f64,
            bytes: (4 * self.n * self.dim) as f64,
        }
    }
}

impl GpuStream {
    /// The softmax over keys that are all here.
    fn softmax_whole(&mut self, call: &SoftmaxCall) -> Result<()> {
        let (cuda, dim) = (self.cuda.clone(), call.dim);
        let fits = |kept: &SoftmaxKernels| kept.fits(call.batch, call.n, dim);
        let make = || SoftmaxKernels::new(&cuda, call.batch, call.n, dim);
        let place = made_for_shape(&mut self.softmax, fits, make)?;
        self.part(Part::Loss, call.cost(1), call.signature(), |s| {
            let (stream, c) = (&s.stream.inner, call);
            s.softmax[place].enqueue(stream, c.places, c.numbers, c.positives, c.outputs)
        })
    }

    /// The softmax of all processes' queries over all processes' keys, of which some are here, or
    /// over a sample of them.
    fn softmax_shards(
        &mut self,
        call: &SoftmaxCall,
        of: &SoftmaxLoss,
        sample: Option<RowSample>,
    ) -> Result<()> {
        if call.positives.items == 0 {
            let why = "queries over keys in parts need items to be told apart";
            return Err(Error::Plan(why.into()));
        }
        let nccl = self.together.as_ref().map(|t| t.nccl.clone());
        let nccl = nccl.filter(|_| of.keys.shard().is_some());
        let (cuda, here) = (self.cuda.clone(), of.positives.here());
        let shape = ShardShape {
            ranks: nccl.as_ref().map_or(1, |nccl| nccl.ranks()),
            count: call.batch,
            items: call.positives.count,
            dim: call.dim,
            n: call.n,
            first: of.keys.shard().map_or(0, |shard| shard.first),
            keys: of.positives.keys(),
            known: [here.start, here.len(), of.positives.most()],
            sample,
        };
        let place = made_for_shape(
            &mut self.shards,
            |kept| kept.fits(&shape),
            || ShardSoftmax::new(&cuda, shape),
        )?;
        let step = self.current() + 16; // the third: its number among all
        let signature = ("shards", call.signature(), shape, step);
        self.part(Part::Loss, call.cost(shape.ranks), signature, |s| {
            let (stream, [queries, keys]) = (&s.stream.inner, call.places);
            let (places, nccl) = ([queries, keys, step], nccl.as_deref());
            let (numbers, outputs) = (call.numbers, call.outputs);
            s.shards[place].enqueue(stream, nccl, places, numbers, call.positives, outputs)
        })
    }

    /// What is asked of a softmax over all keys.
    fn softmax_call(&self, of: &SoftmaxLoss, loss: &Loss) -> Result<SoftmaxCall> {
        let cuda = self.cuda.clone();
        let batch = similarity::rows("queries", of.queries.len(), of.dim)?;
        let n = similarity::rows("keys", of.keys.len(), of.dim)?;
        let positives: &CudaPositives = of.positives.memory()?;
        let items = of.items.map(|items| Ok((slice(&cuda, items)?, items.len())));
        let items: Option<(Pointer, usize)> = items.transpose()?;
        let count = items.map_or(of.positives.len(), |(_, len)| len);
        let positives = PositivePointers {
            each: positives.each,
            starts: cuda.pointer(&positives.starts),
            members: cuda.pointer(&positives.members),
            items: items.map_or(0, |(at, _)| at),
            count,
        };
        let [queries, keys] = [slice(&cuda, of.queries)?, slice(&cuda, of.keys)?];
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        Ok(SoftmaxCall {
            batch,
            n,
            dim: of.dim,
            places: [queries, keys],
            numbers: [of.temperature, loss.weight],
            positives,
            outputs,
        })
    }

    /// A loss over rows by one kernel or two: what it is of, and how they are launched, given the
    /// places of losses and gradient.
    fn row_loss(
        &mut self,
        of: impl Hash,
        loss: Loss,
        launch: impl FnOnce(&Losses, &Arc<CudaStream>, [Pointer; 2]) -> Result<()>,
    ) -> Result<()> {
        let outputs = [slice(&self.cuda, loss.rows)?, slice(&self.cuda, loss.gradient)?];
        let signature = (of, outputs, loss.weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            launch(&s.kernels.losses, &s.stream.inner, outputs)
        })?;
        self.lose(loss.rows, loss.weight)
    }
}

impl StepOps for GpuStream {
    fn softmax(&mut self, of: &SoftmaxLoss, sample: Option<RowSample>, loss: Loss) -> Result<()> {
        let call = self.softmax_call(of, &loss)?;
        match of.keys.shard().is_some() || sample.is_some() {
            false => self.softmax_whole(&call)?,
            true => self.softmax_shards(&call, of, sample)?,
        }
        self.lose(loss.rows, loss.weight)
    }

    fn softmax_between_views(&mut self, of: &SoftmaxLoss, views: usize, loss: Loss) -> Result<()> {
        let all = self.softmax_call(of, &loss)?;
        let [queries, keys] = all.places;
        let [rows, gradient] = all.outputs;
        let batch = all.batch / views;
        // Where a view's values begin, of so many for each picture.
        let of_view = |at: Pointer, view: usize, values: usize| {
            at + (view * batch * values * size_of::<f32>()) as Pointer
        };
        for view in 0..views {
            let keys = of_view(keys, (view + 1) % views, of.dim);
            let gradient = of_view(gradient, view, of.dim);
            self.softmax_whole(&SoftmaxCall {
                batch,
                n: batch,
                places: [of_view(queries, view, of.dim), keys],
                numbers: [of.temperature, loss.weight / views as f32],
                outputs: [of_view(rows, view, 1), gradient],
                ..all
            })?;
        }
        self.lose(loss.rows, loss.weight)
    }

    fn cross_entropy(&mut self, of: &Labelled, loss: Loss) -> Result<()> {
        let (cuda, shape, weight) = (&self.cuda, [of.items.len(), of.classes], loss.weight);
        let weights = of.weights.map(|w| slice(cuda, w)).transpose()?;
        let from = slice(cuda, of.logits)?;
        let words = [slice(cuda, of.labels)?, slice(cuda, of.items)?, weights.unwrap_or(0)];
        self.row_loss(("cross-entropy", from, words), loss, |losses, stream, outputs| {
            losses.cross_entropy(stream, from, shape, words, weight, outputs)
        })
    }

    fn gather_rows(&mut self, from: Rows, items: &Buffer<u32>, to: &mut Buffer) -> Result<()> {
        let (cuda, rows, dim) = (&self.cuda, items.len(), from.dim);
        let places = [slice(cuda, from.values)?, slice(cuda, items)?, slice(cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: (8 * rows * dim) as f64 };
        self.part(Part::Memory, cost, ("gather", places, rows, dim), |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.gather_rows(stream, places, [rows, dim])
        })
    }

    fn quarters(&mut self, pixels: &Buffer, shape: [usize; 2], to: &mut Buffer) -> Result<()> {
        let ([size, channels], values) = (shape, to.len());
        let pictures = pixels.len() / (size * size * channels);
        let [from, to] = [slice(&self.cuda, pixels)?, slice(&self.cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: 8.0 * values as f64 };
        let shape = [pictures, size, channels].map(|n| n as u32);
        self.part(Part::Rest, cost, ("quarters", from, to, shape), |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.quarters);
            launch.arg(&from);
            shape.iter().for_each(|n| _ = launch.arg(n));
            launch.arg(&to);
            let grid = LaunchConfig {
                grid_dim: (side_by_side(values.div_ceil(THREADS as usize))?, 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel; both buffers cover the pictures, as
            // the caller has checked.
            let launched = unsafe { launch.launch(grid) };
            launched.map(drop).map_err(|e| failed("quarters of pictures", e))
        })
    }

    fn counting(&mut self, of: &Counting, distances: &mut Buffer, loss: Loss) -> Result<()> {
        let shape = [of.views, of.rows.len() / (of.views * of.dim), of.dim];
        let places = [slice(&self.cuda, of.rows)?, slice(&self.cuda, distances)?];
        let numbers = [of.margin, loss.weight];
        let what = ("counting", places, shape, of.margin.to_bits());
        self.row_loss(what, loss, |kernels, stream, [losses, gradient]| {
            let [from, distances] = places;
            kernels.counting(stream, from, shape, numbers, [distances, losses, gradient])
        })
    }

    fn contrastive(&mut self, of: Views, temperature: f32, loss: Loss) -> Result<()> {
        let Views { rows, views, dim } = of;
        let cuda = self.cuda.clone();
        let n = similarity::rows("rows", rows.len(), dim)?;
        let nccl = self.together.as_ref().map(|t| t.nccl.clone());
        let (rank, ranks) = nccl.as_ref().map_or((0, 1), |n| (n.rank(), n.ranks()));
        let own = n / views;
        let shape = ViewShape { views, batch: ranks * own, dim, first: rank * own, own };
        let place = made_for_shape(
            &mut self.contrastive,
            |c| c.fits(shape),
            || Contrastive::new(&cuda, shape, nccl.is_some()),
        )?;
        let from = slice(&cuda, rows)?;
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let weight = loss.weight;
        let numbers = [temperature.to_bits(), weight.to_bits()];
        let signature = ("contrastive", from, outputs, numbers, views, dim);
        let cost =
            Cost { flops: 6.0 * (ranks * n * n * dim) as f64, bytes: (4 * ranks * n * dim) as f64 };
        self.part(Part::Loss, cost, signature, |s| {
            let (loss, stream) = (&s.contrastive[place], &s.stream.inner);
            loss.enqueue(stream, nccl.as_deref(), from, [temperature, weight], outputs)
        })?;
        self.lose(loss.rows, weight)
    }

    fn cosine(&mut self, of: [&Buffer; 2], dim: usize, loss: Loss) -> Result<()> {
        let (shape, weight) = ([similarity::rows("rows", of[0].len(), dim)?, dim], loss.weight);
        let from = [slice(&self.cuda, of[0])?, slice(&self.cuda, of[1])?];
        self.row_loss(("cosine", from, shape), loss, |losses, stream, outputs| {
            losses.cosine(stream, from, shape, weight, outputs)
        })
    }

    fn mean_squared(&mut self, of: [&Buffer; 2], dim: usize, loss: Loss) -> Result<()> {
        let (shape, weight) = ([similarity::rows("rows", of[0].len(), dim)?, dim], loss.weight);
        let from = [slice(&self.cuda, of[0])?, slice(&self.cuda, of[1])?];
        self.row_loss(("squared", from, shape), loss, |losses, stream, outputs| {
            losses.mean_squared(stream, from, shape, weight, outputs)
        })
    }

    fn mean_of_others(&mut self, of: Views, normalise: bool, to: &mut Buffer) -> Result<()> {
        let Views { rows, views, dim } = of;
        let n = similarity::rows("rows", rows.len(), dim)?;
        let batch = n / views;
        let [from, to] = [slice(&self.cuda, rows)?, slice(&self.cuda, to)?];
        let signature = ("others", from, to, views, dim, normalise);
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.mean_of_others(stream, from, [views, batch, dim], normalise, to)
        })
    }

    fn nearest_rows(&mut self, of: [&Buffer; 2], dim: usize, to: &mut Buffer) -> Result<()> {
        let (cuda, [queries, keys]) = (self.cuda.clone(), of);
        let count = similarity::rows("queries", queries.len(), dim)?;
        let n = similarity::rows("keys", keys.len(), dim)?;
        let place = made_for_shape(
            &mut self.nearest,
            |kept| kept.fits(count, n, dim),
            || Nearest::new(&cuda, count, n, dim),
        )?;
        let places = [slice(&cuda, queries)?, slice(&cuda, keys)?, slice(&cuda, to)?];
        let cost = Cost {
            flops: 2.0 * (count * n * dim) as f64,
            bytes: (4 * (n + 2 * count) * dim) as f64,
        };
        self.part(Part::Loss, cost, ("nearest", places, count, n, dim), |s| {
            s.nearest[place].enqueue(&s.stream.inner, places)
        })
    }

    fn blend_rows(
        &mut self,
        keys: &mut Buffer,
        dim: usize,
        indices: &Buffer<u32>,
        queries: &Buffer,
        rate: f32,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let (places, count) = ([slice(&cuda, queries)?, slice(&cuda, indices)?], indices.len());
        let here = similarity::rows("keys", keys.len(), dim)?;
        let mut blend = Blend {
            keys: slice(&cuda, keys)?,
            queries: places[0],
            dim,
            count,
            rate,
            indices: places[1],
            flag: self.flag(),
            here: 0..here,
        };
        let mut among = None;
        if let (Some(shard), Some(together)) = (keys.shard(), &self.together) {
            let (nccl, shape) = (together.nccl.clone(), [count, count, dim]);
            let place = made_for_shape(
                &mut self.gathered,
                |kept| kept.fits(shape),
                || GatheredRows::new(&cuda, nccl.ranks(), shape),
            )?;
            [blend.queries, blend.indices] = self.gathered[place].places(&cuda);
            blend.count = nccl.ranks() * count;
            blend.here = shard.first..shard.first + here;
            among = Some((nccl, place));
        }
        let cost = Cost { flops: 0.0, bytes: (12 * count * dim) as f64 };
        let signature = ("blend", blend.keys, places, [dim, blend.count], rate.to_bits());
        self.part(Part::Memory, cost, signature, |s| {
            s.run_beside(|s, side| {
                if let Some((nccl, place)) = &among {
                    s.gathered[*place].enqueue(&s.cuda, &side.inner, nccl, places)?;
                }
                similarity::enqueue_blend(&side.inner, &s.kernels.blend, &blend)
            })
        })
    }

    fn add(&mut self, from: &Buffer, to: &mut Buffer, accumulate: bool) -> Result<()> {
        let (len, add) = (to.len() as u64, i32::from(accumulate));
        let [from, to] = [slice(&self.cuda, from)?, slice(&self.cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: 8.0 * len as f64 };
        self.part(Part::Rest, cost, ("add", from, to, len, add), |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.add);
            launch.arg(&from).arg(&len).arg(&add).arg(&to);
            let grid = LaunchConfig {
                grid_dim: (side_by_side((len as usize).div_ceil(THREADS as usize))?, 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel, and both buffers have as many values.
            let launched = unsafe { launch.launch(grid) };
            launched.map(drop).map_err(|e| failed("adding values", e))
        })
    }

    fn tiles(
        &mut self,
        of: &Tiles,
        first: usize,
        labels: &mut Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (cuda, pictures) = (&self.cuda, labels.len());
        let pointers = [
            slice(cuda, of.pixels)?,
            slice(cuda, of.places)?,
            self.dropout_step(),
            slice(cuda, labels)?,
            slice(cuda, to)?,
        ];
        let cut = [of.size, of.channels, of.tiles, of.side, of.jitter];
        let which = [first, pictures];
        let signature = ("tiles", pointers, cut, of.normalise, of.seed, which);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let (stream, kernel) = (&s.stream.inner, &s.kernels.tiles);
            enqueue_tiles(stream, kernel, of, which, pointers)
        })
    }

    fn uniform(&mut self, seed: u64, to: &mut Buffer) -> Result<()> {
        let (len, words) = (to.len() as u64, [seed as u32, (seed >> 32) as u32]);
        let [step, to] = [self.dropout_step(), slice(&self.cuda, to)?];
        let signature = ("uniform", to, len, seed);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.uniform);
            launch.arg(&words[0]).arg(&words[1]).arg(&step);
            launch.arg(&len).arg(&to);
            let grid = LaunchConfig {
                grid_dim: (side_by_side((len as usize).div_ceil(4 * THREADS as usize))?, 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel, and the buffer has so many values.
            let launched = unsafe { launch.launch(grid) };
            launched.map(drop).map_err(|e| failed("drawing numbers", e))
        })
    }

    fn quantise(&mut self, of: [&Buffer; 2], dim: usize, to: &mut Buffer<u32>) -> Result<()> {
        let (cuda, shape) = (&self.cuda, [to.len(), of[1].len() / dim, dim]);
        let places = [slice(cuda, of[0])?, slice(cuda, of[1])?, slice(cuda, to)?];
        self.part(Part::Loss, Cost::default(), ("quantise", places, shape), |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.quantise(stream, places, shape)
        })
    }

    fn tally(&mut self, of: &Labelled, tally: &mut Buffer<u32>) -> Result<()> {
        let cuda = &self.cuda;
        let (from, to) = (slice(cuda, of.logits)?, slice(cuda, tally)?);
        let words = [slice(cuda, of.labels)?, slice(cuda, of.items)?];
        let shape = [of.items.len(), of.classes];
        self.part(Part::Loss, Cost::default(), ("tally", from, words, to, shape), |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.tally(stream, from, shape, words, to)
        })
    }
}
