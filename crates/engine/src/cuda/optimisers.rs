//! A step of any [`Optimiser`] over the vector of all weights on the GPU, and the moving average of
//! such vectors (kernels/optimisers.cu).
//!
//! Everything is on the device and is asked for on the stream given; nothing waits, so that a step
//! can be captured as a graph. Callers promise that pointers cover the values named, begin at
//! sixteen bytes, and that what lies between two tensors is zero.

use std::ops::Range;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};

use super::Cuda;
use super::launch::{BLOCK, Pointer, argument, blocks, kernels, launch, ones, warps};
use crate::{Error, Optimiser, ParameterGroup, Result};

/// Weights of a thread of those kernels that go over all of them.
const WEIGHTS: usize = 4;
/// Every tensor begins at a multiple of so many values.
const ALIGN: usize = 8;
/// Values whose squares a block sums.
const PART: usize = 8192;
/// The most gradients that are summed.
const MOST_PASSES: usize = 32;

/// How a tensor is trained, as optimisers.cu has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    rate_factor: f32,
    decay: f32,
    frozen: [u64; 2],
    adapt: u64,
}
// SAFETY: 32 bytes without padding, the same on the device, and valid when they are zero.
unsafe impl DeviceRepr for Tensor {}
// SAFETY: as above.
unsafe impl ValidAsZeroBits for Tensor {}

/// Values of one tensor, as optimisers.cu has them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    start: u64,
    len: u32,
    tensor: u32,
}
// SAFETY: sixteen bytes without padding, the same on the device, and valid when they are zero.
unsafe impl DeviceRepr for Part {}
// SAFETY: as above.
unsafe impl ValidAsZeroBits for Part {}

/// The gradients of all passes, as optimisers.cu has them.
#[repr(C)]
struct Gradients {
    wide: [Pointer; MOST_PASSES],
    narrow: [Pointer; MOST_PASSES],
    passes: u32,
}
argument!(Gradients);

/// The vectors of a network: f32 but for `copies`.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    /// All weights.
    pub(super) weights: Pointer,
    /// The optimiser's state; a slot that it does not have is 0.
    pub(super) slots: [Pointer; 2],
    /// The first `matrices` weights rounded to bf16; 0 where activations are f32.
    pub(super) copies: Pointer,
    /// How many weights have copies and gradients in bf16: 0 where activations are f32.
    pub(super) matrices: usize,
}

/// What changes from step to step.
#[derive(Clone, Copy)]
pub(super) struct StepInputs {
    /// f32: the learning rate.
    pub(super) rate: Pointer,
    /// Three u64: step in the epoch, epoch, number of all steps before this one.
    pub(super) current: Pointer,
    /// u32: not 0 where nothing may change; or 0 for none.
    pub(super) flag: Pointer,
}

/// Where each tensor lies and how it is trained, with the memory that its norms need.
pub(super) struct Update {
    optimiser: Optimiser,
    len: usize,
    step: CudaFunction,
    /// How each tensor is trained, and a tensor's number for every eight values; and where they
    /// lie.
    memory: (CudaSlice<Tensor>, CudaSlice<u16>),
    tensors: Pointer,
    tensor_of: Pointer,
    lars: Option<Lars>,
}

/// What LARS needs beside.
struct Lars {
    squares: CudaFunction,
    rates: CudaFunction,
    /// Where tensors begin among all values, and among the parts.
    starts: Vec<usize>,
    part_starts: Vec<u32>,
    _memory: (CudaSlice<Part>, CudaSlice<u32>, CudaSlice<f64>, CudaSlice<f32>),
    parts: Pointer,
    parts_of: Pointer,
    sums: Pointer,
    local: Pointer,
}

impl Update {
    /// Tensors that begin at multiples of eight values, in any order, in a vector of `len` values.
    pub(super) fn new(
        cuda: &Cuda,
        optimiser: Optimiser,
        mut tensors: Vec<(Range<usize>, ParameterGroup)>,
        len: usize,
    ) -> Result<Self> {
        tensors.sort_by_key(|(range, _)| range.start);
        let tensor_of = numbers(&tensors, len)?;
        let (step, lars) = match optimiser {
            Optimiser::Sgd { .. } => ("sgd_step", None),
            Optimiser::Lars { .. } => ("sgd_step", Some(Lars::new(cuda, &tensors)?)),
            Optimiser::AdamW { .. } => ("adam_w_step", None),
        };
        let table = table(&optimiser, tensors);
        let memory = (send(cuda, &table)?, send(cuda, &tensor_of)?);
        cuda.synchronise()?; // a step may be asked for on another stream
        Ok(Update {
            optimiser,
            len,
            step: cuda.function("optimisers", step)?,
            tensors: cuda.pointer(&memory.0),
            tensor_of: cuda.pointer(&memory.1),
            memory,
            lars,
        })
    }

