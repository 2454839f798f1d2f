//! One convolution on the GPU: cuDNN's way in each direction, chosen before the first batch, or our plain loops where
//! cuDNN has none.
//!
//! ```text
//! forward           y = x ∗ w           (NHWC, weights OHWI)
//! input gradient    dx (+)= dy ∗ᵀ w
//! weight gradient   dw = x ⋆ dy
//! ```
//!
//! Of cuDNN's deterministic candidates the fastest is taken, measured in recordings, since call by call the host is what
//! would be measured. Small problems take the first that runs. A choice is made once for a problem and kept, so that two
//! networks compute the same bits.

use super::Cuda;
use super::cudnn::{Algorithm, Call, Descriptors, Direction, Problem};
use super::lane::Lane;
use super::launch::Pointer;
use super::memory::Scratch;
use crate::Result;

/// An algorithm that wants more working memory than this is left aside.
const WORKSPACE_LIMIT: usize = 1 << 30;

/// Multiplications and additions from which on measuring pays.
const WORTH_MEASURING: usize = 100_000_000;

/// Calls in a recording that is measured.
const CALLS: usize = 10;

pub(super) struct Convolution {
    problem: Problem,
    descriptors: Descriptors,
    forward: Option<Algorithm>,
    input_gradient: Option<Algorithm>,
    weight_gradient: Option<Algorithm>,
    wants_input_gradient: bool,
}

/// Where a convolution's tensors lie; a gradient that nobody wants is 0.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) x: Pointer,
    pub(super) w: Pointer,
    pub(super) y: Pointer,
    pub(super) dx: Pointer,
    pub(super) dw: Pointer,
    pub(super) dy: Pointer,
}

impl Convolution {
    /// Chooses an algorithm for each direction by running cuDNN's candidates over `places`, whose values are lost. The
    /// second working memory is for weight gradients, which run beside the rest.
    pub(super) fn new(
        cuda: &Cuda,
        problem: Problem,
        places: &Places,
        [scratch, beside]: &mut [Scratch; 2],
    ) -> Result<Self> {
        let descriptors = Descriptors::new(&problem)?;
        let chosen = |direction, [first, second, result]: [Pointer; 3], scratch: &mut Scratch| {
            let call = Call {
                first,
                second,
                result,
                accumulate: false,
                workspace: 0,
            };
            choose(cuda, &problem, &descriptors, direction, call, scratch)
        };
        let p = places;
        let forward = chosen(Direction::Forward, [p.x, p.w, p.y], scratch)?;
        let weight_gradient = chosen(Direction::WeightGradient, [p.x, p.dy, p.dw], beside)?;
        let input_gradient = match p.dx {
            0 => None,
            dx => chosen(Direction::InputGradient, [p.w, p.dy, dx], scratch)?,
        };
        Ok(Convolution {
            problem,
            descriptors,
            forward,
            input_gradient,
            weight_gradient,
            wants_input_gradient: p.dx != 0,
        })
    }

    /// How many of the directions cuDNN computes, and how many are wanted.
    pub(super) fn by_cudnn(&self) -> (usize, usize) {
        let ways = [&self.forward, &self.input_gradient, &self.weight_gradient];
        let wanted = 2 + usize::from(self.wants_input_gradient);
        (ways.iter().filter(|w| w.is_some()).count(), wanted)
    }

    /// y = x ∗ w.
    pub(super) fn forward(
        &self,
        lane: &Lane,
        workspace: Pointer,
        [x, w]: [Pointer; 2],
        y: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.forward else {
            let shapes = [p.input, p.output];
            return lane
                .kernels
                .direct_forward([x, w], shapes, p.window, p.batch, y);
        };
        let call = Call {
            first: x,
            second: w,
            result: y,
            accumulate: false,
            workspace,
        };
        lane.cudnn
            .run(&self.descriptors, Direction::Forward, algorithm, &call)
    }

