//! Work for a device, in order; and a training step, written once.
//!
//! What changes from step to step (item numbers of the batch, counters, learning rate, losses)
//! lives on the device. So the calls of a step are the same every time, and a device may do them at
//! once, as the CPU does, or record them as a CUDA graph and launch them as a whole from then on.
//! Whoever writes a step never learns which happened.
//!
//! A step's loss that is not a finite number raises a flag on the device: until the losses are
//! read, weights, optimiser, moving averages, running statistics and memory rows are left as they
//! were.

mod step_ops;

pub use step_ops::{Counting, HostLoss, Loss, SoftmaxLoss, Tiles};
pub(crate) use step_ops::{Labelled, Rows, Views, made_for_shape};

use crate::backend::{Parts, either};
use crate::batch::{Batch, DeviceLoader, Epoch};
use crate::communicator::Communicator;
use crate::cpu::CpuStream;
use crate::cuda::GpuStream;
use crate::{Profile, Result};

/// A stream of the CPU's or of a GPU's.
pub(crate) type StreamParts = Parts<CpuStream, GpuStream>;

/// A device's work, in order.
pub struct Stream {
    pub(crate) backend: StreamParts,
    communicator: Communicator,
}

impl Stream {
    /// A device's own, whose steps several processes take together where there are several.
    pub(crate) fn among(mut backend: StreamParts, communicator: &Communicator) -> Result<Self> {
        if !communicator.is_single() {
            either!(&mut backend, stream => stream.join(communicator)?);
        }
        let communicator = communicator.clone();
        Ok(Stream { backend, communicator })
    }

    /// The processes that train together.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Goes on with an epoch, or a part of one: the steps to come are its.
    pub fn begin_epoch(&mut self, loader: &mut DeviceLoader, epoch: &Epoch) -> Result<()> {
        either!(&mut self.backend, stream => stream.begin_epoch(epoch)?);
        loader.begin_epoch(epoch)
    }

    /// Asks for one step and does not wait for it. `work` makes the same calls every time; it may
    /// be called twice for a step, or its calls may be known already and be launched as a whole, so
    /// what it does beside giving work to the device belongs into [`Stream::custom_loss`].
    pub fn step(
        &mut self,
        loader: &mut DeviceLoader,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<()> {
        loader.bring(self)?;
        loop {
            either!(&mut self.backend, stream => stream.begin_step()?);
            let begun = loader.begin_step(self);
            let worked = begun.and_then(|()| work(self, Batch::new(loader)));
            match either!(&mut self.backend, stream => stream.end_step(worked))? {
                Stepped::Done => break,
                Stepped::Again => {}
            }
        }
        loader.taken(self)
    }

    /// All steps of an epoch, or of the rest of one, until the last is done; gives the loss of
    /// each. For `work`, see [`step`](Stream::step).
    pub fn epoch(
        &mut self,
        loader: &mut DeviceLoader,
        epoch: &Epoch,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<Vec<f64>> {
        self.begin_epoch(loader, epoch)?;
        // A schedule has a value for every step.
        let steps = epoch.scalars.first().map_or(0, Vec::len).saturating_sub(epoch.first);
        let mut losses = Vec::with_capacity(steps);
        for step in 1..=steps {
            self.step(loader, work)?;
            if self.capacity() == 0 || step == steps {
                self.losses(&mut losses)?;
            }
        }
        Ok(losses)
    }

    /// Where the time of a step goes, on a device that can tell, found by running its parts alone.
    /// Weights, memory and counters are not what they were afterwards.
    pub fn profile(
        &mut self,
        loader: &mut DeviceLoader,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<Option<Profile>> {
        loader.bring(self)?;
        // A CPU cannot tell.
        while let StreamParts::Cuda(gpu) = &mut self.backend
            && gpu.begin_part()?
        {
            let begun = loader.begin_step(self);
            let worked = begun.and_then(|()| work(self, Batch::new(loader)));
            if let StreamParts::Cuda(gpu) = &mut self.backend {
                gpu.end_part(worked)?;
            }
        }
        match &mut self.backend {
            StreamParts::Cuda(gpu) => gpu.profile(),
            StreamParts::Cpu(_) => Ok(None),
        }
    }

    /// Waits for all steps asked for and appends the loss of each since the last time; lowers the
    /// flag.
    pub fn losses(&mut self, into: &mut Vec<f64>) -> Result<()> {
        either!(&mut self.backend, stream => stream.losses(into))
    }

    /// Steps that can be asked for before their losses are read.
    pub fn capacity(&self) -> usize {
        either!(&self.backend, stream => stream.capacity())
    }

    /// Sets the learning rate and the step's number, for work that is part of no epoch.
    pub fn set_step(&mut self, number: u64, rate: f32) -> Result<()> {
        either!(&mut self.backend, stream => stream.set_step(number, rate))
    }
}

/// What has become of a step's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// They are done, or on their way.
    Done,
    /// They were not those that were recorded: nothing was done, and they are to be made again.
    Again,
}
