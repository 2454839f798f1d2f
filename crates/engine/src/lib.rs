//! How does a graph of layers run, forwards and backwards, on this device?
//!
//! A [`Graph`] is built once, its shapes inferred as it grows. A plan then fixes, before the
//! first batch, where every activation and gradient lives, which memory is reused, and in which
//! order gradients are written or added. A [`Device`] turns both into a [`Network`] that runs
//! without allocating, and a [`Stream`] takes the calls of a training step: done at once on a CPU,
//! recorded as a CUDA graph on a GPU.
//!
//! Everything is NHWC and, but for the activations of a GPU that is asked for bf16, f32. The engine
//! knows nothing of pictures, files or the method trained with it.
//!
//! ```
//! use anchorhood_engine::{ConvSpec, Device, Graph, Input, NetworkOptions};
//!
//! let mut g = Graph::new();
//! let x = g.input(8, 8, 3);
//! let x = g.conv_norm("conv1", "bn1", x, ConvSpec::square(16, 3, 1, 1), true, None)?;
//! let x = g.global_avg_pool("pool", x)?;
//! let x = g.linear("fc", x, 4, true)?;
//! g.output(x);
//!
//! let device = Device::cpu(2);
//! let (mut net, mut stream) = (device.network(&g, &NetworkOptions::new(4))?, device.stream()?);
//! net.initialise(0)?;
//! stream.set_step(0, 0.03)?; // the step's number and the learning rate
//! let pixels = device.upload(&vec![0.5; 4 * 8 * 8 * 3])?;
//! net.forward(&mut stream, 0, Input::rows(&pixels))?;
//! device.write(&[1.0; 4 * 4], net.output_and_gradient().1)?;
//! net.backward(&mut stream, 0)?;
//! net.update(&mut stream)?;
//! # Ok::<(), anchorhood_engine::Error>(())
//! ```

mod backend;
mod batch;
mod buffer;
mod communicator;
mod cpu;
mod cuda;
mod device;
mod error;
mod graph;
mod growing_values;
pub mod naive;
mod network;
mod ops;
mod optimiser;
mod parameters;
mod plan;
mod precision;
mod profile;
mod shards;
mod similarity;
mod stream;
#[cfg(test)]
mod testing;
pub mod vectors;
mod walk;

pub use batch::{Batch, DeviceLoader, Epoch, KernelSource, LoadBatches, Scalar, TakeBatch};
pub use buffer::{Buffer, Shard};
pub use communicator::Communicator;
pub use cpu::{Cpu, SimdLevel};
#[doc(hidden)] // what crates/fuzzing attacks
pub use cuda::reread_autotune_cache;
pub use cuda::{Cuda, Found, Library, find_nccl};
pub use device::Device;
pub use error::{Error, Fits, Result};
pub use graph::{ConvSpec, Graph, Node, NodeId, Norm, Shape, Window};
pub use growing_values::{GrowingValues, SharedValues};
pub use network::{Input, Network, NetworkOptions, Tensors};
pub use ops::{Activation, DropoutKey, Op};
pub use optimiser::{FrozenSteps, Optimiser, ParameterGroup};
pub use parameters::{Initial, Parameter, Role};
pub(crate) use plan::{GradientWrite, Plan, Slot};
pub use precision::Precision;
pub use profile::{PartTime, Profile};
pub use shards::merge_softmax;
pub use similarity::{DevicePositives, Neighbours, Positives, RowSample, Scan, ScanResult};
pub use stream::{Counting, HostLoss, Loss, SoftmaxLoss, Stream, Tiles};
