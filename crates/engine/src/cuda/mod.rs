//! An NVIDIA GPU: kernels of our own compiled by NVRTC for the chip found, convolutions by cuDNN.
//!
//! Every library is opened when a [`Cuda`] is made and not before, so that the same program runs
//! where there is none. All work that a program gives to a GPU goes to one stream, in the order it
//! is asked for; the host waits only where values are read.

mod autotune;
mod autotune_cache;
mod batches;
mod bound_stream;
mod cache;
mod compile;
mod convolution;
mod cudnn;
mod cudnn_graph;
mod items;
mod launch;
mod libraries;
mod memory;
mod nccl;
mod network;
mod optimisers;
mod parameters;
mod profile;
mod similarity;
mod stream;
#[cfg(test)]
mod testing;
mod tiles;
mod together;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use cudarc::driver::result::DriverError;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DeviceRepr, sys,
};

use autotune_cache::AutotuneCache;
#[doc(hidden)] // what crates/fuzzing attacks
pub use autotune_cache::reread as reread_autotune_cache;
pub(crate) use batches::{LoaderOnGpu, Made};
use bound_stream::BoundStream;
pub(crate) use launch::{Arguments, Kernels, Pointer, Sliding, blocks, eights, kernels, ones};
pub use libraries::{Found, Library};
use nccl::Nccl;
pub use nccl::find_nccl;
pub(crate) use network::{CudaNetwork, CudaWalk};
use similarity::CudaPositives;
pub(crate) use stream::GpuStream;

use crate::{
    Buffer, Communicator, DevicePositives, Error, Graph, KernelSource, NetworkOptions, Positives,
    Precision, Result, Scan, ScanResult,
};

/// Priorities of streams: less is more urgent.
const FIRST: i32 = -1;
const LAST: i32 = 0;

/// A GPU with a stream of work.
#[derive(Clone)]
pub struct Cuda {
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<CudaContext>,
    precision: Precision,
    modules: Mutex<HashMap<&'static str, Arc<CudaModule>>>,
    architecture: String,
    description: String,
    bound: OnceLock<Arc<BoundStream>>,
    recorder: OnceLock<Mutex<Arc<BoundStream>>>,
    /// Measured choices of algorithms.
    choices: Mutex<AutotuneCache>,
    /// The GPUs of other processes, once a stream has asked for them.
    nccl: Mutex<Option<Arc<Nccl>>>,
    stream: Arc<CudaStream>,
}

impl Cuda {
    /// The GPU of this number.
    pub fn new(ordinal: usize, precision: Precision) -> Result<Self> {
        libraries::open_all()?;
        let stream = stream_of(ordinal)?;
        let context = stream.context().clone();
        let (major, minor) = context.compute_capability().doing("asking for the chip")?;
        let name = context.name().doing("asking for the GPU's name")?;
        check_chip(&name, [major, minor])?;
        let shared = Shared {
            architecture: compile::architecture(major, minor),
            description: format!("{name}, {precision}"),
            stream,
            context,
            precision,
            modules: Mutex::default(),
            bound: OnceLock::new(),
            recorder: OnceLock::new(),
            choices: Mutex::new(AutotuneCache::of(&name)),
            nccl: Mutex::new(None),
        };
        compile::fill_cache(&shared.architecture, precision);
        Ok(Cuda { shared: Arc::new(shared) })
    }

    /// Compiles a kernel that makes batches, for Hopper chips, with no GPU at hand; gives the size
    /// of its code.
    pub fn try_compile(kernel: &KernelSource) -> Result<usize> {
        Library::Nvrtc.open()?;
        let image =
            compile::compile(&text_of(kernel), &compile::architecture(9, 0), Precision::Bf16)?;
        Ok(image.len())
    }

    /// Whether this machine has a GPU and the libraries to use it.
    pub fn available() -> bool {
        libraries::open_all().is_ok() && CudaContext::device_count().is_ok_and(|n| n > 0)
    }

    /// What numbers it computes with.
    pub fn precision(&self) -> Precision {
        self.shared.precision
    }

    /// Waits until all work asked for is done.
    pub fn synchronise(&self) -> Result<()> {
        self.stream().synchronize().doing("waiting for the GPU")
    }

