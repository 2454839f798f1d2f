//! Losses over rows of f32 on the GPU, each with the gradient of weight · mean(losses)
//! (kernels/losses.cu has the maths).
//!
//! Everything is on the device and is asked for on the stream given; nothing waits, so that a step
//! can be captured as a graph. Losses and gradients are written (`=`). Callers promise that
//! pointers cover the rows named.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};

use super::launch::{Pointer, counts, side_by_side};
use super::{Cuda, failed};
use crate::Result;

/// Threads of a block of each kernel.
const THREADS: u32 = 256;
/// Rows of a block where a warp takes a row.
const ROWS: usize = THREADS as usize / 32;

/// The kernels, loaded.
pub(super) struct Losses {
    cross_entropy: CudaFunction,
    accumulate_loss: CudaFunction,
    loss_share: CudaFunction,
    add_loss: CudaFunction,
    cosine: CudaFunction,
    mean_of_others: CudaFunction,
    mean_squared: CudaFunction,
    tally: CudaFunction,
    quantise: CudaFunction,
    gather_rows: CudaFunction,
    counting_losses: CudaFunction,
    counting_gradient: CudaFunction,
}

/// What a step's loss is added to, all on the device.
#[derive(Clone, Copy)]
pub(super) struct StepLoss {
    /// f64: the loss of the step so far.
    pub(super) sum: Pointer,
    /// f32: the losses of the last steps.
    pub(super) ring: Pointer,
    /// How many steps the ring holds.
    pub(super) capacity: usize,
    /// Three u64: step in the epoch, epoch, number of all steps.
    pub(super) current: Pointer,
    /// u32: 1 from the first loss on that is not finite.
    pub(super) flag: Pointer,
}

impl Losses {
    pub(super) fn load(cuda: &Cuda) -> Result<Self> {
        let function = |name| cuda.function("losses", name);
        Ok(Losses {
            cross_entropy: function("cross_entropy")?,
            accumulate_loss: function("accumulate_loss")?,
            loss_share: function("loss_share")?,
            add_loss: function("add_loss")?,
            cosine: function("cosine")?,
            mean_of_others: function("mean_of_others")?,
            mean_squared: function("mean_squared")?,
            tally: function("tally")?,
            quantise: function("quantise")?,
            gather_rows: function("gather_rows")?,
            counting_losses: function("counting_losses")?,
            counting_gradient: function("counting_gradient")?,
        })
    }

    /// Softmax cross-entropy: row b's class is `labels[indices[b]]`, a class less than `classes`
    /// (u32 both), and counts with `weights[class]`, or 1 without weights (0).
    pub(super) fn cross_entropy(
        &self,
        stream: &Arc<CudaStream>,
        logits: Pointer,
        [batch, classes]: [usize; 2],
        [labels, indices, weights]: [Pointer; 3],
        weight: f32,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        if batch == 0 {
            return Ok(());
        }
        let [columns] = counts([classes])?;
        let scale = weight / batch as f32;
        let mut launch = stream.launch_builder(&self.cross_entropy);
        launch.arg(&logits).arg(&columns).arg(&labels).arg(&indices);
        launch.arg(&weights).arg(&scale);
        launch.arg(&losses).arg(&gradient);
        // SAFETY: the arguments are those of the kernel; pointers are the caller's promise.
        let launched = unsafe { launch.launch(blocks(batch)?) };
        launched.map(drop).map_err(|e| failed("cross-entropy", e))
    }

    /// Counts right guesses and rows of each class: row b's class is `labels[indices[b]]`.
    pub(super) fn tally(
        &self,
        stream: &Arc<CudaStream>,
        logits: Pointer,
        [batch, classes]: [usize; 2],
        [labels, indices]: [Pointer; 2],
        tally: Pointer,
    ) -> Result<()> {
        if batch == 0 {
            return Ok(());
        }
        let [columns] = counts([classes])?;
        let mut launch = stream.launch_builder(&self.tally);
        launch.arg(&logits).arg(&columns).arg(&labels).arg(&indices);
        launch.arg(&tally);
        // SAFETY: the arguments are those of the kernel; pointers are the caller's promise.
        let launched = unsafe { launch.launch(blocks(batch)?) };
        launched.map(drop).map_err(|e| failed("counting right guesses", e))
    }

