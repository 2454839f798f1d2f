//! What steps are made of, on a GPU: each call is a few kernels on the stream.

use std::hash::Hash;

use super::super::launch::{BLOCK, Pointer, blocks, counts, ones, warps};
use super::super::profile::{Cost, Part};
use super::super::similarity::{
    self, Blend, Contrastive, CudaPositives, GatheredRows, Nearest, PositivePointers, ShardShape,
    ShardSoftmax, SoftmaxKernels, ViewShape,
};
use super::super::slice;
use super::super::tiles::enqueue_tiles;
use super::GpuStream;
use crate::stream::{
    Counting, HostLoss, Labelled, Loss, Rows, SoftmaxLoss, Tiles, Views, made_for_shape,
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
        let make = || SoftmaxKernels::new(&self.cuda, call.batch, call.n, call.dim);
        let place = made_for_shape(&mut self.softmax, [call.batch, call.n, call.dim], make)?;
        self.part(Part::Loss, call.cost(1), call.signature(), |s| {
            let (stream, c) = (&s.stream.inner, call);
            s.softmax[place].1.enqueue(stream, c.places, c.numbers, c.positives, c.outputs)
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
        let here = of.positives.here();
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
        let make = || ShardSoftmax::new(&self.cuda, shape);
        let place = made_for_shape(&mut self.shards, shape, make)?;
        let step = self.current() + 16; // the third: its number among all
        let signature = ("shards", call.signature(), shape, step);
        self.part(Part::Loss, call.cost(shape.ranks), signature, |s| {
            let (stream, [queries, keys]) = (&s.stream.inner, call.places);
            let (places, nccl) = ([queries, keys, step], nccl.as_deref());
            let (numbers, outputs) = (call.numbers, call.outputs);
            s.shards[place].1.enqueue(stream, nccl, places, numbers, call.positives, outputs)
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

    /// A loss over rows by one kernel or two, which write losses and gradient (`=`): what it is of,
    /// and how they are launched, given these places.
    fn row_loss(
        &mut self,
        of: impl Hash,
        loss: Loss,
        launch: impl FnOnce(&GpuStream, [Pointer; 2]) -> Result<()>,
    ) -> Result<()> {
        let outputs = [slice(&self.cuda, loss.rows)?, slice(&self.cuda, loss.gradient)?];
        let signature = (of, outputs, loss.weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| launch(s, outputs))?;
        self.lose(loss.rows, loss.weight)
    }

    pub(crate) fn softmax(
        &mut self,
        of: &SoftmaxLoss,
        sample: Option<RowSample>,
        loss: Loss,
    ) -> Result<()> {
        let call = self.softmax_call(of, &loss)?;
        match of.keys.shard().is_some() || sample.is_some() {
            false => self.softmax_whole(&call)?,
            true => self.softmax_shards(&call, of, sample)?,
        }
        self.lose(loss.rows, loss.weight)
    }

    pub(crate) fn softmax_between_views(
        &mut self,
        of: &SoftmaxLoss,
        views: usize,
        loss: Loss,
    ) -> Result<()> {
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

    pub(crate) fn cross_entropy(&mut self, of: &Labelled, loss: Loss) -> Result<()> {
        let (cuda, batch, weight) = (&self.cuda, of.items.len(), loss.weight);
        let weights = of.weights.map(|w| slice(cuda, w)).transpose()?;
        let from = slice(cuda, of.logits)?;
        let words = [slice(cuda, of.labels)?, slice(cuda, of.items)?, weights.unwrap_or(0)];
        let classes = counts([of.classes])?;
        self.row_loss(("cross-entropy", from, words), loss, |s, outputs| match batch {
            0 => Ok(()),
            _ => {
                let arguments = (from, classes, words, weight / batch as f32, outputs);
                let shape = blocks(batch, BLOCK)?;
                s.enqueue(|k| &k.cross_entropy, shape, "cross-entropy", arguments)
            }
        })
    }

    pub(crate) fn gather_rows(
        &mut self,
        from: Rows,
        items: &Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (cuda, rows, dim) = (&self.cuda, items.len(), from.dim);
        let places = [slice(cuda, from.values)?, slice(cuda, items)?, slice(cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: (8 * rows * dim) as f64 };
        self.part(Part::Memory, cost, ("gather", places, rows, dim), |s| {
            let arguments = ([places[0], places[1]], counts([rows, dim])?, places[2]);
            s.enqueue(|k| &k.gather_rows, warps(rows)?, "gathering rows", arguments)
        })
    }

    pub(crate) fn quarters(
        &mut self,
        pixels: &Buffer,
        shape: [usize; 2],
        to: &mut Buffer,
    ) -> Result<()> {
        let ([size, channels], values) = (shape, to.len());
        let pictures = pixels.len() / (size * size * channels);
        let [from, to] = [slice(&self.cuda, pixels)?, slice(&self.cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: 8.0 * values as f64 };
        let shape = counts([pictures, size, channels])?;
        self.part(Part::Rest, cost, ("quarters", from, to, shape), |s| {
            let arguments = (from, shape, to);
            s.enqueue(|k| &k.quarters, ones(values)?, "quarters of pictures", arguments)
        })
    }

    pub(crate) fn counting(
        &mut self,
        of: &Counting,
        distances: &mut Buffer,
        loss: Loss,
    ) -> Result<()> {
        let shape = [of.views, of.rows.len() / (of.views * of.dim), of.dim];
        let places = [slice(&self.cuda, of.rows)?, slice(&self.cuda, distances)?];
        let (margin, scale) = (of.margin, 2.0 * loss.weight / shape[1] as f32);
        let what = ("counting", places, shape, of.margin.to_bits());
        self.row_loss(what, loss, |s, [losses, gradient]| {
            let ([from, distances], words) = (places, counts(shape)?);
            let arguments = (from, words, margin, distances, losses);
            s.enqueue(|k| &k.counting_losses, warps(shape[1])?, "the counting loss", arguments)?;
            let (rows, doing) = (warps(shape[0] * shape[1])?, "the counting loss's gradient");
            let arguments = (from, words, margin, distances, scale, gradient);
            s.enqueue(|k| &k.counting_gradient, rows, doing, arguments)
        })
    }

    pub(crate) fn contrastive(&mut self, of: Views, temperature: f32, loss: Loss) -> Result<()> {
        let Views { rows, views, dim } = of;
        let n = similarity::rows("rows", rows.len(), dim)?;
        let nccl = self.together.as_ref().map(|t| t.nccl.clone());
        let (rank, ranks) = nccl.as_ref().map_or((0, 1), |n| (n.rank(), n.ranks()));
        let own = n / views;
        let shape = ViewShape { views, batch: ranks * own, dim, first: rank * own, own };
        let make = || Contrastive::new(&self.cuda, shape, nccl.is_some());
        let place = made_for_shape(&mut self.contrastive, shape, make)?;
        let from = slice(&self.cuda, rows)?;
        let outputs = [slice(&self.cuda, loss.rows)?, slice(&self.cuda, loss.gradient)?];
        let weight = loss.weight;
        let numbers = [temperature.to_bits(), weight.to_bits()];
        let signature = ("contrastive", from, outputs, numbers, views, dim);
        let cost =
            Cost { flops: 6.0 * (ranks * n * n * dim) as f64, bytes: (4 * ranks * n * dim) as f64 };
        self.part(Part::Loss, cost, signature, |s| {
            let (loss, stream) = (&s.contrastive[place].1, &s.stream.inner);
            loss.enqueue(stream, nccl.as_deref(), from, [temperature, weight], outputs)
        })?;
        self.lose(loss.rows, weight)
    }

    pub(crate) fn cosine(&mut self, of: [&Buffer; 2], dim: usize, loss: Loss) -> Result<()> {
        let rows = similarity::rows("rows", of[0].len(), dim)?;
        let (shape, scale) = ([rows, dim], loss.weight / rows as f32);
        let from = [slice(&self.cuda, of[0])?, slice(&self.cuda, of[1])?];
        self.row_loss(("cosine", from, shape), loss, |s, outputs| {
            let arguments = (from, counts(shape)?, scale, outputs);
            s.enqueue(|k| &k.cosine, warps(rows)?, "the cosine loss", arguments)
        })
    }

    pub(crate) fn custom_loss(&mut self, of: &Buffer, loss: Loss, work: HostLoss) -> Result<()> {
        let (cuda, weight) = (self.cuda.clone(), loss.weight);
        let (rows, gradient) = (&mut *loss.rows, &mut *loss.gradient);
        self.host_call(&mut || {
            let (mut losses, mut slope) = (vec![0.0; rows.len()], vec![0.0; gradient.len()]);
            work(&cuda.download(of)?, &mut losses, &mut slope)?;
            slope.iter_mut().for_each(|g| *g *= weight);
            cuda.write(&losses, rows)?;
            cuda.write(&slope, gradient)
        })?;
        self.lose(rows, weight)
    }

    pub(crate) fn mean_of_others(
        &mut self,
        of: Views,
        normalise: bool,
        to: &mut Buffer,
    ) -> Result<()> {
        let Views { rows, views, dim } = of;
        let n = similarity::rows("rows", rows.len(), dim)?;
        let batch = n / views;
        let [from, to] = [slice(&self.cuda, rows)?, slice(&self.cuda, to)?];
        let signature = ("others", from, to, views, dim, normalise);
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let arguments = (from, counts([views, batch, dim])?, i32::from(normalise), to);
            let (shape, doing) = (warps(views * batch)?, "the mean of other views");
            s.enqueue(|k| &k.mean_of_others, shape, doing, arguments)
        })
    }

    pub(crate) fn nearest_rows(
        &mut self,
        of: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let [queries, keys] = of;
        let count = similarity::rows("queries", queries.len(), dim)?;
        let n = similarity::rows("keys", keys.len(), dim)?;
        let make = || Nearest::new(&self.cuda, count, n, dim);
        let place = made_for_shape(&mut self.nearest, [count, n, dim], make)?;
        let cuda = &self.cuda;
        let places = [slice(cuda, queries)?, slice(cuda, keys)?, slice(cuda, to)?];
        let cost = Cost {
            flops: 2.0 * (count * n * dim) as f64,
            bytes: (4 * (n + 2 * count) * dim) as f64,
        };
        self.part(Part::Loss, cost, ("nearest", places, count, n, dim), |s| {
            s.nearest[place].1.enqueue(&s.stream.inner, places)
        })
    }

    pub(crate) fn blend_rows(
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
            let make = || GatheredRows::new(&cuda, nccl.ranks(), shape);
            let place = made_for_shape(&mut self.gathered, shape, make)?;
            [blend.queries, blend.indices] = self.gathered[place].1.places(&cuda);
            blend.count = nccl.ranks() * count;
            blend.here = shard.first..shard.first + here;
            among = Some((nccl, place));
        }
        let cost = Cost { flops: 0.0, bytes: (12 * count * dim) as f64 };
        let signature = ("blend", blend.keys, places, [dim, blend.count], rate.to_bits());
        self.part(Part::Memory, cost, signature, |s| {
            s.run_beside(|s, side| {
                if let Some((nccl, place)) = &among {
                    s.gathered[*place].1.enqueue(&s.cuda, &side.inner, nccl, places)?;
                }
                similarity::enqueue_blend(&side.inner, &s.kernels.blend_rows, &blend)
            })
        })
    }

    pub(crate) fn add(&mut self, from: &Buffer, to: &mut Buffer, accumulate: bool) -> Result<()> {
        let (len, add) = (to.len() as u64, i32::from(accumulate));
        let [from, to] = [slice(&self.cuda, from)?, slice(&self.cuda, to)?];
        let cost = Cost { flops: 0.0, bytes: 8.0 * len as f64 };
        self.part(Part::Rest, cost, ("add", from, to, len, add), |s| {
            let shape = ones(len as usize)?;
            s.enqueue(|k| &k.add_values, shape, "adding values", (from, len, add, to))
        })
    }

    pub(crate) fn tiles(
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

    pub(crate) fn uniform(&mut self, seed: u64, to: &mut Buffer) -> Result<()> {
        let (len, words) = (to.len() as u64, [seed as u32, (seed >> 32) as u32]);
        let [step, to] = [self.dropout_step(), slice(&self.cuda, to)?];
        let signature = ("uniform", to, len, seed);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let shape = ones((len as usize).div_ceil(4))?;
            s.enqueue(|k| &k.uniform, shape, "drawing numbers", (words, step, len, to))
        })
    }

    pub(crate) fn quantise(
        &mut self,
        of: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer<u32>,
    ) -> Result<()> {
        let (cuda, shape) = (&self.cuda, [to.len(), of[1].len() / dim, dim]);
        let places = [slice(cuda, of[0])?, slice(cuda, of[1])?, slice(cuda, to)?];
        self.part(Part::Loss, Cost::default(), ("quantise", places, shape), |s| {
            let arguments = ([places[0], places[1]], counts(shape)?, places[2]);
            s.enqueue(|k| &k.quantise, ones(shape[0])?, "quantising", arguments)
        })
    }

    pub(crate) fn tally(&mut self, of: &Labelled, tally: &mut Buffer<u32>) -> Result<()> {
        let cuda = &self.cuda;
        let (from, to) = (slice(cuda, of.logits)?, slice(cuda, tally)?);
        let words = [slice(cuda, of.labels)?, slice(cuda, of.items)?];
        let shape = [of.items.len(), of.classes];
        self.part(Part::Loss, Cost::default(), ("tally", from, words, to, shape), |s| {
            let (batch, doing) = (shape[0], "counting right guesses");
            if batch == 0 {
                return Ok(());
            }
            let arguments = (from, counts([shape[1]])?, words, to);
            s.enqueue(|k| &k.tally, blocks(batch, BLOCK)?, doing, arguments)
        })
    }
}