    /// The same tensors in other groups. Their table stays where it is, so that a step which was
    /// captured reads them too.
    pub(super) fn regroup(
        &mut self,
        cuda: &Cuda,
        tensors: Vec<(Range<usize>, ParameterGroup)>,
    ) -> Result<()> {
        let table = table(&self.optimiser, tensors);
        Error::check_length("tensors in groups", self.memory.0.len(), table.len())?;
        cuda.synchronise()?; // a step may be under way on another stream
        cuda.send(&table, &mut self.memory.0)?;
        cuda.synchronise()
    }

    /// Asks for one step of some of the weights, by the sum of the gradients of all passes: whole
    /// tensors with what lies between them, from one multiple of eight values to another.
    ///
    /// Each pass has two vectors of gradients: of all weights in f32, and of the matrices in bf16,
    /// which are read in place of the first where activations are bf16.
    pub(super) fn enqueue(
        &self,
        stream: &CudaStream,
        inputs: &StepInputs,
        passes: &[[Pointer; 2]],
        vectors: &Vectors,
        some: Range<usize>,
    ) -> Result<()> {
        check_range(&some, self.len)?;
        if some.is_empty() {
            return Ok(());
        }
        let local = match &self.lars {
            Some(lars) => {
                lars.enqueue(stream, self, gradients(passes, 0)?, vectors, &some)?;
                lars.local
            }
            None => 0,
        };
        let some_gradients = gradients(passes, some.start)?;
        let (wide, narrow) = (4 * some.start as u64, 2 * some.start as u64);
        let matrices = vectors.matrices.saturating_sub(some.start) as u64;
        let [weights, copies] = [vectors.weights + wide, vectors.copies + narrow];
        let [first, second] = vectors.slots.map(|slot| slot + wide);
        let tensor_of = self.tensor_of + 2 * (some.start / ALIGN) as u64;
        let (tensors, len) = (self.tensors, some.len() as u64);
        let of_all = [inputs.rate, inputs.current];
        let shape = ones(some.len().div_ceil(WEIGHTS))?;
        match self.optimiser {
            Optimiser::Sgd { momentum, nesterov, .. }
            | Optimiser::Lars { momentum, nesterov, .. } => {
                let how = (momentum, u32::from(nesterov), some_gradients);
                let of_tensors = ([tensor_of, tensors, local, inputs.flag], matrices, len);
                let arguments = (of_all, how, of_tensors, [weights, first, copies]);
                launch(stream, &self.step, shape, "the optimiser", arguments)
            }
            Optimiser::AdamW { beta1, beta2, epsilon, .. } => {
                let how = ([beta1, beta2, epsilon], some_gradients);
                let of_tensors = ([tensor_of, tensors, inputs.flag], matrices, len);
                let arguments = (of_all, how, of_tensors, [weights, first, second, copies]);
                launch(stream, &self.step, shape, "the optimiser", arguments)
            }
        }
    }
}

impl Lars {
    fn new(cuda: &Cuda, tensors: &[(Range<usize>, ParameterGroup)]) -> Result<Self> {
        let (parts, part_starts) = parts(tensors);
        let memory = (
            send(cuda, &parts)?,
            send(cuda, &part_starts)?,
            cuda.zeros(2 * parts.len(), "norms of the weights")?,
            cuda.zeros(2 * tensors.len(), "local rates")?,
        );
        Ok(Lars {
            squares: cuda.function("optimisers", "lars_squares")?,
            rates: cuda.function("optimisers", "lars_rates")?,
            starts: tensors.iter().map(|(range, _)| range.start).collect(),
            part_starts,
            parts: cuda.pointer(&memory.0),
            parts_of: cuda.pointer(&memory.1),
            sums: cuda.pointer(&memory.2),
            local: cuda.pointer(&memory.3),
            _memory: memory,
        })
    }

    /// Asks for the local rates of the tensors that begin in a range.
    fn enqueue(
        &self,
        stream: &CudaStream,
        update: &Update,
        gradients: Gradients,
        vectors: &Vectors,
        some: &Range<usize>,
    ) -> Result<()> {
        let number = |value: usize| self.starts.partition_point(|start| *start < value);
        let (from, to) = (number(some.start), number(some.end));
        let [first_part, end_part] = [from, to].map(|n| self.part_starts[n]);
        if first_part == end_part {
            return Ok(());
        }
        let Optimiser::Lars { trust, epsilon, .. } = update.optimiser else {
            return Ok(()); // nobody else has local rates
        };
        let doing = "norms of the weights";
        let parts = self.parts + (size_of::<Part>() as u64) * u64::from(first_part);
        let own_sums = self.sums + 16 * u64::from(first_part);
        let shape = blocks((end_part - first_part) as usize, BLOCK)?;
        let arguments = (parts, gradients, vectors.matrices as u64, vectors.weights, own_sums);
        launch(stream, &self.squares, shape, doing, arguments)?;

        let (first, count) = (from as u32, (to - from) as u32);
        let tensors = [self.parts_of, self.sums, update.tensors];
        let arguments = (tensors, first, count, trust, epsilon, self.local);
        launch(stream, &self.rates, warps(to - from)?, doing, arguments)
    }
}

