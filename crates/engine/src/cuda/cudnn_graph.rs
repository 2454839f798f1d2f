//! cuDNN's second door: descriptors of an operation, from which it proposes execution plans. It
//! offers more kernels than the first (cudnn.rs), and is asked for those that the first does not
//! have.
//!
//! A plan is named by its place in the list of what cuDNN proposes, which is the same for the same
//! version of cuDNN on the same kind of GPU.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendBehaviorNote_t as Behaviour, cudnnBackendDescriptorType_t as Kind,
    cudnnBackendHeurMode_t as Heuristic, cudnnBackendNumericalNote_t as Note,
    cudnnConvolutionMode_t as Mode, cudnnDataType_t as DataType,
};

use serde::{Deserialize, Serialize};

use super::Precision;
use super::autotune::Task;
use super::bound_stream::BoundStream;
use super::cudnn::{Call, Direction, check};
use crate::{Result, Shape};

/// Plans that are looked at, which is nearly all that cuDNN proposes: the fastest are not always
/// among the first.
const MOST_PLANS: usize = 40;

/// Which plan: its place in the list of what cuDNN proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanName(usize);

/// A plan that can be run.
pub(super) struct Plan {
    pub(super) name: PlanName,
    pub(super) workspace: usize,
    plan: Descriptor,
    /// The stream whose handle it was made with.
    home: Arc<BoundStream>,
}

/// The operation that plans are asked for.
pub(super) struct Operation {
    graph: Descriptor,
    precision: Precision,
    home: Arc<BoundStream>,
    /// What the graph is made of must live as long.
    _parts: Vec<Descriptor>,
}

impl Operation {
    /// A convolution in one direction; its result is written or, where `accumulate`, added to.
    pub(super) fn new(home: &Arc<BoundStream>, task: &Task) -> Result<Self> {
        let Task { problem: p, direction, accumulate } = *task;
        let data = match p.precision {
            Precision::Bf16 => DataType::CUDNN_DATA_BFLOAT16,
            Precision::Tf32 | Precision::F32 => DataType::CUDNN_DATA_FLOAT,
        };
        let activations = |uid, s: Shape| {
            let dims = [p.batch, s.channels, s.height, s.width];
            tensor(uid, data, dims)
        };
        let [kh, kw] = p.window.kernel;
        let x = activations(1, p.input)?;
        let w = tensor(2, data, [p.output.channels, p.input.channels, kh, kw])?;
        let y = activations(3, p.output)?;

        let convolution = Descriptor::new(Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
        let c = &convolution;
        let two = |v: [usize; 2]| v.map(|v| v as i64);
        let float = [DataType::CUDNN_DATA_FLOAT];
        c.set(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &float)?;
        let mode = [Mode::CUDNN_CROSS_CORRELATION];
        c.set(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Type::CUDNN_TYPE_CONVOLUTION_MODE, &mode)?;
        c.set(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Type::CUDNN_TYPE_INT64, &[2_i64])?;
        for (name, values) in [
            (Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, [1, 1]),
            (Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, two(p.window.stride)),
            (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, two(p.window.padding)),
            (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, two(p.window.padding)),
        ] {
            c.set(name, Type::CUDNN_TYPE_INT64, &values)?;
        }
        c.finish()?;

        let (kind, [n_c, n_x, n_w, n_y], [n_alpha, n_beta]) = names_of(direction);
        let operation = Descriptor::new(kind)?;
        for (name, of) in [(n_c, c), (n_x, &x), (n_w, &w), (n_y, &y)] {
            operation.set(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &[of.0])?;
        }
        let beta = f32::from(u8::from(accumulate));
        operation.set(n_alpha, Type::CUDNN_TYPE_FLOAT, &[1_f32])?;
        operation.set(n_beta, Type::CUDNN_TYPE_FLOAT, &[beta])?;
        operation.finish()?;

        let graph = Descriptor::new(Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        let handle = home.cudnn.lock();
        graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Type::CUDNN_TYPE_HANDLE, &[handle.0])?;
        let ops = [operation.0];
        let of_descriptors = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, of_descriptors, &ops)?;
        graph.finish()?;
        drop(handle);
        Ok(Operation {
            graph,
            precision: p.precision,
            home: home.clone(),
            _parts: vec![x, w, y, convolution, operation],
        })
    }

