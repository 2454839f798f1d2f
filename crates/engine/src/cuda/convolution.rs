//! One convolution on the GPU: cuDNN's way in each direction, tried out before the first batch, or our plain loops where
//! cuDNN has none.
//!
//! ```text
//! forward           y = x ∗ w           (NHWC, weights OHWI)
//! input gradient    dx (+)= dy ∗ᵀ w
//! weight gradient   dw = x ⋆ dy
//! ```

use super::cudnn::{Algorithm, Call, Descriptors, Direction, Problem};
use super::launch::{Kernels, Pointer};
use super::{Cuda, memory::Scratch};
use crate::Result;

/// An algorithm that wants more working memory than this is left aside.
const WORKSPACE_LIMIT: usize = 1 << 30;

pub(super) struct Convolution {
    problem: Problem,
    descriptors: Descriptors,
    forward: Option<Algorithm>,
    input_gradient: Option<Algorithm>,
    weight_gradient: Option<Algorithm>,
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
    /// Chooses an algorithm for each direction by running cuDNN's candidates once over `places`, whose values are lost.
    pub(super) fn new(
        cuda: &Cuda,
        problem: Problem,
        places: &Places,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let descriptors = Descriptors::new(&problem)?;
        let mut first_that_runs = |direction, call: Call| -> Result<Option<Algorithm>> {
            for algorithm in cuda.cudnn()?.algorithms(&problem, &descriptors, direction) {
                if algorithm.workspace > WORKSPACE_LIMIT {
                    continue;
                }
                scratch.reserve(cuda, algorithm.workspace, "cuDNN's working memory")?;
                let call = Call {
                    workspace: scratch.pointer(cuda),
                    ..call
                };
                if cuda
                    .cudnn()?
                    .run(&descriptors, direction, &algorithm, &call)
                    .is_ok()
                {
                    return Ok(Some(algorithm));
                }
            }
            Ok(None)
        };
        let call = |first, second, result| Call {
            first,
            second,
            result,
            accumulate: false,
            workspace: 0,
        };
        let p = places;
        let forward = first_that_runs(Direction::Forward, call(p.x, p.w, p.y))?;
        let weight_gradient = first_that_runs(Direction::WeightGradient, call(p.x, p.dy, p.dw))?;
        let input_gradient = match p.dx {
            0 => None,
            dx => first_that_runs(Direction::InputGradient, call(p.w, p.dy, dx))?,
        };
        Ok(Convolution {
            problem,
            descriptors,
            forward,
            input_gradient,
            weight_gradient,
        })
    }

    /// How many of the directions cuDNN computes.
    pub(super) fn by_cudnn(&self) -> usize {
        let ways = [&self.forward, &self.input_gradient, &self.weight_gradient];
        ways.iter().filter(|w| w.is_some()).count()
    }

    /// y = x ∗ w.
    pub(super) fn forward(
        &self,
        cuda: &Cuda,
        k: &Kernels,
        scratch: &Scratch,
        [x, w]: [Pointer; 2],
        y: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.forward else {
            return k.direct_forward([x, w], [p.input, p.output], p.window, p.batch, y);
        };
        self.run(
            cuda,
            scratch,
            Direction::Forward,
            algorithm,
            [x, w, y],
            false,
        )
    }

    /// dx (+)= the gradient of the input.
    pub(super) fn input_gradient(
        &self,
        cuda: &Cuda,
        k: &Kernels,
        scratch: &Scratch,
        [w, dy]: [Pointer; 2],
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.input_gradient else {
            let shapes = [p.input, p.output];
            return k.direct_input_gradient([w, dy], shapes, p.window, p.batch, accumulate, dx);
        };
        self.run(
            cuda,
            scratch,
            Direction::InputGradient,
            algorithm,
            [w, dy, dx],
            accumulate,
        )
    }

    /// dw = the gradient of the weights.
    pub(super) fn weight_gradient(
        &self,
        cuda: &Cuda,
        k: &Kernels,
        scratch: &Scratch,
        [x, dy]: [Pointer; 2],
        dw: Pointer,
    ) -> Result<()> {
        let p = &self.problem;
        let Some(algorithm) = &self.weight_gradient else {
            return k.direct_weight_gradient([x, dy], [p.input, p.output], p.window, p.batch, dw);
        };
        self.run(
            cuda,
            scratch,
            Direction::WeightGradient,
            algorithm,
            [x, dy, dw],
            false,
        )
    }

    fn run(
        &self,
        cuda: &Cuda,
        scratch: &Scratch,
        direction: Direction,
        algorithm: &Algorithm,
        [first, second, result]: [Pointer; 3],
        accumulate: bool,
    ) -> Result<()> {
        let call = Call {
            first,
            second,
            result,
            accumulate,
            workspace: scratch.pointer(cuda),
        };
        cuda.cudnn()?
            .run(&self.descriptors, direction, algorithm, &call)
    }
}