kernels! {
    /// The exponential moving average of a network's weights, and what becomes of running
    /// statistics when a step's loss is known.
    Averages {
        optimisers: ema, settle_statistics;
    }
}

impl Averages {
    /// Asks for target ← m · target + (1 − m) · source over `len` weights (whole eights), m (f32)
    /// and flag (u32, or 0) being on the device; the copies of the target's matrices follow.
    pub(super) fn follow(
        &self,
        stream: &CudaStream,
        [m, flag]: [Pointer; 2],
        source: Pointer,
        target: &Vectors,
        len: usize,
    ) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let sizes = [target.matrices, len].map(|n| n as u64);
        let arguments = (m, flag, source, sizes, target.weights, target.copies);
        launch(stream, &self.ema, ones(len.div_ceil(WEIGHTS))?, "the moving average", arguments)
    }

    /// Asks for `kept` to become `statistics`, or the other way round where the flag (u32) is up;
    /// both of `len` values (whole eights).
    pub(super) fn settle(
        &self,
        stream: &CudaStream,
        flag: Pointer,
        [statistics, kept]: [Pointer; 2],
        len: usize,
    ) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let arguments = (flag, len as u64, statistics, kept);
        let shape = ones(len.div_ceil(WEIGHTS))?;
        launch(stream, &self.settle_statistics, shape, "running statistics", arguments)
    }
}

/// How each tensor is trained, in the order in which they lie.
fn table(optimiser: &Optimiser, mut tensors: Vec<(Range<usize>, ParameterGroup)>) -> Vec<Tensor> {
    tensors.sort_by_key(|(range, _)| range.start);
    let of_group = |(_, group): &(Range<usize>, ParameterGroup)| Tensor {
        rate_factor: group.rate_factor,
        decay: optimiser.decay(group),
        frozen: group.frozen.bounds(),
        adapt: u64::from(group.adapt),
    };
    tensors.iter().map(of_group).collect()
}

/// A range of weights lies within all of them and has whole eights, as kernels read them.
fn check_range(some: &Range<usize>, len: usize) -> Result<()> {
    let whole = [some.start, some.end].iter().all(|at| at.is_multiple_of(ALIGN));
    if some.end <= len && whole {
        return Ok(());
    }
    Err(Error::Plan(format!("weights {some:?} of {len}")))
}

/// The gradients of all passes from a weight on.
fn gradients(passes: &[[Pointer; 2]], start: usize) -> Result<Gradients> {
    Error::refuse(!(1..=MOST_PASSES).contains(&passes.len()), || {
        format!("gradients of {} passes: there may be 1 to {MOST_PASSES}", passes.len())
    })?;
    let mut all =
        Gradients { wide: [0; MOST_PASSES], narrow: [0; MOST_PASSES], passes: passes.len() as u32 };
    for (pass, [wide, narrow]) in passes.iter().enumerate() {
        all.wide[pass] = wide + 4 * start as u64;
        all.narrow[pass] = narrow + 2 * start as u64;
    }
    Ok(all)
}

/// A tensor's number for every eight values.
fn numbers(tensors: &[(Range<usize>, ParameterGroup)], len: usize) -> Result<Vec<u16>> {
    let mut numbers = vec![0; len.div_ceil(ALIGN)];
    for (number, (range, _)) in tensors.iter().enumerate() {
        let Ok(number) = u16::try_from(number) else {
            return Err(Error::Plan(format!("{} tensors", tensors.len())));
        };
        Error::refuse(range.end > len || !range.start.is_multiple_of(ALIGN), || {
            format!("a tensor at {range:?} of {len} weights")
        })?;
        numbers[range.start / ALIGN..range.end.div_ceil(ALIGN)].fill(number);
    }
    Ok(numbers)
}

/// Tensors cut into parts, and where each tensor's begin; one more for the end.
fn parts(tensors: &[(Range<usize>, ParameterGroup)]) -> (Vec<Part>, Vec<u32>) {
    let (mut parts, mut starts) = (vec![], vec![0]);
    for (number, (range, _)) in tensors.iter().enumerate() {
        let of_tensor = range.clone().step_by(PART).map(|start| Part {
            start: start as u64,
            len: PART.min(range.end - start) as u32,
            tensor: number as u32,
        });
        parts.extend(of_tensor);
        starts.push(parts.len() as u32);
    }
    (parts, starts)
}

fn send<T: DeviceRepr + ValidAsZeroBits>(cuda: &Cuda, values: &[T]) -> Result<CudaSlice<T>> {
    let mut slice = cuda.zeros(values.len(), "the table of tensors")?;
    cuda.send(values, &mut slice)?;
    Ok(slice)
}

#[cfg(test)]
mod tests;