    /// The stream all work goes to.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.shared.stream
    }

    /// A kernel of `<file_stem>.cu`, compiled if need be.
    pub(crate) fn function(&self, file_stem: &str, name: &str) -> Result<CudaFunction> {
        self.kernel(&compile::source(file_stem)?, name)
    }

    /// A kernel that somebody else brings.
    fn foreign(&self, kernel: &KernelSource) -> Result<CudaFunction> {
        self.kernel(&text_of(kernel), kernel.name)
    }

    fn kernel(&self, text: &compile::Text, name: &str) -> Result<CudaFunction> {
        let s = &*self.shared;
        let mut modules = s.modules.lock().unwrap_or_else(|e| e.into_inner());
        let module = match modules.get(text.stem) {
            Some(module) => module.clone(),
            None => {
                let load = |image: Vec<u8>| {
                    let image = cudarc::nvrtc::Ptx::from_binary(image);
                    s.context.load_module(image).map_err(|e| e.to_string())
                };
                let module = compile::cached(text, &s.architecture, s.precision, load)?;
                modules.insert(text.stem, module.clone());
                module
            }
        };
        module.load_function(name).doing(&format!("kernel {name} of {}.cu", text.stem))
    }

    /// How many multiprocessors the GPU has.
    pub(crate) fn multiprocessors(&self) -> Result<usize> {
        let which = sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        self.shared
            .context
            .attribute(which)
            .map(|c| c.max(1) as usize)
            .doing("counting multiprocessors")
    }

    /// Whether a kernel may begin before the one before it has ended: from Hopper on, and not where
    /// several programs are on the chip at the same time.
    fn starts_early(&self) -> bool {
        use sys::CUdevice_attribute_enum as Attribute;
        let ask = |which| self.shared.context.attribute(which);
        let major = ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        let shared = ask(Attribute::CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
        major.is_ok_and(|major| major >= 9) && shared.is_ok_and(|shared| shared == 0)
    }

    /// Bytes of shared memory that a block may have.
    fn most_shared(&self) -> Result<usize> {
        use sys::CUdevice_attribute_enum as Attribute;
        let which = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        self.shared
            .context
            .attribute(which)
            .map(|b| b.max(0) as usize)
            .doing("asking for shared memory")
    }

    /// The stream all work of networks goes to.
    fn bound_stream(&self) -> Result<Arc<BoundStream>> {
        let s = &*self.shared;
        if let Some(bound) = s.bound.get() {
            return Ok(bound.clone());
        }
        let bound = Arc::new(BoundStream::new(self, &s.stream)?);
        Ok(s.bound.get_or_init(|| bound).clone())
    }

    /// A stream for single passes to be recorded on, for one thread at a time.
    fn recorder(&self) -> Result<MutexGuard<'_, Arc<BoundStream>>> {
        let recorder = &self.shared.recorder;
        if recorder.get().is_none() {
            let made = Arc::new(self.new_bound_stream(FIRST)?);
            recorder.get_or_init(|| Mutex::new(made));
        }
        let stream = recorder.get().expect("made above");
        Ok(stream.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// How many GPUs this machine has for this process.
    pub fn count() -> Result<usize> {
        Library::Driver.open()?;
        let count = CudaContext::device_count().doing("counting GPUs")?;
        Ok(count.max(0) as usize)
    }

    /// The GPUs of the processes that work together. All of them ask at the same time; they meet
    /// once.
    fn nccl(&self, others: &Communicator) -> Result<Arc<Nccl>> {
        let kept = &self.shared.nccl;
        let mut kept = kept.lock().unwrap_or_else(|e| e.into_inner());
        let place = [others.rank(), others.ranks()];
        match &*kept {
            Some(nccl) if [nccl.rank(), nccl.ranks()] == place => Ok(nccl.clone()),
            _ => {
                let met = Nccl::meet(&self.shared.context, others)?;
                Ok(kept.insert(Arc::new(met)).clone())
            }
        }
    }

    /// A stream of somebody's own. One of the last priority takes what the others leave of the GPU.
    fn new_bound_stream(&self, priority: i32) -> Result<BoundStream> {
        let stream =
            self.shared.context.new_stream_with_priority(priority).doing("making a stream")?;
        BoundStream::new(self, &stream)
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.description.clone()
    }

    pub(crate) fn upload(&self, values: &[f32]) -> Result<Buffer> {
        let place = self.zeros(values.len(), "rows of features");
        let mut place = place.map_err(memory::rows_that_fit)?;
        self.send(values, &mut place)?;
        Ok(Buffer::new(values.len(), place))
    }

    pub(crate) fn upload_indices(&self, values: &[u32]) -> Result<Buffer<u32>> {
        self.indices(values)
    }

    pub(crate) fn write(&self, values: &[f32], to: &mut Buffer) -> Result<()> {
        self.send(values, to.memory_mut::<CudaSlice<f32>>()?)
    }

    pub(crate) fn download(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        self.receive(buffer)
    }

    pub(crate) fn download_indices(&self, buffer: &Buffer<u32>) -> Result<Vec<u32>> {
        self.receive(buffer)
    }

    pub(crate) fn positives(&self, positives: &Positives, keys: usize) -> Result<DevicePositives> {
        let (starts, members) = positives.parts();
        let mut on_device = CudaPositives {
            starts: self.zeros(starts.len(), "positives")?,
            members: self.zeros(members.len(), "positives")?,
            each: positives.count_each(),
        };
        self.send(starts, &mut on_device.starts)?;
        self.send(members, &mut on_device.members)?;
        let (rows, most) = (positives.len(), positives.most());
        Ok(DevicePositives::new(rows, most, keys, on_device))
    }

    pub(crate) fn leave(&self) {
        let kept = &self.shared.nccl;
        let mut kept = kept.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(nccl) = kept.take() {
            nccl.end_well();
        }
    }

    pub(crate) fn network(
        &self,
        graph: &Arc<Graph>,
        options: &NetworkOptions,
    ) -> Result<CudaNetwork> {
        CudaNetwork::new(self, graph, options)
    }

    pub(crate) fn make_stream(&self) -> Result<GpuStream> {
        GpuStream::new(self)
    }

    pub(crate) fn scan(
        &self,
        queries: &Buffer,
        keys: &Buffer,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        let rows = |of: &Buffer| Ok((slice(self, of)?, of.len()));
        similarity::scan(self, rows(queries)?, rows(keys)?, scan, progress)
    }

    fn send<T: DeviceRepr>(&self, values: &[T], to: &mut CudaSlice<T>) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        self.stream().memcpy_htod(values, to).doing("copying to the GPU")
    }

    fn receive<T: DeviceRepr + 'static>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        let from: &CudaSlice<T> = buffer.memory()?;
        self.stream().clone_dtoh(&from.slice(..buffer.len())).doing("copying from the GPU")
    }

    fn indices(&self, values: &[u32]) -> Result<Buffer<u32>> {
        let mut place = self.zeros(values.len(), "indices")?;
        self.send(values, &mut place)?;
        Ok(Buffer::new(values.len(), place))
    }
}

