//! What steps are made of, on a CPU.

use super::super::quarters::quarters;
use super::super::similarity::SoftmaxCall;
use super::super::{losses, similarity, tiles, uniform};
use super::{CpuStream, indices, indices_mut, values, values_mut};
use crate::stream::{
    Counting, HostLoss, Labelled, Loss, Rows, SoftmaxLoss, Tiles, Views, made_for_shape,
};
use crate::{Buffer, Result, RowSample, Shard};

impl CpuStream {
    /// The softmax of all processes' queries over all processes' keys, of which `shard` is here, or
    /// over a sample of them.
    fn softmax_shards(
        &mut self,
        of: &SoftmaxLoss,
        shard: Shard,
        sample: Option<RowSample>,
        loss: Loss,
    ) -> Result<()> {
        let queries = values(of.queries)?;
        let (c, g, dim) = (&self.communicator, &mut self.gathered, of.dim);
        let (count, arch) = (queries.len() / dim, self.cpu.arch());
        g.rows(c, queries)?;
        match of.items {
            Some(items) => g.items(c, indices(items)?)?,
            None => g.every_row(of.positives.len()),
        }
        g.positives(c, of.positives, count)?;
        g.make_room(c.ranks());
        let call = SoftmaxCall {
            queries: &g.rows,
            keys: values(of.keys)?,
            dim,
            temperature: of.temperature,
            positives: &g.positives,
            items: Some(&g.row_of),
            weight: loss.weight,
        };
        let (sums, means, losses) = (&mut g.sums, &mut g.means, &mut g.losses);
        match sample {
            None => (self.cpu).install(|| g.shard.look(arch, &call, shard.first, sums, means)),
            Some(sample) => {
                let drawn = &mut self.sampled;
                let weight = drawn.draw(sample, self.number, shard.rows, &call);
                let at = (shard.first, weight);
                (self.cpu).install(|| drawn.look(arch, &mut g.shard, &call, at, sums, means));
            }
        }
        c.gather(sums, &mut g.all_sums)?;
        let (all, rank) = (&g.all_sums, c.rank());
        self.cpu.install(|| g.shard.share(&call, all, rank, losses, means));
        c.sum_parts(means, values_mut(loss.gradient)?)?;
        let own = &losses[rank * count..][..count];
        values_mut(loss.rows)?.copy_from_slice(own);
        self.lose(values(loss.rows)?, loss.weight)
    }
}

/// Logits and classes on the CPU.
fn labelled<'a>(of: &Labelled<'a>) -> Result<losses::Labelled<'a>> {
    let (labels, items) = (indices(of.labels)?, indices(of.items)?);
    Ok(losses::Labelled { logits: values(of.logits)?, classes: of.classes, labels, items })
}

/// What is asked of a softmax over all keys.
fn softmax_call<'a>(of: &SoftmaxLoss<'a>, loss: &Loss) -> Result<SoftmaxCall<'a>> {
    Ok(SoftmaxCall {
        queries: values(of.queries)?,
        keys: values(of.keys)?,
        dim: of.dim,
        temperature: of.temperature,
        positives: of.positives.memory()?,
        items: of.items.map(indices).transpose()?,
        weight: loss.weight,
    })
}