    /// The deterministic plans that cuDNN proposes; what it cannot make after all is left out.
    pub(super) fn plans(&self) -> Vec<Plan> {
        let configurations = self.configurations().unwrap_or_default();
        let proposed = configurations.iter().enumerate();
        let plan = |(place, configuration)| self.plan(PlanName(place), configuration);
        proposed.filter_map(plan).collect()
    }

    /// One plan, by its name.
    pub(super) fn named(&self, name: PlanName) -> Option<Plan> {
        let configurations = self.configurations().ok()?;
        self.plan(name, configurations.get(name.0)?)
    }

    fn configurations(&self) -> Result<Vec<Descriptor>> {
        let heuristics = Descriptor::new(Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
        let h = &heuristics;
        let of_descriptors = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        h.set(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of_descriptors, &[self.graph.0])?;
        let mode = [Heuristic::CUDNN_HEUR_MODE_A];
        h.set(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, &mode)?;
        let handle = self.home.cudnn.lock();
        h.finish()?;
        drop(handle);
        let empty = |_| Descriptor::new(Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        let mut found: Vec<Descriptor> = (0..MOST_PLANS).map(empty).collect::<Result<_>>()?;
        let mut places: Vec<_> = found.iter().map(|d| d.0).collect();
        let count = h.get(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, of_descriptors, &mut places)?;
        found.truncate(count);
        Ok(found)
    }

    fn plan(&self, name: PlanName, configuration: &Descriptor) -> Option<Plan> {
        if !self.allows(configuration).ok()? {
            return None;
        }
        let plan = Descriptor::new(Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR).ok()?;
        let handle = self.home.cudnn.lock();
        let made = plan
            .set(Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Type::CUDNN_TYPE_HANDLE, &[handle.0])
            .and_then(|()| {
                let name = Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG;
                plan.set(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &[configuration.0])
            })
            .and_then(|()| plan.finish());
        drop(handle);
        made.ok()?;
        let mut bytes = [0_i64];
        let name_of = Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
        plan.get(name_of, Type::CUDNN_TYPE_INT64, &mut bytes).ok()?;
        Some(Plan {
            name,
            workspace: usize::try_from(bytes[0]).ok()?,
            plan,
            home: self.home.clone(),
        })
    }

    /// Whether a configuration is there at once, gives the same bits every time, and what the
    /// precision promises.
    fn allows(&self, configuration: &Descriptor) -> Result<bool> {
        let engine = Descriptor::new(Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
        let of_descriptors = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        configuration.get(Name::CUDNN_ATTR_ENGINECFG_ENGINE, of_descriptors, &mut [engine.0])?;
        let mut notes = [u32::MAX; 16];
        let name = Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE;
        engine.get(name, Type::CUDNN_TYPE_NUMERICAL_NOTE, &mut notes)?;
        let has = |note: Note| notes.contains(&(note as u32));
        let exact = !has(Note::CUDNN_NUMERICAL_NOTE_TENSOR_CORE)
            && !has(Note::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)
            && !has(Note::CUDNN_NUMERICAL_NOTE_WINOGRAD)
            && !has(Note::CUDNN_NUMERICAL_NOTE_FFT);
        // Those that are compiled when they are made take a second each, and have won nothing.
        let mut behaviour = [u32::MAX; 16];
        let name = Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE;
        engine.get(name, Type::CUDNN_TYPE_BEHAVIOR_NOTE, &mut behaviour)?;
        let compiled = Behaviour::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION as u32;
        if behaviour.contains(&compiled) {
            return Ok(false);
        }
        let same = !has(Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
            && !has(Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
        Ok(same && (exact || self.precision != Precision::F32))
    }
}

impl Plan {
    /// Runs it on a stream; an error says that it does not take this problem after all.
    pub(super) fn run(
        &self,
        stream: &BoundStream,
        direction: Direction,
        call: &Call,
    ) -> Result<()> {
        let [x, w, y] = match direction {
            Direction::Forward => [call.first, call.second, call.result],
            Direction::InputGradient => [call.result, call.first, call.second],
            Direction::WeightGradient => [call.first, call.result, call.second],
        };
        let pack = Descriptor::new(Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        let pointers = Type::CUDNN_TYPE_VOID_PTR;
        let places = [x, w, y].map(|p| p as *mut c_void);
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers, &places)?;
        let uids = [1_i64, 2, 3];
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Type::CUDNN_TYPE_INT64, &uids)?;
        let workspace = [call.workspace as *mut c_void];
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, pointers, &workspace)?;
        pack.finish()?;
        let handle = self.home.cudnn.lock();
        // A plan belongs to its handle, which serves whichever stream it is told to.
        let serve = |stream: &BoundStream| {
            // SAFETY: handle and stream live, and the handle's lock is held.
            let status = unsafe { sys::cudnnSetStream(handle.0, stream.inner.cu_stream().cast()) };
            check("setting a stream", status)
        };
        serve(stream)?;
        // SAFETY: the plan was made with this handle; tensors and working memory are as large as it
        // asked for, which the caller promises.
        let status = unsafe { sys::cudnnBackendExecute(handle.0, self.plan.0, pack.0) };
        serve(&self.home)?;
        check("a convolution's plan", status)
    }
}

/// The kind of an operation, the names of its convolution, x, w and y, and of its factors.
fn names_of(direction: Direction) -> (Kind, [Name; 4], [Name; 2]) {
    match direction {
        Direction::Forward => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ],
        ),
        Direction::InputGradient => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ],
        ),
        Direction::WeightGradient => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
        ),
    }
}

