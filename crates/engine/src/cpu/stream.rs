//! The CPU's stream: every call is done when it returns.

mod step_ops;

use super::gathered::Gathered;
use super::{Cpu, similarity};
use crate::stream::Stepped;
use crate::{Buffer, Communicator, Epoch, Result, Scalar};

/// Steps whose losses can wait to be read.
const CAPACITY: usize = 4096;

pub(crate) struct CpuStream {
    cpu: Cpu,
    /// The step in the epoch, and among all.
    step: usize,
    number: u64,
    /// The schedules' values in every step of the epoch, and in this one.
    schedules: Vec<Vec<f32>>,
    scalars: [f32; Scalar::MOST],
    /// The loss of this step so far, and of those that nobody has read.
    loss: f64,
    losses: Vec<f64>,
    /// Whether a loss was not a finite number.
    failed: bool,
    scratch: similarity::SoftmaxScratch,
    /// One for each shape that was met.
    contrastive: Vec<(similarity::Shape, similarity::Contrastive)>,
    communicator: Communicator,
    gathered: Gathered,
    sampled: similarity::SampledScratch,
}

impl CpuStream {
    pub(super) fn new(cpu: &Cpu) -> Self {
        CpuStream {
            cpu: cpu.clone(),
            step: 0,
            number: 0,
            schedules: vec![],
            scalars: [0.0; Scalar::MOST],
            loss: 0.0,
            losses: Vec::with_capacity(CAPACITY),
            failed: false,
            scratch: similarity::SoftmaxScratch::default(),
            contrastive: vec![],
            communicator: Communicator::single(),
            gathered: Gathered::default(),
            sampled: similarity::SampledScratch::default(),
        }
    }

    /// The step's number among all.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The step's number in its epoch.
    pub(crate) fn step(&self) -> usize {
        self.step
    }

    /// A schedule's value in this step.
    pub(super) fn scalar(&self, which: Scalar) -> f32 {
        self.scalars[which.0]
    }

    /// Whether a loss was not a finite number: nothing is to be changed then.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// The processes that take its steps.
    pub(super) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Adds to the step's loss, on all processes the same.
    fn lose(&mut self, rows: &[f32], weight: f32) -> Result<()> {
        let sum: f64 = rows.iter().map(|l| f64::from(*l)).sum();
        let mut loss = [f64::from(weight) * (sum / rows.len().max(1) as f64)];
        self.communicator.sum_f64(&mut loss)?;
        self.loss += loss[0];
        self.failed |= !self.loss.is_finite();
        Ok(())
    }

    pub(crate) fn join(&mut self, communicator: &Communicator) -> Result<()> {
        self.communicator = communicator.clone();
        Ok(())
    }

    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        self.step = epoch.first;
        self.number = epoch.number;
        self.schedules.clear();
        self.schedules.extend_from_slice(epoch.scalars);
        Ok(())
    }

    pub(crate) fn begin_step(&mut self) -> Result<()> {
        for (now, values) in self.scalars.iter_mut().zip(&self.schedules) {
            if let Some(value) = values.get(self.step) {
                *now = *value;
            }
        }
        self.loss = 0.0;
        Ok(())
    }

    pub(crate) fn end_step(&mut self, worked: Result<()>) -> Result<Stepped> {
        worked?;
        self.losses.push(self.loss);
        self.step += 1;
        self.number += 1;
        Ok(Stepped::Done)
    }

    pub(crate) fn losses(&mut self, into: &mut Vec<f64>) -> Result<()> {
        into.append(&mut self.losses);
        self.failed = false;
        Ok(())
    }

    pub(crate) fn capacity(&self) -> usize {
        CAPACITY - self.losses.len().min(CAPACITY)
    }

    pub(crate) fn set_step(&mut self, number: u64, rate: f32) -> Result<()> {
        self.number = number;
        self.scalars[Scalar::RATE.0] = rate;
        self.schedules.clear();
        self.loss = 0.0;
        Ok(())
    }
}

/// A buffer's values.
pub(crate) fn values(buffer: &Buffer) -> Result<&[f32]> {
    buffer.memory::<Vec<f32>>().map(Vec::as_slice)
}

/// A buffer's values, to be written.
pub(crate) fn values_mut(buffer: &mut Buffer) -> Result<&mut [f32]> {
    buffer.memory_mut::<Vec<f32>>().map(Vec::as_mut_slice)
}

/// A buffer's whole numbers, to be written.
fn indices_mut(buffer: &mut Buffer<u32>) -> Result<&mut [u32]> {
    buffer.memory_mut::<Vec<u32>>().map(Vec::as_mut_slice)
}

/// A buffer's item numbers.
pub(crate) fn indices(buffer: &Buffer<u32>) -> Result<&[u32]> {
    buffer.memory::<Vec<u32>>().map(Vec::as_slice)
}
