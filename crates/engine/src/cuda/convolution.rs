//! One convolution on the GPU: cuDNN's way in each direction, chosen before the first batch, or our plain loops where
//! cuDNN has none.
//!
//! ```text
//! forward           y = x ∗ w           (NHWC, weights OHWI)
//! input gradient    dx (+)= dy ∗ᵀ w
//! weight gradient   dw = x ⋆ dy
//! ```

use super::Cuda;
use super::cudnn::{Call, Direction, Problem};
use super::lane::Lane;
use super::launch::Pointer;
use super::memory::Scratch;
use super::ways::{Task, Way};
use crate::{Result, Shape, Window};

pub(super) struct Convolution {
    problem: Problem,
    /// Bytes that a 1×1 window with a stride puts together before anything else, since cuDNN's ways with strides are
    /// slow; else nothing.
    gathered: Option<usize>,
    forward: Option<Way>,
    input_gradient: Option<Way>,
    weight_gradient: Option<Way>,
    /// Whether the input's gradient is added to what is there.
    accumulate: bool,
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
    /// Whether the input's gradient is added to what is there.
    pub(super) accumulate: bool,
}

/// The same convolution over what it reads put together, if that can be done.
fn gathered(p: &Problem) -> Option<Problem> {
    let one = p.window.kernel == [1, 1] && p.window.padding == [0, 0];
    let useful = one && p.window.stride != [1, 1] && p.input.channels.is_multiple_of(8);
    useful.then(|| Problem {
        input: Shape::new(p.output.height, p.output.width, p.input.channels),
        window: Window::square(1, 1, 0),
        ..*p
    })
}

impl Convolution {
    /// Chooses a way for each direction by running cuDNN's candidates over `places`, whose values are lost. The second
    /// working memory is for weight gradients, which run beside the rest.
    pub(super) fn new(
        cuda: &Cuda,
        problem: Problem,
        places: &Places,
        [scratch, beside]: &mut [Scratch; 2],
    ) -> Result<Self> {
        let task = |problem, direction| Task {
            problem,
            direction,
            accumulate: direction == Direction::InputGradient && places.accumulate,
        };
        let call = |first, second, result| Call {
            first,
            second,
            result,
            workspace: 0,
        };
        let p = places;
        let dense = gathered(&problem);
        let forward = task(dense.unwrap_or(problem), Direction::Forward);
        let forward = Way::choose(cuda, forward, call(p.x, p.w, p.y), scratch)?;
        let gathered = dense.filter(|_| forward.is_some()).map(|dense| {
            let values = dense.batch * dense.input.len();
            (values * dense.precision.bytes()).next_multiple_of(256)
        });
        if let (Some(bytes), Some(way)) = (gathered, &forward) {
            let bytes = bytes + way.workspace();
            scratch.reserve(cuda, bytes, "a convolution's working memory")?;
        }
        let weights = task(problem, Direction::WeightGradient);
        let weight_gradient = Way::choose(cuda, weights, call(p.x, p.dy, p.dw), beside)?;
        let input = task(problem, Direction::InputGradient);
        let input_gradient = match p.dx {
            0 => None,
            dx => Way::choose(cuda, input, call(p.w, p.dy, dx), scratch)?,
        };
        Ok(Convolution {
            problem,
            gathered,
            forward,
            input_gradient,
            weight_gradient,
            accumulate: p.accumulate,
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
        let (p, k) = (&self.problem, &lane.kernels);
        let shapes = [p.input, p.output];
        let Some(way) = &self.forward else {
            return k.direct_forward([x, w], shapes, p.window, p.batch, y);
        };
        let call = Call {
            first: x,
            second: w,
            result: y,
            workspace,
        };
        let Some(bytes) = self.gathered else {
            return way.run(lane, &call);
        };
        k.gather(x, shapes, p.window, p.batch, workspace)?;
        let call = Call {
            first: workspace,
            workspace: workspace + bytes as u64,
            ..call
        };
        way.run(lane, &call)
    }

    /// dx (+)= the gradient of the input.
    pub(super) fn input_gradient(
        &self,
        lane: &Lane,
        workspace: Pointer,
        [w, dy]: [Pointer; 2],
        dx: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(way) = &self.input_gradient else {
            let (k, shapes) = (&lane.kernels, [p.input, p.output]);
            return k.direct_input_gradient(
                [w, dy],
                shapes,
                p.window,
                p.batch,
                self.accumulate,
                dx,
            );
        };
        let call = Call {
            first: w,
            second: dy,
            result: dx,
            workspace,
        };
        way.run(lane, &call)
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
        let Some(way) = &self.weight_gradient else {
            let (k, shapes) = (&lane.kernels, [p.input, p.output]);
            return k.direct_weight_gradient([x, dy], shapes, p.window, p.batch, dw);
        };
        let call = Call {
            first: x,
            second: dy,
            result: dw,
            workspace,
        };
        way.run(lane, &call)
    }
}
