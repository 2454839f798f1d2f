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

use std::any::Any;

pub use step_ops::{Counting, HostLoss, Loss, SoftmaxLoss, StepOps, Tiles};
pub(crate) use step_ops::{Labelled, Rows, Views, made_for_shape};

use crate::batch::{Batch, BatchSource, Epoch};
use crate::communicator::Communicator;
use crate::{Error, Profile, Result};

/// A device's work, in order.
pub struct Stream {
    pub(crate) backend: Box<dyn StreamBackend>,
    communicator: Communicator,
}

impl Stream {
    /// A device's own, whose steps several processes take together where there are several.
    pub(crate) fn among(
        mut backend: Box<dyn StreamBackend>,
        communicator: &Communicator,
    ) -> Result<Self> {
        if !communicator.is_single() {
            backend.join(communicator)?;
        }
        let communicator = communicator.clone();
        Ok(Stream { backend, communicator })
    }

    /// The processes that train together.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Goes on with an epoch, or a part of one: the steps to come are its.
    pub fn begin_epoch(&mut self, source: &mut BatchSource, epoch: &Epoch) -> Result<()> {
        self.backend.begin_epoch(epoch)?;
        source.backend.begin_epoch(&mut *self.backend, epoch)
    }

    /// Asks for one step and does not wait for it. `work` makes the same calls every time; it may
    /// be called twice for a step, or its calls may be known already and be launched as a whole, so
    /// what it does beside giving work to the device belongs into [`Stream::custom_loss`].
    pub fn step(
        &mut self,
        source: &mut BatchSource,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<()> {
        source.backend.bring(&mut *self.backend)?;
        loop {
            self.backend.begin_step()?;
            let begun = source.backend.begin_step(&mut *self.backend);
            let worked = begun.and_then(|()| work(self, Batch::new(&*source.backend)));
            match self.backend.end_step(worked)? {
                Stepped::Done => break,
                Stepped::Again => {}
            }
        }
        source.backend.taken(&mut *self.backend)
    }

    /// All steps of an epoch, or of the rest of one, until the last is done; gives the loss of
    /// each. For `work`, see [`step`](Stream::step).
    pub fn epoch(
        &mut self,
        source: &mut BatchSource,
        epoch: &Epoch,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<Vec<f64>> {
        self.begin_epoch(source, epoch)?;
        // A schedule has a value for every step.
        let steps = epoch.scalars.first().map_or(0, Vec::len).saturating_sub(epoch.first);
        let mut losses = Vec::with_capacity(steps);
        for step in 1..=steps {
            self.step(source, work)?;
            if step % self.capacity() == 0 || step == steps {
                self.losses(&mut losses)?;
            }
        }
        Ok(losses)
    }

    /// Where the time of a step goes, on a device that can tell, found by running its parts alone.
    /// Weights, memory and counters are not what they were afterwards.
    pub fn profile(
        &mut self,
        source: &mut BatchSource,
        work: &mut dyn FnMut(&mut Stream, Batch) -> Result<()>,
    ) -> Result<Option<Profile>> {
        source.backend.bring(&mut *self.backend)?;
        while self.backend.begin_part()? {
            let begun = source.backend.begin_step(&mut *self.backend);
            let worked = begun.and_then(|()| work(self, Batch::new(&*source.backend)));
            self.backend.end_part(worked)?;
        }
        self.backend.profile()
    }

    /// Waits for all steps asked for and appends the loss of each since the last time; lowers the
    /// flag.
    pub fn losses(&mut self, into: &mut Vec<f64>) -> Result<()> {
        self.backend.losses(into)
    }

    /// Steps that can be asked for before their losses are read.
    pub fn capacity(&self) -> usize {
        self.backend.capacity()
    }

    /// Sets the learning rate and the step's number, for work that is part of no epoch.
    pub fn set_step(&mut self, number: u64, rate: f32) -> Result<()> {
        self.backend.set_step(number, rate)
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

/// What a device's stream can do; [`Stream`] says what each does.
#[allow(missing_docs)]
pub trait StreamBackend: StepOps + Send {
    fn as_any(&mut self) -> &mut dyn Any;
    /// Takes its steps with other processes from now on. A loss then comes with this process's
    /// share of its weight, the step's loss is the sum of all processes' shares, networks add up
    /// their gradients over all processes, and rows that are sharded are everybody's.
    fn join(&mut self, _: &Communicator) -> Result<()> {
        let why = "this device cannot train with other processes yet";
        Err(Error::Device(why.into()))
    }
    fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()>;
    fn begin_step(&mut self) -> Result<()>;
    fn end_step(&mut self, worked: Result<()>) -> Result<Stepped>;
    fn losses(&mut self, into: &mut Vec<f64>) -> Result<()>;
    fn capacity(&self) -> usize;
    fn set_step(&mut self, number: u64, rate: f32) -> Result<()>;

    /// Whether there is another part to be timed; its calls follow.
    fn begin_part(&mut self) -> Result<bool> {
        Ok(false)
    }
    fn end_part(&mut self, worked: Result<()>) -> Result<()> {
        worked
    }
    fn profile(&mut self) -> Result<Option<Profile>> {
        Ok(None)
    }
}
