//! Similarities between rows of two matrices on the GPU, as [`crate::Device`] promises them.
//!
//! Memory that a call needs beside its arguments is kept for the next one of the same size. A step that is to be captured
//! as a graph uses [`loss::SoftmaxLoss`] and [`enqueue_blend`] with everything on the device, on the stream that records.

#[allow(dead_code, reason = "devices offer it step by step")]
mod contrastive;
mod loss;
mod scan;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use super::launch::Pointer;
use super::{Cuda, CudaBuffer, failed};
use crate::{Error, Result};

#[allow(unused_imports, reason = "as above")]
pub(super) use contrastive::Contrastive;
pub(super) use loss::{DevicePositives, SoftmaxLoss, softmax_loss};
pub(super) use scan::scan;

/// What calls keep for each other.
#[derive(Default)]
pub(super) struct Scratch(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    loss: Option<SoftmaxLoss>,
    words: [Option<CudaSlice<u32>>; 2],
    losses: Option<CudaSlice<f32>>,
    blend: Option<CudaFunction>,
}

impl Scratch {
    /// A panic while it was held left no half-made thing behind: each is replaced whole.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies words to kept memory, which grows when it must, and says where they are.
pub(super) fn send(
    cuda: &Cuda,
    kept: &mut Option<CudaSlice<u32>>,
    words: &[u32],
) -> Result<Pointer> {
    let slice = match kept {
        Some(slice) if slice.len() >= words.len() => slice,
        _ => kept.insert(cuda.zeros(words.len().next_power_of_two(), "indices of a batch")?),
    };
    if !words.is_empty() {
        let sent = cuda.stream().memcpy_htod(words, slice);
        sent.map_err(|e| failed("sending indices", e))?;
    }
    Ok(cuda.pointer(slice))
}

/// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query), one after the other: an index named twice
/// is blended twice.
pub(super) fn blend_rows(
    cuda: &Cuda,
    keys: &mut CudaBuffer,
    dim: usize,
    indices: &[u32],
    queries: &CudaBuffer,
    rate: f32,
) -> Result<()> {
    let n = rows("keys", keys.len(), dim)?;
    Error::check_length("queries", indices.len() * dim, queries.len())?;
    if let Some(i) = indices.iter().find(|i| **i as usize >= n) {
        return Err(Error::Plan(format!("row {i} of {n} rows")));
    }
    let mut seen = HashSet::with_capacity(indices.len());
    let repeated = !indices.iter().all(|i| seen.insert(*i));
    let mut kept = cuda.shared.similarity.lock();
    let kernel = match &kept.blend {
        Some(kernel) => kernel.clone(),
        None => kept.blend.insert(blend_kernel(cuda)?).clone(),
    };
    let blend = Blend {
        keys: cuda.pointer(&keys.values),
        queries: cuda.pointer(&queries.values),
        dim,
        count: indices.len(),
        rate,
        indices: send(cuda, &mut kept.words[0], indices)?,
        counter: 0,
        repeated,
    };
    enqueue_blend(cuda.stream(), &kernel, &blend)
}

/// Rows to blend, all on the device.
pub(super) struct Blend {
    /// The matrix whose rows change.
    pub(super) keys: Pointer,
    /// What they move to.
    pub(super) queries: Pointer,
    /// Length of a row.
    pub(super) dim: usize,
    /// How many rows.
    pub(super) count: usize,
    /// How far they move.
    pub(super) rate: f32,
    /// Which rows: u32.
    pub(super) indices: Pointer,
    /// The step (u64), if the indices are an epoch's and the step's are wanted; 0 for none.
    pub(super) counter: Pointer,
    /// Whether an index may come twice.
    pub(super) repeated: bool,
}

/// The kernel that [`enqueue_blend`] starts.
pub(super) fn blend_kernel(cuda: &Cuda) -> Result<CudaFunction> {
    cuda.function("similarity", "blend_rows")
}

/// Asks for rows to be blended, and waits for nothing.
pub(super) fn enqueue_blend(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    blend: &Blend,
) -> Result<()> {
    if blend.count == 0 {
        return Ok(());
    }
    let (dim, count) = (blend.dim as i32, blend.count as i32);
    let repeated = i32::from(blend.repeated);
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&blend.keys).arg(&blend.queries);
    launch.arg(&dim).arg(&count).arg(&blend.rate);
    launch
        .arg(&blend.indices)
        .arg(&blend.counter)
        .arg(&repeated);
    // A warp a row.
    let shape = shape([blend.count.div_ceil(8) as u32, 1, 1], 256, 0);
    // SAFETY: the arguments are those of the kernel; indices were checked by the caller to lie within the keys.
    let launched = unsafe { launch.launch(shape) };
    launched.map(drop).map_err(|e| failed("blending rows", e))
}

fn shape(grid: [u32; 3], threads: u32, shared_bytes: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: grid.into(),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: shared_bytes as u32,
    }
}

/// How many rows of length `dim` a matrix of `len` values has.
fn rows(what: &str, len: usize, dim: usize) -> Result<usize> {
    if dim == 0 {
        return Err(Error::Plan(format!("{what}: rows of length 0")));
    }
    let n = len / dim;
    Error::check_length(what, n * dim, len)?;
    // Kernels count rows in 32 bits.
    if n > i32::MAX as usize - 256 {
        return Err(Error::Plan(format!(
            "{what}: {n} rows are more than a GPU's kernels can count"
        )));
    }
    Ok(n)
}

/// A temperature divides: it is positive and finite.
fn check_temperature(temperature: f32) -> Result<()> {
    if temperature > 0.0 && temperature.is_finite() {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "temperature {temperature}: must be a positive number"
    )))
}