    /// dx (+)= the gradient of the input.
    pub(super) fn input_gradient(
        &self,
        lane: &Lane,
        workspace: Pointer,
        [w, dy]: [Pointer; 2],
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.input_gradient else {
            let (k, shapes) = (&lane.kernels, [p.input, p.output]);
            return k.direct_input_gradient([w, dy], shapes, p.window, p.batch, accumulate, dx);
        };
        let call = Call {
            first: w,
            second: dy,
            result: dx,
            accumulate,
            workspace,
        };
        let direction = Direction::InputGradient;
        lane.cudnn
            .run(&self.descriptors, direction, algorithm, &call)
    }

    /// dw = the gradient of the weights.
    pub(super) fn weight_gradient(
        &self,
        lane: &Lane,
        workspace: Pointer,
        [x, dy]: [Pointer; 2],
        dw: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.weight_gradient else {
            let (k, shapes) = (&lane.kernels, [p.input, p.output]);
            return k.direct_weight_gradient([x, dy], shapes, p.window, p.batch, dw);
        };
        let call = Call {
            first: x,
            second: dy,
            result: dw,
            accumulate: false,
            workspace,
        };
        let direction = Direction::WeightGradient;
        lane.cudnn
            .run(&self.descriptors, direction, algorithm, &call)
    }
}

/// The choice for a problem: one made before, else one made now and remembered.
fn choose(
    cuda: &Cuda,
    problem: &Problem,
    descriptors: &Descriptors,
    direction: Direction,
    call: Call,
    scratch: &mut Scratch,
) -> Result<Option<Algorithm>> {
    let made = &cuda.shared.choices;
    let mut made = made.lock().unwrap_or_else(|e| e.into_inner());
    let lane = cuda.lane()?;
    match made.get(problem, direction) {
        Some(None) => return Ok(None),
        Some(Some(algorithm)) if algorithm.workspace <= WORKSPACE_LIMIT => {
            scratch.reserve(cuda, algorithm.workspace, "cuDNN's working memory")?;
            let workspace = scratch.pointer(cuda);
            let call = Call { workspace, ..call };
            // What was kept on disk is tried before it is trusted.
            let tried = lane.cudnn.run(descriptors, direction, &algorithm, &call);
            if tried.is_ok() {
                return Ok(Some(algorithm));
            }
            made.forget(problem, direction);
        }
        _ => {}
    }
    let [kh, kw] = problem.window.kernel;
    let work = problem.batch * problem.output.len() * kh * kw * problem.input.channels;
    let mut best: Option<(f32, Algorithm)> = None;
    for algorithm in lane.cudnn.algorithms(problem, descriptors, direction) {
        if algorithm.workspace > WORKSPACE_LIMIT {
            continue;
        }
        scratch.reserve(cuda, algorithm.workspace, "cuDNN's working memory")?;
        let workspace = scratch.pointer(cuda);
        let call = Call { workspace, ..call };
        let run = |lane: &Lane| lane.cudnn.run(descriptors, direction, &algorithm, &call);
        // What cuDNN offers is not always what it can do.
        if run(&lane).is_err() {
            continue;
        }
        if work < WORTH_MEASURING {
            best = Some((0.0, algorithm));
            break;
        }
        let limit = best.map_or(f32::INFINITY, |(least, _)| 4.0 * least);
        let time = time(cuda, &run, limit)?;
        if best.is_none_or(|(least, _)| time < least) {
            best = Some((time, algorithm));
        }
    }
    let algorithm = best.map(|(_, a)| a);
    made.set(problem, direction, algorithm);
    Ok(algorithm)
}

/// Milliseconds of a call, without the host's part; one that takes longer than `limit` is not measured further.
fn time(cuda: &Cuda, run: &dyn Fn(&Lane) -> Result<()>, limit: f32) -> Result<f32> {
    let recorder = cuda.recorder()?;
    let once = recorder.record(|| run(&recorder))?.time(cuda)?;
    if once > limit {
        return Ok(once);
    }
    let mut recording = recorder.record(|| (0..CALLS).try_for_each(|_| run(&recorder)))?;
    Ok(recording.time(cuda)? / CALLS as f32)
}