impl CpuStream {
    pub(crate) fn softmax(
        &mut self,
        of: &SoftmaxLoss,
        sample: Option<RowSample>,
        loss: Loss,
    ) -> Result<()> {
        let whole = Shard { first: 0, rows: of.positives.keys() };
        if let Some(shard) = of.keys.shard().or(sample.map(|_| whole)) {
            return self.softmax_shards(of, shard, sample, loss);
        }
        let call = softmax_call(of, &loss)?;
        let (rows, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        let (arch, scratch) = (self.cpu.arch(), &mut self.scratch);
        self.cpu.install(|| similarity::softmax_loss(arch, scratch, &call, rows, gradient));
        self.lose(values(loss.rows)?, loss.weight)
    }

    pub(crate) fn softmax_between_views(
        &mut self,
        of: &SoftmaxLoss,
        views: usize,
        loss: Loss,
    ) -> Result<()> {
        let all = softmax_call(of, &loss)?;
        let (rows, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        let (arch, scratch) = (self.cpu.arch(), &mut self.scratch);
        let (count, len) = (rows.len() / views, all.queries.len() / views);
        let inputs = all.queries.chunks(len).zip(all.keys.chunks(len).cycle().skip(1));
        let outputs = rows.chunks_mut(count).zip(gradient.chunks_mut(len));
        for ((queries, keys), (rows, gradient)) in inputs.zip(outputs) {
            let call = SoftmaxCall { queries, keys, weight: loss.weight / views as f32, ..all };
            self.cpu.install(|| similarity::softmax_loss(arch, scratch, &call, rows, gradient));
        }
        self.lose(values(loss.rows)?, loss.weight)
    }

    pub(crate) fn cross_entropy(&mut self, of: &Labelled, loss: Loss) -> Result<()> {
        let (arch, weight, weights) = (self.cpu.arch(), loss.weight, of.weights);
        let (of, weights) = (labelled(of)?, weights.map(values).transpose()?);
        let (rows, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        self.cpu.install(|| losses::cross_entropy(arch, &of, weights, weight, rows, gradient));
        self.lose(values(loss.rows)?, weight)
    }

    pub(crate) fn gather_rows(
        &mut self,
        from: Rows,
        items: &Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (from, dim, items) = (values(from.values)?, from.dim, indices(items)?);
        let rows = values_mut(to)?.chunks_exact_mut(dim);
        for (row, item) in rows.zip(items) {
            row.copy_from_slice(&from[*item as usize * dim..][..dim]);
        }
        Ok(())
    }

    pub(crate) fn quarters(
        &mut self,
        pixels: &Buffer,
        shape: [usize; 2],
        to: &mut Buffer,
    ) -> Result<()> {
        let (pixels, to, [size, channels]) = (values(pixels)?, values_mut(to)?, shape);
        self.cpu.install(|| quarters(pixels, size, channels, to));
        Ok(())
    }

    pub(crate) fn counting(
        &mut self,
        of: &Counting,
        distances: &mut Buffer,
        loss: Loss,
    ) -> Result<()> {
        let shape = losses::Parts { rows: values(of.rows)?, views: of.views, dim: of.dim };
        let (distances, rows) = (values_mut(distances)?, values_mut(loss.rows)?);
        let gradient = values_mut(loss.gradient)?;
        self.cpu.install(|| {
            losses::counting(&shape, of.margin, loss.weight, distances, rows, gradient);
        });
        self.lose(values(loss.rows)?, loss.weight)
    }

    pub(crate) fn contrastive(&mut self, of: Views, temperature: f32, loss: Loss) -> Result<()> {
        let Views { rows, views, dim } = of;
        let (own, arch, c) = (values(rows)?, self.cpu.arch(), &self.communicator);
        let pictures = rows.len() / (views * dim);
        let shape = similarity::Shape {
            views,
            batch: pictures * c.ranks(),
            dim,
            first: pictures * c.rank(),
            own: pictures,
        };
        let make = || Ok(similarity::Contrastive::new(shape));
        let place = made_for_shape(&mut self.contrastive, shape, make)?;
        let (work, g) = (&mut self.contrastive[place].1, &mut self.gathered);
        let (to, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        let weight = loss.weight;
        if c.is_single() {
            self.cpu.install(|| {
                work.losses(arch, own, own, temperature, to);
                work.gradient(arch, own, work.log_sums(), temperature, weight, gradient);
            });
        } else {
            g.views(c, own, pictures * dim)?;
            self.cpu.install(|| work.losses(arch, own, &g.by_view, temperature, to));
            g.log_sums(c, work.log_sums(), pictures)?;
            let (rows, log_sums) = (&g.by_view, &g.log_sums);
            self.cpu.install(|| work.gradient(arch, rows, log_sums, temperature, weight, gradient));
        }
        self.lose(values(loss.rows)?, weight)
    }

    pub(crate) fn cosine(&mut self, of: [&Buffer; 2], dim: usize, loss: Loss) -> Result<()> {
        let (arch, weight, of) = (self.cpu.arch(), loss.weight, [values(of[0])?, values(of[1])?]);
        let (rows, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        self.cpu.install(|| losses::cosine(arch, of, dim, weight, rows, gradient));
        self.lose(values(loss.rows)?, weight)
    }

    pub(crate) fn custom_loss(&mut self, of: &Buffer, loss: Loss, work: HostLoss) -> Result<()> {
        let (rows, gradient) = (values_mut(loss.rows)?, values_mut(loss.gradient)?);
        work(values(of)?, rows, gradient)?;
        gradient.iter_mut().for_each(|g| *g *= loss.weight);
        self.lose(values(loss.rows)?, loss.weight)
    }

    pub(crate) fn mean_of_others(
        &mut self,
        of: Views,
        normalise: bool,
        to: &mut Buffer,
    ) -> Result<()> {
        let (arch, rows, to) = (self.cpu.arch(), values(of.rows)?, values_mut(to)?);
        self.cpu.install(|| losses::mean_of_others(arch, rows, of.dim, of.views, normalise, to));
        Ok(())
    }

    pub(crate) fn nearest_rows(
        &mut self,
        of: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let (arch, queries, keys) = (self.cpu.arch(), values(of[0])?, values(of[1])?);
        let to = values_mut(to)?;
        self.cpu.install(|| similarity::nearest_rows(arch, queries, keys, dim, to));
        Ok(())
    }

    pub(crate) fn blend_rows(
        &mut self,
        keys: &mut Buffer,
        dim: usize,
        which: &Buffer<u32>,
        queries: &Buffer,
        rate: f32,
    ) -> Result<()> {
        if self.failed {
            return Ok(());
        }
        let which = indices(which)?;
        let queries = &values(queries)?[..which.len() * dim];
        let (first, rows, which) = match keys.shard() {
            None => (0, queries, which),
            Some(shard) => {
                let (c, g) = (&self.communicator, &mut self.gathered);
                g.rows(c, queries)?;
                g.items(c, which)?;
                (shard.first, &g.rows[..], &g.items[..])
            }
        };
        similarity::blend_rows(values_mut(keys)?, dim, first, which, rows, rate);
        Ok(())
    }

    pub(crate) fn add(&mut self, from: &Buffer, to: &mut Buffer, accumulate: bool) -> Result<()> {
        let (from, to) = (values(from)?, values_mut(to)?);
        match accumulate {
            true => to.iter_mut().zip(from).for_each(|(t, f)| *t += f),
            false => to.copy_from_slice(from),
        }
        Ok(())
    }

    pub(crate) fn tiles(
        &mut self,
        of: &Tiles,
        first: usize,
        labels: &mut Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (pixels, places) = (values(of.pixels)?, indices(of.places)?);
        let (labels, to) = (indices_mut(labels)?, values_mut(to)?);
        let draws = (self.number, first);
        self.cpu.install(|| tiles::tiles(of, pixels, places, draws, labels, to));
        Ok(())
    }

    pub(crate) fn uniform(&mut self, seed: u64, to: &mut Buffer) -> Result<()> {
        uniform::uniform(seed, self.number, values_mut(to)?);
        Ok(())
    }

    pub(crate) fn quantise(
        &mut self,
        of: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer<u32>,
    ) -> Result<()> {
        let (rows, codebook, to) = (values(of[0])?, values(of[1])?, indices_mut(to)?);
        self.cpu.install(|| losses::quantise(rows, codebook, dim, to));
        Ok(())
    }

    pub(crate) fn tally(&mut self, of: &Labelled, tally: &mut Buffer<u32>) -> Result<()> {
        losses::tally(&labelled(of)?, indices_mut(tally)?);
        Ok(())
    }
}