    /// The number of the entry nearest to each row.
    pub(super) fn quantise(
        &self,
        stream: &Arc<CudaStream>,
        [rows, codebook, to]: [Pointer; 3],
        [count, entries, dim]: [usize; 3],
    ) -> Result<()> {
        let [c, e, d] = counts([count, entries, dim])?;
        let mut launch = stream.launch_builder(&self.quantise);
        launch.arg(&rows).arg(&codebook).arg(&c).arg(&e).arg(&d);
        launch.arg(&to);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(count.div_ceil(THREADS as usize))?) };
        launched.map(drop).map_err(|e| failed("quantising", e))
    }

    /// Adds weight · mean(losses) to the step's loss.
    pub(super) fn accumulate_loss(
        &self,
        stream: &Arc<CudaStream>,
        losses: Pointer,
        count: usize,
        weight: f32,
        step: &StepLoss,
    ) -> Result<()> {
        let [count, capacity] = counts([count, step.capacity])?;
        let mut launch = stream.launch_builder(&self.accumulate_loss);
        launch.arg(&losses).arg(&count).arg(&weight);
        launch.arg(&step.sum).arg(&step.ring).arg(&capacity);
        launch.arg(&step.current).arg(&step.flag);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(1)?) };
        launched.map(drop).map_err(|e| failed("the loss of a step", e))
    }

    /// Writes weight · mean(losses) to one f64: a process's share of the step's loss.
    pub(super) fn loss_share(
        &self,
        stream: &Arc<CudaStream>,
        losses: Pointer,
        count: usize,
        weight: f32,
        share: Pointer,
    ) -> Result<()> {
        let [count] = counts([count])?;
        let mut launch = stream.launch_builder(&self.loss_share);
        launch.arg(&losses).arg(&count).arg(&weight).arg(&share);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(1)?) };
        launched.map(drop).map_err(|e| failed("the loss of a step", e))
    }

    /// Adds all processes' shares, one f64, to the step's loss.
    pub(super) fn add_loss(
        &self,
        stream: &Arc<CudaStream>,
        share: Pointer,
        step: &StepLoss,
    ) -> Result<()> {
        let [capacity] = counts([step.capacity])?;
        let mut launch = stream.launch_builder(&self.add_loss);
        launch.arg(&share).arg(&step.sum).arg(&step.ring);
        launch.arg(&capacity).arg(&step.current).arg(&step.flag);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(1)?) };
        launched.map(drop).map_err(|e| failed("the loss of a step", e))
    }

    /// −cos(p, z) for each of `rows` rows, with the gradient of the predictions p alone.
    pub(super) fn cosine(
        &self,
        stream: &Arc<CudaStream>,
        [predictions, targets]: [Pointer; 2],
        [rows, dim]: [usize; 2],
        weight: f32,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let [count, columns] = counts([rows, dim])?;
        let scale = weight / rows as f32;
        let mut launch = stream.launch_builder(&self.cosine);
        launch.arg(&predictions).arg(&targets);
        launch.arg(&count).arg(&columns).arg(&scale);
        launch.arg(&losses).arg(&gradient);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(rows.div_ceil(ROWS))?) };
        launched.map(drop).map_err(|e| failed("the cosine loss", e))
    }

    /// For each row (v, i) of views · batch rows the mean over the other views u of row (u, i).
    pub(super) fn mean_of_others(
        &self,
        stream: &Arc<CudaStream>,
        rows: Pointer,
        [views, batch, dim]: [usize; 3],
        normalise: bool,
        targets: Pointer,
    ) -> Result<()> {
        let [v, b, d] = counts([views, batch, dim])?;
        let normalise = i32::from(normalise);
        let mut launch = stream.launch_builder(&self.mean_of_others);
        launch.arg(&rows).arg(&v).arg(&b).arg(&d);
        launch.arg(&normalise).arg(&targets);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks((views * batch).div_ceil(ROWS))?) };
        launched.map(drop).map_err(|e| failed("the mean of other views", e))
    }

    /// `to[b] = from[indices[b]]`, rows of `dim`.
    pub(super) fn gather_rows(
        &self,
        stream: &Arc<CudaStream>,
        [from, indices, to]: [Pointer; 3],
        [rows, dim]: [usize; 2],
    ) -> Result<()> {
        let [count, columns] = counts([rows, dim])?;
        let mut launch = stream.launch_builder(&self.gather_rows);
        launch.arg(&from).arg(&indices).arg(&count).arg(&columns);
        launch.arg(&to);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(rows.div_ceil(ROWS))?) };
        launched.map(drop).map_err(|e| failed("gathering rows", e))
    }

    /// What the parts of `pictures` pictures add up to, and what another picture must not; the
    /// distances of both are given too.
    pub(super) fn counting(
        &self,
        stream: &Arc<CudaStream>,
        rows: Pointer,
        [views, pictures, dim]: [usize; 3],
        [margin, weight]: [f32; 2],
        [distances, losses, gradient]: [Pointer; 3],
    ) -> Result<()> {
        let scale = 2.0 * weight / pictures as f32;
        let [v, n, d] = counts([views, pictures, dim])?;
        let mut launch = stream.launch_builder(&self.counting_losses);
        launch.arg(&rows).arg(&v).arg(&n).arg(&d).arg(&margin);
        launch.arg(&distances).arg(&losses);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(pictures.div_ceil(ROWS))?) };
        launched.map_err(|e| failed("the counting loss", e))?;
        let mut launch = stream.launch_builder(&self.counting_gradient);
        launch.arg(&rows).arg(&v).arg(&n).arg(&d).arg(&margin);
        launch.arg(&distances).arg(&scale).arg(&gradient);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks((views * pictures).div_ceil(ROWS))?) };
        launched.map(drop).map_err(|e| failed("the counting loss's gradient", e))
    }

    /// The mean squared difference of each of `rows` rows, with the gradient of `a` alone.
    pub(super) fn mean_squared(
        &self,
        stream: &Arc<CudaStream>,
        [a, b]: [Pointer; 2],
        [rows, dim]: [usize; 2],
        weight: f32,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let scale = 2.0 * weight / (rows * dim) as f32;
        let [count, columns] = counts([rows, dim])?;
        let mut launch = stream.launch_builder(&self.mean_squared);
        launch.arg(&a).arg(&b).arg(&count).arg(&columns).arg(&scale);
        launch.arg(&losses).arg(&gradient);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(blocks(rows.div_ceil(ROWS))?) };
        launched.map(drop).map_err(|e| failed("the mean squared error", e))
    }
}

/// So many blocks, at least one.
fn blocks(count: usize) -> Result<LaunchConfig> {
    Ok(LaunchConfig {
        grid_dim: (side_by_side(count)?, 1, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    })
}

#[cfg(test)]
mod tests;
