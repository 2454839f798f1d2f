//! cuDNN behind a few safe types: a handle, descriptors, and one convolution's three directions.

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::cudnn::sys::{
    self, cudnnConvolutionMode_t as Mode, cudnnDataType_t as DataType,
    cudnnDeterminism_t as Determinism, cudnnMathType_t as MathType, cudnnStatus_t as Status,
    cudnnTensorFormat_t as Format,
};
use cudarc::driver::CudaStream;
use serde::{Deserialize, Serialize};

use super::Precision;
use super::launch::Pointer;
use crate::{Error, Result, Shape, Window};

/// A convolution's shapes: all that a choice of algorithm depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) batch: usize,
    pub(super) input: Shape,
    /// The first so many of the input's channels; the others are zero.
    pub(super) used: usize,
    pub(super) output: Shape,
    pub(super) window: Window,
    pub(super) precision: Precision,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Forward,
    InputGradient,
    WeightGradient,
}

impl Direction {
    /// How many algorithms cuDNN has; they are numbered from 0, for each direction by itself.
    pub(super) fn algorithm_count(self) -> u32 {
        use sys::cudnnConvolutionBwdDataAlgo_t as Data;
        use sys::cudnnConvolutionBwdFilterAlgo_t as Filter;
        use sys::cudnnConvolutionFwdAlgo_t as Forward;
        match self {
            Direction::Forward => Forward::CUDNN_CONVOLUTION_FWD_ALGO_COUNT as u32,
            Direction::InputGradient => Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT as u32,
            Direction::WeightGradient => Filter::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT as u32,
        }
    }
}

/// One of cuDNN's ways. Kept as its number, its kind of arithmetic and its bytes of working memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "(u32, u32, usize)", try_from = "(u32, u32, usize)")]
pub(super) struct Algorithm {
    number: u32,
    math: MathType,
    pub(super) workspace: usize,
}

impl Algorithm {
    /// Whether cuDNN has such an algorithm in a direction.
    pub(super) fn is_of(self, direction: Direction) -> bool {
        self.number < direction.algorithm_count()
    }
}

impl From<Algorithm> for (u32, u32, usize) {
    fn from(a: Algorithm) -> Self {
        (a.number, a.math as u32, a.workspace)
    }
}

impl TryFrom<(u32, u32, usize)> for Algorithm {
    type Error = &'static str;

    fn try_from(
        (number, math, workspace): (u32, u32, usize),
    ) -> std::result::Result<Self, Self::Error> {
        let math = match math {
            0 => MathType::CUDNN_DEFAULT_MATH,
            1 => MathType::CUDNN_TENSOR_OP_MATH,
            2 => MathType::CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
            3 => MathType::CUDNN_FMA_MATH,
            _ => return Err("cuDNN has four kinds of arithmetic"),
        };
        Ok(Algorithm { number, math, workspace })
    }
}

/// cuDNN's version, as a number.
pub(super) fn version() -> usize {
    // SAFETY: the library was opened when the device was made, and the call has no arguments.
    unsafe { sys::cudnnGetVersion() }
}

/// The tensors of one call: what is read, in cuDNN's order, what is written, and working memory.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) first: Pointer,
    pub(super) second: Pointer,
    pub(super) result: Pointer,
    pub(super) workspace: Pointer,
}

/// cuDNN's handle, bound to a stream; used by one thread at a time.
pub(super) struct Handle(Mutex<RawHandle>);

pub(super) struct RawHandle(pub(super) sys::cudnnHandle_t);

// SAFETY: a handle may move between threads as long as one at a time uses it, which the mutex sees
// to.
unsafe impl Send for RawHandle {}