/// Where a buffer's values begin.
fn slice<T: 'static>(cuda: &Cuda, buffer: &Buffer<T>) -> Result<Pointer> {
    Ok(cuda.pointer(buffer.memory::<CudaSlice<T>>()?))
}

/// The stream of the GPU of this number, the same for everybody in the program: kernels whose
/// blocks wait for each other take turns in it, and never hold half of the chip each.
fn stream_of(ordinal: usize) -> Result<Arc<CudaStream>> {
    static OPEN: Mutex<BTreeMap<usize, Weak<CudaStream>>> = Mutex::new(BTreeMap::new());
    let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(stream) = open.get(&ordinal).and_then(Weak::upgrade) {
        return Ok(stream);
    }
    let context = CudaContext::new(ordinal).doing("opening the GPU")?;
    // SAFETY: all work of the program goes to one stream, so nothing needs events to be ordered.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream_with_priority(FIRST).doing("making a stream")?;
    open.insert(ordinal, Arc::downgrade(&stream));
    Ok(stream)
}

/// A kernel that somebody else brings stands for itself.
fn text_of(kernel: &KernelSource) -> compile::Text {
    compile::Text { stem: kernel.name, before: "", source: kernel.source }
}

/// Kernels use instructions that came with Ampere.
fn check_chip(name: &str, [major, minor]: [i32; 2]) -> Result<()> {
    if major >= 8 {
        return Ok(());
    }
    Err(Error::Device(format!(
        "{name} has compute capability {major}.{minor}, and 8.0 (Ampere) or above is needed"
    )))
}

/// Lets a kernel have more shared memory than the 48 KB every kernel may.
fn allow_shared(kernel: &CudaFunction, bytes: usize) -> Result<()> {
    let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    kernel
        .set_attribute(which, bytes as i32)
        .doing(&format!("asking for {bytes} bytes of shared memory"))
}

/// What the driver was asked for, in the error that it answered with.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| Error::Device(format!("CUDA, {what}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_chip_is_refused_with_a_reason() {
        for chip in [[8, 0], [8, 9], [9, 0], [12, 0]] {
            check_chip("GPU", chip).unwrap();
        }
        let why = check_chip("Tesla T4", [7, 5]).unwrap_err().to_string();
        assert!(why.contains("Tesla T4 has compute capability 7.5"), "{why}");
    }
}
