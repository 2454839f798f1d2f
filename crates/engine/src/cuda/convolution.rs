//! One convolution on the GPU: the fastest way in each direction, chosen before the first batch, or
//! plain loops where there is none.
//!
//! ```text
//! forward           y = x ∗ w           (NHWC, weights OHWI)
//! input gradient    dx (+)= dy ∗ᵀ w
//! weight gradient   dw = x ⋆ dy
//! ```

use super::Cuda;
use super::autotune::{Task, Tuned};
use super::bound_stream::BoundStream;
use super::cudnn::{Call, Direction, Problem};
use super::launch::{Pointer, Sliding};
use super::memory::Workspace;
use crate::{Result, Shape, Window};

pub(super) struct Convolution {
    problem: Problem,
    /// Bytes of what a 1×1 window with a stride reads. Since cuDNN's ways with strides are slow,
    /// that is put together first, and a gradient of it is shared out last. Nothing for other
    /// windows.
    gathered: Option<usize>,
    forward: Option<Tuned>,
    input_gradient: Option<Tuned>,
    weight_gradient: Option<Tuned>,
    /// Whether the input's gradient is added to what is there.
    accumulate: bool,
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
    /// Chooses a way for each direction by running the candidates over `places`, whose values are
    /// lost. The second working memory is for what runs beside the rest.
    pub(super) fn new(
        cuda: &Cuda,
        problem: Problem,
        places: &Places,
        [scratch, beside]: &mut [Workspace; 2],
    ) -> Result<Self> {
        let p = places;
        let dense = gathered(&problem);
        let gathered = dense.map(|dense| {
            let values = dense.batch * dense.input.len();
            (values * dense.precision.bytes()).next_multiple_of(256)
        });
        let task = |direction| Task {
            problem: dense.unwrap_or(problem),
            direction,
            accumulate: direction == Direction::InputGradient && p.accumulate && dense.is_none(),
        };
        let call = |first, second, result| Call { first, second, result, workspace: 0 };
        let (x, w, y) = (p.x, p.w, p.y);
        let forward = Tuned::choose(cuda, task(Direction::Forward), call(x, w, y), scratch)?;
        let weights = task(Direction::WeightGradient);
        let weight_gradient = Tuned::choose(cuda, weights, call(x, p.dy, p.dw), beside)?;
        let input = task(Direction::InputGradient);
        let input_gradient = match p.dx {
            0 => None,
            dx => Tuned::choose(cuda, input, call(w, p.dy, dx), scratch)?,
        };
        let room =
            |way: &Option<Tuned>| gathered.unwrap_or(0) + way.as_ref().map_or(0, Tuned::workspace);
        let forwards = room(&forward);
        // A pass forwards may be on either stream.
        for (scratch, other) in [(scratch, &input_gradient), (beside, &weight_gradient)] {
            let bytes = forwards.max(room(other));
            scratch.reserve(cuda, bytes, "a convolution's working memory")?;
        }
        Ok(Convolution {
            problem,
            gathered,
            forward,
            input_gradient,
            weight_gradient,
            accumulate: p.accumulate,
        })
    }

    fn sliding(&self) -> Sliding {
        let Problem { input, output, window, batch, .. } = self.problem;
        Sliding { input, output, window, batch }
    }

    /// y = x ∗ w.
    pub(super) fn forward(
        &self,
        stream: &BoundStream,
        workspace: Pointer,
        [x, w]: [Pointer; 2],
        y: Pointer,
    ) -> Result<()> {
        let Some(way) = &self.forward else {
            return stream.kernels.direct_forward([x, w], &self.sliding(), y);
        };
        let [x, workspace] = self.put_together(stream, x, workspace)?;
        let call = Call { first: x, second: w, result: y, workspace };
        way.run(stream, &call)
    }

    /// Where what the window reads lies side by side, and working memory behind it.
    fn put_together(
        &self,
        stream: &BoundStream,
        x: Pointer,
        workspace: Pointer,
    ) -> Result<[Pointer; 2]> {
        let Some(bytes) = self.gathered else {
            return Ok([x, workspace]);
        };
        stream.kernels.gather(x, &self.sliding(), workspace)?;
        Ok([workspace, workspace + bytes as u64])
    }

    /// dx (+)= the gradient of the input.
    pub(super) fn input_gradient(
        &self,
        stream: &BoundStream,
        workspace: Pointer,
        [w, dy]: [Pointer; 2],
        dx: Pointer,
    ) -> Result<()> {
        let (k, of, accumulate) = (&stream.kernels, &self.sliding(), self.accumulate);
        let Some(way) = &self.input_gradient else {
            return k.direct_input_gradient([w, dy], of, accumulate, dx);
        };
        let call = |result, workspace| Call { first: w, second: dy, result, workspace };
        let Some(bytes) = self.gathered else {
            return way.run(stream, &call(dx, workspace));
        };
        way.run(stream, &call(workspace, workspace + bytes as u64))?;
        k.scatter(workspace, of, accumulate, dx)
    }

    /// dw = the gradient of the weights.
    pub(super) fn weight_gradient(
        &self,
        stream: &BoundStream,
        workspace: Pointer,
        [x, dy]: [Pointer; 2],
        dw: Pointer,
    ) -> Result<()> {
        let Some(way) = &self.weight_gradient else {
            return stream.kernels.direct_weight_gradient([x, dy], &self.sliding(), dw);
        };
        let [x, workspace] = self.put_together(stream, x, workspace)?;
        let call = Call { first: x, second: dy, result: dw, workspace };
        way.run(stream, &call)
    }
}