impl Handle {
    pub(super) fn new(stream: &Arc<CudaStream>) -> Result<Self> {
        let mut handle = null_mut();
        // SAFETY: the pointer is valid to write to; the stream lives as long as the stream that
        // owns this handle.
        unsafe {
            check("making a handle", sys::cudnnCreate(&mut handle))?;
            let raw = RawHandle(handle);
            let stream = stream.cu_stream().cast();
            check("setting its stream", sys::cudnnSetStream(raw.0, stream))?;
            Ok(Handle(Mutex::new(raw)))
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RawHandle> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Drop for RawHandle {
    fn drop(&mut self) {
        // SAFETY: created by cuDNN, destroyed only here.
        unsafe { sys::cudnnDestroy(self.0) };
    }
}

/// A convolution's descriptors.
pub(super) struct Descriptors {
    x: sys::cudnnTensorDescriptor_t,
    y: sys::cudnnTensorDescriptor_t,
    w: sys::cudnnFilterDescriptor_t,
    convolution: sys::cudnnConvolutionDescriptor_t,
}

// SAFETY: descriptors are plain memory that is written at creation and, for the math type, under
// the handle's lock.
unsafe impl Send for Descriptors {}
// SAFETY: as above.
unsafe impl Sync for Descriptors {}

impl Descriptors {
    pub(super) fn new(p: &Problem) -> Result<Self> {
        let data = match p.precision {
            Precision::Bf16 => DataType::CUDNN_DATA_BFLOAT16,
            Precision::Tf32 | Precision::F32 => DataType::CUDNN_DATA_FLOAT,
        };
        let mut d =
            Descriptors { x: null_mut(), y: null_mut(), w: null_mut(), convolution: null_mut() };
        let nhwc = Format::CUDNN_TENSOR_NHWC;
        let tensor = |s: Shape| [p.batch, s.channels, s.height, s.width].map(|v| v as i32);
        let ([xn, xc, xh, xw], [yn, yc, yh, yw]) = (tensor(p.input), tensor(p.output));
        let [kh, kw] = p.window.kernel.map(|v| v as i32);
        let [sh, sw] = p.window.stride.map(|v| v as i32);
        let [ph, pw] = p.window.padding.map(|v| v as i32);
        let float = DataType::CUDNN_DATA_FLOAT;
        let mode = Mode::CUDNN_CROSS_CORRELATION;
        let done = |s| check("describing a convolution", s);
        // SAFETY: every descriptor is created before it is set; what was created is destroyed by
        // Drop.
        unsafe {
            done(sys::cudnnCreateTensorDescriptor(&mut d.x))?;
            done(sys::cudnnCreateTensorDescriptor(&mut d.y))?;
            done(sys::cudnnCreateFilterDescriptor(&mut d.w))?;
            done(sys::cudnnCreateConvolutionDescriptor(&mut d.convolution))?;
            done(sys::cudnnSetTensor4dDescriptor(d.x, nhwc, data, xn, xc, xh, xw))?;
            done(sys::cudnnSetTensor4dDescriptor(d.y, nhwc, data, yn, yc, yh, yw))?;
            done(sys::cudnnSetFilter4dDescriptor(d.w, data, nhwc, yc, xc, kh, kw))?;
            let c = d.convolution;
            done(sys::cudnnSetConvolution2dDescriptor(c, ph, pw, sh, sw, 1, 1, mode, float))?;
        }
        Ok(d)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: each was created by cuDNN or is null, which cuDNN takes.
        unsafe {
            sys::cudnnDestroyTensorDescriptor(self.x);
            sys::cudnnDestroyTensorDescriptor(self.y);
            sys::cudnnDestroyFilterDescriptor(self.w);
            sys::cudnnDestroyConvolutionDescriptor(self.convolution);
        }
    }
}

/// Asks cuDNN for its ways in one direction, best first by its own judgement.
macro_rules! ask {
    ($perf:ty, $function:path, $($argument:expr),+) => {{
        // SAFETY: zeros are a valid value of every field.
        let mut found: [$perf; 8] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        // SAFETY: the array has room for as many as are asked for; descriptors are set.
        let status = unsafe { $function($($argument),+, 8, &mut count, found.as_mut_ptr()) };
        let usable = status == Status::CUDNN_STATUS_SUCCESS;
        let count = if usable { count as usize } else { 0 };
        let good = found.into_iter().take(count).filter(|f| {
            f.status == Status::CUDNN_STATUS_SUCCESS
                && f.determinism == Determinism::CUDNN_DETERMINISTIC
        });
        good.map(|f| Algorithm {
            number: f.algo as u32,
            math: f.mathType,
            workspace: f.memory,
        })
        .collect::<Vec<_>>()
    }};
}

impl Handle {
    /// The deterministic ways there are, best first by cuDNN's judgement.
    pub(super) fn algorithms(
        &self,
        p: &Problem,
        d: &Descriptors,
        direction: Direction,
    ) -> Vec<Algorithm> {
        use sys::{
            cudnnConvolutionBwdDataAlgoPerf_t as Data,
            cudnnConvolutionBwdFilterAlgoPerf_t as Filter,
            cudnnConvolutionFwdAlgoPerf_t as Forward,
            cudnnGetConvolutionBackwardDataAlgorithm_v7 as data_ways,
            cudnnGetConvolutionBackwardFilterAlgorithm_v7 as filter_ways,
            cudnnGetConvolutionForwardAlgorithm_v7 as forward_ways,
        };
        let handle = self.lock();
        let math = match p.precision {
            Precision::Bf16 | Precision::Tf32 => MathType::CUDNN_TENSOR_OP_MATH,
            Precision::F32 => MathType::CUDNN_FMA_MATH,
        };
        // SAFETY: the descriptor is set, and the handle's lock is held.
        unsafe { sys::cudnnSetConvolutionMathType(d.convolution, math) };
        let (h, c) = (handle.0, d.convolution);
        let mut found = match direction {
            Direction::Forward => ask!(Forward, forward_ways, h, d.x, d.w, c, d.y),
            Direction::InputGradient => ask!(Data, data_ways, h, d.w, d.y, c, d.x),
            Direction::WeightGradient => ask!(Filter, filter_ways, h, d.x, d.y, c, d.w),
        };
        if p.precision == Precision::F32 {
            // No tf32, and no Winograd or Fourier transforms: f32 is for exactness.
            found.retain(|a| a.math == MathType::CUDNN_FMA_MATH && plain_sums(direction, a.number));
        }
        found
    }

    /// Runs one; an error says that this algorithm does not take this problem after all.
    pub(super) fn run(
        &self,
        d: &Descriptors,
        direction: Direction,
        a: &Algorithm,
        call: &Call,
        accumulate: bool,
    ) -> Result<()> {
        let handle = self.lock();
        let (alpha, beta) = (1.0_f32, f32::from(u8::from(accumulate)));
        let (one, add) = ((&raw const alpha).cast(), (&raw const beta).cast());
        let [first, second] = [call.first, call.second].map(|p| p as *const std::ffi::c_void);
        let [result, space] = [call.result, call.workspace].map(|p| p as *mut std::ffi::c_void);
        let (h, c, size) = (handle.0, d.convolution, a.workspace);
        // SAFETY: tensors are as large as the descriptors say and the workspace as the algorithm
        // asked for (the caller's promise); numbers of algorithms came from cuDNN itself or were
        // found below its count, for the same direction.
        let status = unsafe {
            sys::cudnnSetConvolutionMathType(c, a.math);
            match direction {
                Direction::Forward => {
                    let algo = std::mem::transmute::<u32, sys::cudnnConvolutionFwdAlgo_t>(a.number);
                    sys::cudnnConvolutionForward(
                        h, one, d.x, first, d.w, second, c, algo, space, size, add, d.y, result,
                    )
                }
                Direction::InputGradient => {
                    let algo =
                        std::mem::transmute::<u32, sys::cudnnConvolutionBwdDataAlgo_t>(a.number);
                    sys::cudnnConvolutionBackwardData(
                        h, one, d.w, first, d.y, second, c, algo, space, size, add, d.x, result,
                    )
                }
                Direction::WeightGradient => {
                    let algo =
                        std::mem::transmute::<u32, sys::cudnnConvolutionBwdFilterAlgo_t>(a.number);
                    sys::cudnnConvolutionBackwardFilter(
                        h, one, d.x, first, d.y, second, c, algo, space, size, add, d.w, result,
                    )
                }
            }
        };
        check("a convolution", status)
    }
}

/// Whether an algorithm multiplies and adds, rather than transforming first.
fn plain_sums(direction: Direction, number: u32) -> bool {
    use sys::cudnnConvolutionBwdDataAlgo_t as Data;
    use sys::cudnnConvolutionBwdFilterAlgo_t as Filter;
    use sys::cudnnConvolutionFwdAlgo_t as Forward;
    match direction {
        Direction::Forward => number <= Forward::CUDNN_CONVOLUTION_FWD_ALGO_DIRECT as u32,
        Direction::InputGradient => number <= Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 as u32,
        Direction::WeightGradient => {
            number <= Filter::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 as u32
                || number == Filter::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 as u32
        }
    }
}

pub(super) fn check(doing: &str, status: Status) -> Result<()> {
    match status {
        Status::CUDNN_STATUS_SUCCESS => Ok(()),
        _ => Err(Error::Device(format!("cuDNN, {doing}: {status:?}"))),
    }
}
