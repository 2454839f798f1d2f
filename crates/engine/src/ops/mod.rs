//! Layers of one input and without weights: a file or a folder for each, with all that is to be
//! known of it. Its rule in plain loops (the oracle of the tests), what it does on a CPU and on a
//! GPU, what its way back reads, and how a graph gets one.
//!
//! To add one: its module, a variant of [`Op`], an arm in [`layer!`], and its kernels in
//! [`LayerKernels`]. Convolutions, linear layers, batch norms and sums of two inputs are in `cpu`
//! and `cuda`.

mod activation;
mod channels;
mod dropout;
mod global_avg_pool;
mod l2_normalise;
mod lab;
mod max_pool;
mod relu;
mod upsample;

pub(crate) use activation::ActivationLayer;
pub(crate) use channels::Channels;
pub(crate) use dropout::Dropout;
pub(crate) use global_avg_pool::GlobalAvgPool;
pub(crate) use l2_normalise::L2Normalise;
pub(crate) use lab::Lab;
pub(crate) use max_pool::MaxPool;
pub(crate) use relu::Relu;
pub(crate) use upsample::Upsample;

use pulp::Arch;

use crate::cuda::{Cuda, Kernels, Pointer};
use crate::{ConvSpec, DropoutKey, Norm, Result, Shape, Window};

/// A function of each value alone, whose slope is told by its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// x above zero, and this share of it, which is above zero too, below.
    LeakyRelu(f32),
    /// The hyperbolic tangent.
    Tanh,
}

/// What a layer computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// The pictures.
    Input,
    /// Convolution (+ bias) (+ batch norm) (+ residual, the second input) (+ ReLU), in this order.
    /// Parameters: weight, bias if any, then batch norm's four.
    Conv {
        /// The convolution.
        spec: ConvSpec,
        /// Batch norm after it.
        norm: Option<Norm>,
        /// ReLU at the end.
        relu: bool,
    },
    /// Batch norm. Parameters: weight, bias, running mean, running variance.
    BatchNorm(Norm),
    /// max(x, 0).
    Relu,
    /// A function of each value alone.
    Activation(Activation),
    /// The sum of two inputs.
    Add,
    /// The largest value in each window; padding never wins.
    MaxPool(Window),
    /// The mean over all places.
    GlobalAvgPool,
    /// Each place becomes 2×2 places (nearest neighbour).
    Upsample,
    /// A matrix product over the flattened input. Parameters: weight, bias if any.
    Linear {
        /// Output values.
        out: usize,
        /// Whether a bias is added.
        bias: bool,
    },
    /// Zeroes each value with this probability in training and scales the rest by 1/(1−p).
    Dropout(f32),
    /// Divides each picture's vector by its Euclidean norm.
    L2Normalise,
    /// Channels moved: channel c is the input's channel c + `first` where there is one, else zero.
    /// Slices, and pads.
    Channels {
        /// The input's channel that is the first; before it there are zeros where it is negative.
        first: isize,
    },
    /// From normalised sRGB to CIE Lab, each about as large as one. Parameters: mean and std by
    /// which pictures were normalised, as statistics.
    Lab,
}

/// What every layer of this module has.
pub(crate) trait Layer {
    /// What its way back reads beside the gradient of its output: its input, its own output.
    fn reads(&self) -> [bool; 2] {
        [false, false]
    }

    /// Its output, by plain loops.
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64>;

    /// The gradient of its input from its input, output and the output's gradient, by plain loops.
    fn naive_backward(&self, at: &NaiveAt, of: [&[f64]; 3]) -> Vec<f64>;

    /// y = its output.
    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]);

    /// dx = the gradient of its input, or += where it is added to what is there; of input and
    /// output those are there that it reads.
    fn cpu_backward(&self, at: &CpuAt, of: [&[f32]; 3], add: bool, dx: &mut [f32]);

    /// As on a CPU.
    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()>;

    /// As on a CPU.
    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()>;
}

/// A layer's place, for plain loops.
pub(crate) struct NaiveAt<'a> {
    pub(crate) batch: usize,
    /// Shapes of one image.
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    /// Nothing in inference.
    pub(crate) draw: Option<(DropoutKey, u64)>,
    /// Statistics that it has as parameters.
    pub(crate) statistics: Vec<&'a [f64]>,
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

/// The kernel files of layers that have one, by their stems.
pub(crate) const SOURCES: &[(&str, &str)] = &[upsample::SOURCE];

/// Their kernels, loaded.
pub(crate) struct LayerKernels {
    upsample: upsample::UpsampleKernels,
}

impl LayerKernels {
    pub(crate) fn load(cuda: &Cuda) -> Result<Self> {
        Ok(LayerKernels { upsample: upsample::UpsampleKernels::load(cuda)? })
    }
}

/// What a layer of this module does, or what is done about any other.
macro_rules! layer {
    ($op:expr, $layer:ident => $does:expr, else $other:expr) => {
        match $op {
            crate::Op::Relu => layer!(@ $layer = crate::ops::Relu, $does),
            crate::Op::Activation(f) => layer!(@ $layer = crate::ops::ActivationLayer(f), $does),
            crate::Op::MaxPool(window) => layer!(@ $layer = crate::ops::MaxPool(window), $does),
            crate::Op::GlobalAvgPool => layer!(@ $layer = crate::ops::GlobalAvgPool, $does),
            crate::Op::Upsample => layer!(@ $layer = crate::ops::Upsample, $does),
            crate::Op::Dropout(p) => layer!(@ $layer = crate::ops::Dropout(p), $does),
            crate::Op::L2Normalise => layer!(@ $layer = crate::ops::L2Normalise, $does),
            crate::Op::Channels { first } => layer!(@ $layer = crate::ops::Channels(first), $does),
            crate::Op::Lab => layer!(@ $layer = crate::ops::Lab, $does),
            crate::Op::Input
            | crate::Op::Conv { .. }
            | crate::Op::Linear { .. }
            | crate::Op::BatchNorm(_)
            | crate::Op::Add => $other,
        }
    };
    (@ $layer:ident = $made:expr, $does:expr) => {{
        let $layer = $made;
        $does
    }};
}

pub(crate) use layer;
