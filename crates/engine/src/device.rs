//! What a device offers: memory, networks, and the similarity computations that discovery needs.
//!
//! Work is done in the order it is asked for. A device that works asynchronously waits where values are read.

use crate::graph::{Graph, NodeId};
use crate::optimiser::Sgd;
use crate::similarity::{Positives, Scan, ScanResult};
use crate::steps::{BatchMaker, Steps};
use crate::{Error, Result};

/// How a network is to be built.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Pictures in a training batch, and at most in an inference batch.
    pub batch: usize,
    /// Layers whose outputs are kept, beside the result's.
    pub keep: Vec<NodeId>,
    /// Whether the gradient of the pictures is computed too.
    pub input_gradient: bool,
}

impl NetworkOptions {
    /// A batch size, nothing kept.
    pub fn new(batch: usize) -> Self {
        NetworkOptions {
            batch,
            keep: vec![],
            input_gradient: false,
        }
    }
}

/// Which of a network's tensors, one per parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensors {
    /// Weights and statistics.
    Values,
    /// The optimiser's momentum; statistics have none (an empty tensor).
    Momentum,
    /// Gradients of the last backward pass; statistics have none (an empty tensor).
    Gradients,
}

/// A machine that runs networks.
pub trait Device: Clone + Send + Sync + 'static {
    /// A vector of f32 on the device.
    type Buffer: Send + Sync;
    /// A graph with its memory and parameters.
    type Network: Network<Buffer = Self::Buffer>;
    /// Training steps that it takes by itself.
    type Steps: Steps<Network = Self::Network, Buffer = Self::Buffer>;

    /// Whether it takes training steps by itself; see [`Device::steps`].
    const LEADS_STEPS: bool;

    /// What it is, in words.
    fn describe(&self) -> String;

    /// Runs work where the device is reached with the least ado: on the CPU, inside its pool of threads. A training
    /// loop belongs in here; single calls find their way by themselves.
    fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Copies values to the device.
    fn upload(&self, values: &[f32]) -> Result<Self::Buffer>;

    /// Moves values to the device: the same, and where the device's memory is the host's nothing is copied.
    fn hand_over(&self, values: Vec<f32>) -> Result<Self::Buffer> {
        self.upload(&values)
    }

    /// Copies a buffer back.
    fn download(&self, buffer: &Self::Buffer) -> Result<Vec<f32>>;

    /// Plans a graph and allocates all it will need.
    fn network(&self, graph: &Graph, options: &NetworkOptions) -> Result<Self::Network>;

    /// Prepares steps that the device takes by itself with a network; nothing where the host must lead every step.
    fn steps(&self, network: &Self::Network, maker: &BatchMaker) -> Result<Option<Self::Steps>>;

    /// Softmax of each query over all keys, and the loss −log Σ p over its positives.
    ///
    /// `queries` is B×dim, `keys` N×dim. Writes one loss per query to `losses`, and to `gradient` (B×dim, `=`) the
    /// gradient of their mean with respect to the queries, keys held constant. The B×N matrix never exists.
    fn softmax_loss(
        &self,
        queries: &Self::Buffer,
        keys: &Self::Buffer,
        dim: usize,
        temperature: f32,
        positives: &Positives,
        losses: &mut [f32],
        gradient: &mut Self::Buffer,
    ) -> Result<()>;

    /// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query).
    fn blend_rows(
        &self,
        keys: &mut Self::Buffer,
        dim: usize,
        indices: &[u32],
        queries: &Self::Buffer,
        rate: f32,
    ) -> Result<()>;

    /// Compares every query with every key: the entropy of its softmax over all keys, its top-k keys, or both.
    /// `progress` is told how many queries are done.
    fn scan(
        &self,
        queries: &Self::Buffer,
        keys: &Self::Buffer,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult>;
}

/// A planned graph on a device, with its parameters, their gradients and momentum.
pub trait Network: Send {
    /// The device's memory.
    type Buffer;

    /// The graph it runs.
    fn graph(&self) -> &Graph;

    /// Pictures in a training batch.
    fn batch(&self) -> usize;

    /// Bytes of device memory it holds.
    fn memory_bytes(&self) -> usize;

    /// Draws the initial parameters and clears the momentum.
    fn initialise(&mut self, seed: u64) {
        let parameters = self.graph().parameters().to_vec();
        for (index, p) in parameters.iter().enumerate() {
            self.write(Tensors::Values, index, &p.initial_values(seed, index))
                .expect("initial values fit their parameter");
            if p.role == crate::Role::Weight {
                self.write(Tensors::Momentum, index, &vec![0.0; p.len()])
                    .expect("momentum fits its parameter");
            }
        }
    }

    /// Runs a full batch of NHWC pixels forwards in training mode: batch statistics, running ones updated, dropout
    /// drawn for `step`.
    fn train_forward(&mut self, pixels: &[f32], step: u64) -> Result<()>;

    /// The same for a batch of rows of a matrix on the device; a row is a picture.
    fn train_forward_rows(&mut self, rows: &Self::Buffer, indices: &[u32], step: u64)
    -> Result<()>;

    /// The result of the last pass, and where the loss writes its gradient.
    fn output_and_gradient(&mut self) -> (&Self::Buffer, &mut Self::Buffer);

    /// Computes all gradients from the output's.
    fn backward(&mut self) -> Result<()>;

    /// Moves the weights along the gradients.
    fn update(&mut self, sgd: &Sgd) -> Result<()>;

    /// Runs up to a batch of pictures in inference mode: running statistics, no dropout. `output` (count × features)
    /// takes the result.
    fn infer(&mut self, pixels: &[f32], output: &mut [f32]) -> Result<()>;

    /// The output of a layer named in [`NetworkOptions::keep`] after the last pass over `count` pictures.
    fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>>;

    /// The gradient of the pictures, when asked for.
    fn input_gradient(&self) -> Result<Vec<f32>>;

    /// One tensor, in PyTorch's layout.
    fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>>;

    /// Sets one tensor, in PyTorch's layout.
    fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()>;

    /// That `indices` are a batch of rows, of so many values in all.
    fn check_rows(&self, values: usize, indices: &[u32]) -> Result<()> {
        Error::check_length("rows of a training batch", self.batch(), indices.len())?;
        let one = self.graph().nodes()[0].shape.len();
        let rows = values / one;
        Error::check_length("values of all rows", rows * one, values)?;
        match indices.iter().find(|i| **i as usize >= rows) {
            Some(i) => Err(Error::Plan(format!("row {i} of {rows} rows"))),
            None => Ok(()),
        }
    }

    /// How many pictures `pixels` holds: whole ones, at least one, and no more than a batch.
    fn count_pictures(&self, pixels: &[f32]) -> Result<usize> {
        let one = self.graph().nodes()[0].shape.len();
        let count = pixels.len() / one;
        Error::check_length("pixels of a batch", count.max(1) * one, pixels.len())?;
        if count > self.batch() {
            return Err(Error::Length {
                what: format!("pictures to infer (1 to {})", self.batch()),
                expected: self.batch(),
                got: count,
            });
        }
        Ok(count)
    }
}