/// A tensor of [outer, channels, height, width], channels side by side in memory.
fn tensor(uid: i64, data: DataType, dims: [usize; 4]) -> Result<Descriptor> {
    let [_, c, h, w] = dims;
    let strides = [h * w * c, 1, w * c, c].map(|v| v as i64);
    let t = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    t.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[data])?;
    t.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Type::CUDNN_TYPE_INT64, &dims.map(|v| v as i64))?;
    t.set(Name::CUDNN_ATTR_TENSOR_STRIDES, Type::CUDNN_TYPE_INT64, &strides)?;
    t.set(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Type::CUDNN_TYPE_INT64, &[uid])?;
    t.set(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Type::CUDNN_TYPE_INT64, &[16_i64])?;
    t.finish()?;
    Ok(t)
}

struct Descriptor(sys::cudnnBackendDescriptor_t);

// SAFETY: a descriptor is plain memory that is read only, once it is finished.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    fn new(kind: Kind) -> Result<Self> {
        let mut made = null_mut();
        // SAFETY: the pointer is valid to write to.
        let status = unsafe { sys::cudnnBackendCreateDescriptor(kind, &mut made) };
        check("making a descriptor", status)?;
        Ok(Descriptor(made))
    }

    /// Sets an attribute; `kind` says what `values` are.
    fn set<T>(&self, name: Name, kind: Type, values: &[T]) -> Result<()> {
        let (count, from) = (values.len() as i64, values.as_ptr().cast());
        // SAFETY: as many values as are said; every caller passes the type that `kind` names.
        let status = unsafe { sys::cudnnBackendSetAttribute(self.0, name, kind, count, from) };
        check("describing an operation", status)
    }

    /// Reads an attribute and says how many values there were, at most as many as fit.
    fn get<T>(&self, name: Name, kind: Type, values: &mut [T]) -> Result<usize> {
        let (mut count, room) = (0_i64, values.len() as i64);
        let to = values.as_mut_ptr().cast();
        // SAFETY: there is room for as many values as are asked for; the type is as above.
        let status =
            unsafe { sys::cudnnBackendGetAttribute(self.0, name, kind, room, &mut count, to) };
        check("asking about an operation", status)?;
        Ok(count.clamp(0, room) as usize)
    }

    fn finish(&self) -> Result<()> {
        // SAFETY: the descriptor was made by cuDNN.
        check("finishing a descriptor", unsafe { sys::cudnnBackendFinalize(self.0) })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by cuDNN, destroyed only here.
        unsafe { sys::cudnnBackendDestroyDescriptor(self.0) };
    }
}
