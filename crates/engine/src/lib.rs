//! How does a graph of layers run, forwards and backwards, on this device?
//!
//! A [`Graph`] is built once, its shapes inferred as it grows. A [`Plan`] then fixes, before the first batch, where every
//! activation and gradient lives, which memory is reused, and in which order gradients are written or added. A
//! [`Device`] turns both into a [`Network`] that runs steps without allocating.
//!
//! Everything is NHWC and, but for the activations of a GPU that is asked for bf16, f32. The engine knows nothing of pictures, files or the method trained with it.
//!
//! ```
//! use anchorhood_engine::{ConvSpec, Cpu, Device, Graph, Network, NetworkOptions, Sgd};
//!
//! let mut g = Graph::new();
//! let x = g.input(8, 8, 3);
//! let x = g.conv_norm("conv1", "bn1", x, ConvSpec::square(16, 3, 1, 1), true, None)?;
//! let x = g.global_avg_pool("pool", x)?;
//! let x = g.linear("fc", x, 4, true)?;
//! g.output(x);
//!
//! let mut net = Cpu::new(2).network(&g, &NetworkOptions::new(4))?;
//! net.initialise(0);
//! net.train_forward(&vec![0.5; 4 * 8 * 8 * 3], 0)?;
//! net.output_and_gradient().1.fill(1.0);
//! net.backward()?;
//! net.update(&Sgd::new(0.03))?;
//! # Ok::<(), anchorhood_engine::Error>(())
//! ```

mod cpu;
mod cuda;
mod device;
mod error;
mod graph;
pub mod naive;
mod optimiser;
mod parameters;
mod plan;
mod profile;
mod similarity;
mod steps;

pub use cpu::{Cpu, CpuNetwork, SimdLevel};
pub use cuda::{Cuda, CudaBuffer, CudaNetwork, CudaSteps, Found, Library, Precision};
pub use device::{Device, Network, NetworkOptions, Tensors};
pub use error::{Error, Result};
pub use graph::{ConvSpec, Graph, Node, NodeId, Norm, Op, Shape, Window};
pub use optimiser::Sgd;
pub use parameters::{Initial, Parameter, Role};
pub use plan::{GradientWrite, Plan, Slot};
pub use profile::{PartTime, Profile};
pub use similarity::{Neighbours, Positives, Scan, ScanResult};
pub use steps::{BatchForm, BatchKernel, BatchMaker, Fetch, NoSteps, StepRule, Steps};
