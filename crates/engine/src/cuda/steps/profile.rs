//! How long each part of a step takes alone, and what the GPU can do at best.

use super::CudaSteps;
use crate::cuda::cudnn::{Call, Direction, Problem};
use crate::cuda::memory::Scratch;
use crate::cuda::ways::{Task, Way};
use crate::cuda::{Cuda, CudaBuffer, CudaNetwork};
use crate::{Error, Network, PartTime, Profile, Result, Shape, StepRule, Window};

impl CudaSteps {
    pub(super) fn parts(
        &mut self,
        rule: &StepRule,
        network: &mut CudaNetwork,
        keys: &CudaBuffer,
    ) -> Result<Profile> {
        let cuda = self.cuda.clone();
        network.begin_steps(0, &rule.sgd)?;
        let keys_place = cuda.pointer(&keys.values);
        let step = network.record(|n| self.enqueue(n, keys_place, rule))?;
        let step_milliseconds = time(&cuda, step)?;

        let mut parts = vec![];
        let batch_values = self.batch * network.graph().nodes()[0].shape.len();
        let made = network.record(|n| self.make_only(n))?;
        parts.push(PartTime {
            name: "batch made",
            milliseconds: time(&cuda, made)?,
            flops: 0.0,
            bytes: (batch_values * (1 + cuda.precision().bytes())) as f64,
        });
        parts.extend(network.profile()?);
        let loss = network.record(|n| self.loss_only(n, keys_place, rule))?;
        let over_keys = (self.batch * self.item_count * self.dim) as f64;
        parts.push(PartTime {
            name: "loss over all keys",
            milliseconds: time(&cuda, loss)?,
            flops: 4.0 * over_keys,
            bytes: (4 * self.item_count * self.dim) as f64,
        });
        let update = network.record(|n| n.update_calls())?;
        parts.push(PartTime {
            name: "optimiser",
            milliseconds: time(&cuda, update)?,
            flops: 0.0,
            bytes: network.update_bytes(),
        });
        Ok(Profile {
            parts,
            step_milliseconds,
            most_flops: most_flops(&cuda)?,
            most_bytes: most_bytes(&cuda)?,
        })
    }
}

fn time(cuda: &Cuda, mut recording: crate::cuda::lane::Recording) -> Result<f64> {
    Ok(f64::from(recording.time(cuda)?))
}

/// A matrix product large enough that nothing but multiplying counts.
fn most_flops(cuda: &Cuda) -> Result<f64> {
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
    let memory = [
        tensor(batch * shape.len())?,
        tensor(batch * shape.len())?,
        tensor(channels * channels)?,
    ];
    let lane = cuda.lane()?;
    let [x, y, w] = memory.each_ref().map(|m| cuda.pointer(m));
    // Zeros would be multiplied faster than numbers are.
    lane.kernels.noise(batch * shape.len(), x)?;
    lane.kernels.noise(channels * channels, w)?;
    let task = Task {
        problem,
        direction: Direction::Forward,
        accumulate: false,
    };
    let call = Call {
        first: x,
        second: w,
        result: y,
        workspace: 0,
    };
    let mut scratch = Scratch::new(cuda, 0, "cuDNN's working memory")?;
    let way = Way::choose(cuda, task, call, &mut scratch)?;
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
fn most_bytes(cuda: &Cuda) -> Result<f64> {
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
