//! An NVIDIA GPU: kernels of our own compiled by NVRTC for the chip found, convolutions by cuDNN.
//!
//! Every library is opened when a [`Cuda`] is made and not before, so that the same program runs where there is none.
//! All work of a device goes to one stream, in the order it is asked for; the host waits only where values are read.

mod compile;
mod libraries;
mod similarity;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::result::DriverError;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, sys};

pub use libraries::{Found, Library};

use crate::{Error, Result};

/// What numbers a GPU computes with. Parameters, statistics, the loss and the memory bank are f32 in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Activations and their gradients in bf16, sums in f32.
    Bf16,
    /// Activations in f32, convolutions rounded to tf32 on the tensor cores.
    Tf32,
    /// Everything in f32.
    F32,
}

impl Precision {
    /// Bytes of one activation.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Precision::Bf16 => 2,
            Precision::Tf32 | Precision::F32 => 4,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Precision::Bf16 => "bf16",
            Precision::Tf32 => "tf32",
            Precision::F32 => "f32",
        })
    }
}

/// A GPU with a stream of work.
#[derive(Clone)]
pub struct Cuda {
    shared: Arc<Shared>,
}

struct Shared {
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
    precision: Precision,
    modules: Mutex<HashMap<&'static str, Arc<CudaModule>>>,
    architecture: String,
    description: String,
}

/// A vector of f32 on the GPU.
pub struct CudaBuffer {
    pub(crate) values: CudaSlice<f32>,
}

impl CudaBuffer {
    /// How many values it holds.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

impl Cuda {
    /// The GPU of this number.
    pub fn new(ordinal: usize, precision: Precision) -> Result<Self> {
        libraries::open_all()?;
        let context = CudaContext::new(ordinal).map_err(|e| failed("opening the GPU", e))?;
        // SAFETY: all work of this context's owner goes to one stream, so nothing needs events to be ordered.
        unsafe { context.disable_event_tracking() };
        let stream = context
            .new_stream()
            .map_err(|e| failed("making a stream", e))?;
        let (major, minor) = context
            .compute_capability()
            .map_err(|e| failed("asking for the chip", e))?;
        let name = context
            .name()
            .map_err(|e| failed("asking for the GPU's name", e))?;
        let shared = Shared {
            architecture: compile::architecture(major, minor),
            description: format!("{name}, {precision}"),
            stream,
            context,
            precision,
            modules: Mutex::default(),
        };
        Ok(Cuda {
            shared: Arc::new(shared),
        })
    }

    /// Whether this machine has a GPU and the libraries to use it.
    pub fn available() -> bool {
        libraries::open_all().is_ok() && CudaContext::device_count().is_ok_and(|n| n > 0)
    }

    /// What numbers it computes with.
    pub fn precision(&self) -> Precision {
        self.shared.precision
    }

    /// The stream all work goes to.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.shared.stream
    }

    /// A kernel of `kernels/<file_stem>.cu`, compiled if need be.
    pub(crate) fn function(&self, file_stem: &str, name: &str) -> Result<CudaFunction> {
        let s = &*self.shared;
        let mut modules = s.modules.lock().unwrap_or_else(|e| e.into_inner());
        let (stem, source) = compile::source(file_stem)?;
        let module = match modules.get(stem) {
            Some(module) => module.clone(),
            None => {
                let load = |image: Vec<u8>| {
                    let image = cudarc::nvrtc::Ptx::from_binary(image);
                    s.context.load_module(image).map_err(|e| e.to_string())
                };
                let module = compile::cached(stem, source, &s.architecture, s.precision, load)?;
                modules.insert(stem, module.clone());
                module
            }
        };
        module
            .load_function(name)
            .map_err(|e| failed(&format!("kernel {name} of {stem}.cu"), e))
    }

    /// Zeroed memory; the error says what was asked for and what was free.
    pub(crate) fn zeros<T>(&self, len: usize, what: &str) -> Result<CudaSlice<T>>
    where
        T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits,
    {
        let bytes = len * size_of::<T>();
        // An empty allocation is not one to every driver.
        let slice = self.stream().alloc_zeros(len.max(1));
        slice.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = self.shared.context.mem_get_info().unwrap_or((0, 0));
                Error::Device(format!(
                    "{what}: {} MiB asked for, {} of the GPU's {} MiB are free; a smaller batch needs less",
                    bytes.div_ceil(1 << 20),
                    free >> 20,
                    total >> 20
                ))
            }
            _ => failed(what, e),
        })
    }
}

/// An error of the driver, with what was being done.
pub(crate) fn failed(doing: &str, error: DriverError) -> Error {
    Error::Device(format!("CUDA, {doing}: {error}"))
}
