//! Every kind of layer: a file for each, or a folder where it has kernels of its own, with all that
//! is to be known of it. Its rule in plain loops (the reference that tests compare with), what it
//! does on a CPU and on a GPU, what its backward pass reads, how a graph gets one, and the cases
//! that tests run.
//!
//! To add one: its module, and its lines in [`layers!`], which name its kernels too.
//!
//! A layer of one input and without weights is a [`Unary`]. Convolutions, linear layers, batch
//! norms and sums are a [`Layer`] each, whose work on a device is in `cpu::network` and
//! `cuda::network`: there a convolution, the norm behind it, a residual and ReLU are one pass over
//! memory, and share scratch memory, a second stream and sums over processes with each other.

mod activation;
mod add;
mod batch_norm;
mod cases;
mod channels;
mod conv;
mod dropout;
mod global_avg_pool;
mod input;
mod l2_normalise;
mod lab;
mod linear;
mod max_pool;
mod relu;
mod upsample;

use cudarc::driver::{CudaFunction, LaunchConfig};
use pulp::Arch;

pub use activation::Activation;
pub use cases::Case;
pub use dropout::{DropoutKey, dropout_mask};

use crate::cpu::CpuState;
use crate::cuda::{Arguments, CudaWalk, Kernels, Pointer, kernels};
use crate::graph::{ConvSpec, Graph, Node, Norm, Shape, Window};
use crate::naive::window::Sliding;
use crate::{Result, walk};

