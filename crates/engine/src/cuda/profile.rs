//! The parts of a step, told apart so that each can be timed alone: a step runs all of them, or
//! only one.

use super::Cuda;
use super::autotune::{Task, Tuned};
use super::cudnn::{Call, Direction, Problem};
use super::memory::Workspace;
use crate::{Error, Result, Shape, Window};

/// What a call of a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Batch,
    Forward,
    NormForward,
    NormBackward,
    InputGradient,
    WeightGradient,
    Rest,
    Loss,
    Memory,
    Communication,
    Optimiser,
}

impl Part {
    /// All of them, in a step's order, and what they are called.
    pub(super) const ALL: [(Part, &str); 11] = [
        (Part::Batch, "batch made"),
        (Part::Forward, "convolutions"),
        (Part::NormForward, "norm, add, ReLU forwards"),
        (Part::NormBackward, "norm, add, ReLU backwards"),
        (Part::InputGradient, "input gradients"),
        (Part::WeightGradient, "weight gradients"),
        (Part::Rest, "pooling and the like"),
        (Part::Loss, "loss"),
        (Part::Memory, "memory"),
        (Part::Communication, "sums over processes"),
        (Part::Optimiser, "optimiser"),
    ];
}

/// Multiplications and additions, and bytes read and written at least.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) flops: f64,
    pub(super) bytes: f64,
}

/// A matrix product large enough that nothing but multiplying counts.
pub(super) fn most_flops(cuda: &Cuda) -> Result<f64> {
    let (batch, side, channels) = (32, 16, 4096);
    let shape = Shape::new(side, side, channels);
    let problem = Problem {
        batch,
        input: shape,
        used: channels,
        output: shape,
        window: Window::square(1, 1, 0),
        precision: cuda.precision(),
    };
    let bytes = cuda.precision().bytes();
    let tensor = |values: usize| cuda.zeros::<u8>(values * bytes, "a large matrix");
    let memory =
        [tensor(batch * shape.len())?, tensor(batch * shape.len())?, tensor(channels * channels)?];
    let stream = cuda.bound_stream()?;
    let [x, y, w] = memory.each_ref().map(|m| cuda.pointer(m));
    // Zeros would be multiplied faster than numbers are.
    stream.kernels.noise(batch * shape.len(), x)?;
    stream.kernels.noise(channels * channels, w)?;
    let task = Task { problem, direction: Direction::Forward, accumulate: false };
    let call = Call { first: x, second: w, result: y, workspace: 0 };
    let mut scratch = Workspace::new(cuda, 0, "cuDNN's working memory")?;
    let way = Tuned::choose(cuda, task, call, &mut scratch)?;
    let none = || Error::Device("cuDNN multiplies no large matrices".into());
    let way = way.ok_or_else(none)?;
    let workspace = scratch.pointer(cuda);
    let call = Call { workspace, ..call };
    let recorder = cuda.recorder()?;
    let mut recording = recorder.record(|| (0..4).try_for_each(|_| way.run(&recorder, &call)))?;
    let seconds = f64::from(recording.time(cuda)?) / 4e3;
    let flops = 2 * batch * shape.pixels() * channels * channels;
    Ok(flops as f64 / seconds)
}

/// A copy far larger than the caches, by a kernel of ours: it is faster than the driver's.
pub(super) fn most_bytes(cuda: &Cuda) -> Result<f64> {
    let values = 1 << 28;
    let bytes = cuda.precision().bytes();
    let source = cuda.zeros::<f32>(values, "a large copy")?;
    let target = cuda.zeros::<u8>(values * bytes, "a large copy")?;
    let (from, to) = (cuda.pointer(&source), cuda.pointer(&target));
    let recorder = cuda.recorder()?;
    let mut recording = recorder.record(|| recorder.kernels.narrow(from, values, to))?;
    let seconds = f64::from(recording.time(cuda)?) / 1e3;
    Ok(((4 + bytes) * values) as f64 / seconds)
}