/// The table of layers: what [`Op`] they are, which type of which module knows them, and which
/// kernels of `NAME/NAME.cu` they have.
macro_rules! layers {
    ($(
        $(#[$about:meta])*
        $op:ident
        $(($value:ident: $of:ty))?
        $({ $($(#[$what:meta])* $field:ident: $kind:ty,)+ })?
        => $module:ident::$layer:ident $(, kernels $file:ident [$($kernel:ident),+])?;
    )+) => {
        /// What a layer computes.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Op {
            $($(#[$about])* $op $(($of))? $({ $($(#[$what])* $field: $kind,)+ })?,)+
        }

        impl Op {
            /// Asks the layer.
            pub(crate) fn layer<R>(self, ask: impl FnOnce(&dyn Layer) -> R) -> R {
                match self {
                    $(Op::$op $(($value))? $({ $($field),+ })? => {
                        ask(&$module::$layer $(($value))? $({ $($field),+ })?)
                    })+
                }
            }
        }

        /// The kernel files of layers that have one, by their stems.
        pub(crate) const SOURCES: &[(&str, &str)] = &[$($((
            stringify!($file),
            include_str!(concat!(stringify!($file), "/", stringify!($file), ".cu")),
        ),)?)+];

        kernels! {
            /// Their kernels, loaded.
            LayerKernels { $($($file: $($kernel),+;)?)+ }
        }

        /// Graphs of each kind of layer, alone, over which tests compare a device's results with
        /// plain loops', and the gradients of those with finite differences.
        pub fn cases() -> Vec<Case> {
            [$($module::cases()),+].into_iter().flatten().collect()
        }
    };
}

layers! {
    /// The pictures.
    Input => input::Input;
    /// Convolution (+ bias) (+ batch norm) (+ residual, the second input) (+ ReLU), in this order.
    /// Parameters: weight, bias if any, then batch norm's four.
    Conv {
        /// The convolution.
        spec: ConvSpec,
        /// Batch norm after it.
        norm: Option<Norm>,
        /// ReLU at the end.
        relu: bool,
    } => conv::Conv;
    /// Batch norm. Parameters: weight, bias, running mean, running variance.
    BatchNorm(norm: Norm) => batch_norm::BatchNorm;
    /// max(x, 0).
    Relu => relu::Relu;
    /// A function of each value alone.
    Activation(function: Activation) => activation::ActivationLayer,
        kernels activation [activation, activation_backward];
    /// The sum of two inputs.
    Add => add::Add;
    /// The largest value in each window; padding never wins.
    MaxPool(window: Window) => max_pool::MaxPool,
        kernels max_pool [max_pool_8, max_pool_1, max_pool_backward_8, max_pool_backward_1];
    /// The mean over all places.
    GlobalAvgPool => global_avg_pool::GlobalAvgPool,
        kernels global_avg_pool [global_average, global_average_backward];
    /// Each place becomes 2×2 places (nearest neighbour).
    Upsample => upsample::Upsample, kernels upsample [upsample, upsample_backward];
    /// A matrix product over the flattened input. Parameters: weight, bias if any.
    Linear {
        /// Output values.
        out: usize,
        /// Whether a bias is added.
        bias: bool,
    } => linear::Linear;
    /// Zeroes each value with this probability in training and scales the rest by 1/(1−p).
    Dropout(p: f32) => dropout::Dropout, kernels dropout [dropout];
    /// Divides each picture's vector by its Euclidean norm.
    L2Normalise => l2_normalise::L2Normalise,
        kernels l2_normalise [l2_normalise, l2_normalise_backward];
    /// Channels moved: channel c is the input's channel c + `first` where there is one, else zero.
    /// Slices, and pads.
    Channels {
        /// The input's channel that is the first; before it there are zeros where it is negative.
        first: isize,
    } => channels::Channels, kernels channels [channels];
    /// From normalised sRGB to CIE Lab, each about as large as one. Parameters: mean and std by
    /// which pictures were normalised, as statistics.
    Lab => lab::Lab, kernels lab [lab, lab_backward];
}

/// What a layer's backward pass reads beside the gradient of its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedForBackward {
    /// The value of its first input.
    pub(crate) input: bool,
    /// Its own output.
    pub(crate) output: bool,
    /// What a convolution gives before its norm, which is kept for it.
    pub(crate) before_norm: bool,
}

impl SavedForBackward {
    const NOTHING: Self = SavedForBackward { input: false, output: false, before_norm: false };
    const INPUT: Self = SavedForBackward { input: true, ..Self::NOTHING };
    const OUTPUT: Self = SavedForBackward { output: true, ..Self::NOTHING };
    const BOTH: Self = SavedForBackward { input: true, ..Self::OUTPUT };
}

/// What every layer has.
pub(crate) trait Layer {
    fn saved(&self) -> SavedForBackward;

    /// Its batch norm, where it is or has one.
    fn norm(&self) -> Option<Norm> {
        None
    }

    /// Whether its second parameter is a bias.
    fn has_bias(&self) -> bool {
        false
    }

    /// As a convolution: what it reads of such an input, and by which window.
    fn convolution(&self, _input: Shape) -> Option<(Shape, Window)> {
        None
    }

    /// Whether a GPU gives the graph's result, and takes its gradient, in f32 here.
    fn is_wide(&self) -> bool {
        false
    }

    /// Its output, by plain loops.
    fn naive(&self, at: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64>;

    /// The gradient of each input that it may have, from its first input, its output and the
    /// output's gradient, by plain loops; those of its parameters are stored.
    fn naive_backward(&self, at: &mut NaiveAt, of: [&[f64]; 3]) -> Vec<Vec<f64>>;

    /// Its part of a pass on a CPU.
    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()>;

    /// Its part of a pass on a GPU.
    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()>;
}

/// A layer of one input and without weights.
pub(crate) trait Unary {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::NOTHING
    }

    /// See [`Layer::is_wide`].
    fn is_wide(&self) -> bool {
        false
    }

    /// Its output, by plain loops.
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64>;

    /// The gradient of its input from its input, output and the output's gradient, by plain loops.
    fn naive_backward(&self, at: &NaiveAt, of: [&[f64]; 3]) -> Vec<f64>;

    /// y = its output.
    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]);

    /// dx = the gradient of its input, or += where it is added to what is there; of input and
    /// output those are there that are saved for it.
    fn cpu_backward(&self, at: &CpuAt, of: [&[f32]; 3], add: bool, dx: &mut [f32]);

    /// As on a CPU.
    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()>;

    /// As on a CPU.
    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()>;
}

impl<T: Unary> Layer for T {
    fn saved(&self) -> SavedForBackward {
        Unary::saved(self)
    }

    fn is_wide(&self) -> bool {
        Unary::is_wide(self)
    }

    fn naive(&self, at: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64> {
        Unary::naive(self, at, inputs[0])
    }

    fn naive_backward(&self, at: &mut NaiveAt, of: [&[f64]; 3]) -> Vec<Vec<f64>> {
        vec![Unary::naive_backward(self, at, of)]
    }

    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()> {
        network.unary_layer(layer, self);
        Ok(())
    }

    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()> {
        walk.unary_layer(layer, self)
    }
}

/// A layer's place, for plain loops.
pub(crate) struct NaiveAt<'a> {
    pub(crate) batch: usize,
    /// Shapes of one image.
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    /// Nothing in inference.
    pub(crate) draw: Option<(DropoutKey, u64)>,
    /// Its own parameters and their gradients.
    pub(crate) parameters: &'a mut [Vec<f64>],
    pub(crate) gradients: &'a mut [Vec<f64>],
    /// What went into its batch norm.
    pub(crate) before_norm: &'a mut Vec<f64>,
}

impl NaiveAt<'_> {
    fn sliding(&self, window: Window) -> Sliding {
        Sliding { batch: self.batch, input: self.input, output: self.output, window }
    }
}

/// A layer's place on a CPU.
pub(crate) struct CpuAt {
    pub(crate) arch: Arch,
    /// Shapes of one image.
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    /// Draws of this step on this rank; nothing in inference.
    pub(crate) draw: Option<(DropoutKey, u64, usize)>,
    /// Statistics of three channels that it has as parameters.
    pub(crate) statistics: [[f32; 3]; 2],
}

/// A layer's place on a GPU.
pub(crate) struct CudaAt<'a> {
    pub(crate) kernels: &'a Kernels,
    pub(crate) batch: usize,
    /// Shapes of one image.
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    /// Values of the output of the whole batch.
    pub(crate) len: usize,
    /// Draws of this step on this rank; nothing in inference.
    pub(crate) draw: Option<(DropoutKey, Pointer, usize)>,
    /// Where the graph's result lies in f32, or its gradient, if this layer gives it; else 0.
    pub(crate) wide: Pointer,
    /// Statistics that it has as parameters.
    pub(crate) statistics: [Pointer; 2],
}

impl CudaAt<'_> {
    /// Starts a kernel of a layer's own.
    fn launch(
        &self,
        kernel: impl FnOnce(&LayerKernels) -> &CudaFunction,
        shape: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        self.kernels.launch(kernel(&self.kernels.layers), shape, arguments)
    }
}

impl Op {
    pub(crate) fn saved(self) -> SavedForBackward {
        self.layer(|layer| layer.saved())
    }

    /// See [`Layer::is_wide`].
    pub(crate) fn is_wide(self) -> bool {
        self.layer(|layer| layer.is_wide())
    }

    /// Its batch norm, where it is or has one.
    pub(crate) fn norm(self) -> Option<Norm> {
        self.layer(|layer| layer.norm())
    }
}

impl Node {
    /// Where the parameters of its norm begin: γ, β, running mean, running variance.
    pub(crate) fn norm_parameters(&self) -> usize {
        self.parameters[self.parameters.len() - 4]
    }

    /// The parameter that is its bias, if it has one.
    pub(crate) fn bias_parameter(&self) -> Option<usize> {
        self.op.layer(|layer| layer.has_bias()).then(|| self.parameters[1])
    }

    /// As a convolution: what it reads, and by which window. A linear layer is one of 1×1 over the
    /// flattened input.
    pub(crate) fn convolution(&self, graph: &Graph) -> Option<(Shape, Window)> {
        let input = graph.shape(*self.inputs.first()?);
        self.op.layer(|layer| layer.convolution(input))
    }
}
