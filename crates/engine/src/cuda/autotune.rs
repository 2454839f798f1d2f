//! Autotuning: of cuDNN's ways to compute a convolution in one direction, and ours where there is
//! one, the fastest.
//!
//! Candidates are those that give the same bits every time. They are measured in recordings, since
//! call by call the host is what would be measured. Small tasks take the first that runs. A choice
//! is made once and kept, so that two networks compute the same bits.

use super::Cuda;
use super::autotune_cache::Choice;
use super::bound_stream::BoundStream;
use super::cudnn::{Algorithm, Call, Descriptors, Direction, Problem};
use super::cudnn_graph::{Operation, Plan};
use super::memory::Workspace;
use crate::Result;

/// What wants more working memory than this is left aside.
const WORKSPACE_LIMIT: usize = 1 << 30;

/// Multiplications and additions from which on measuring pays.
const WORTH_MEASURING: usize = 100_000_000;

/// Calls in a recording that is measured.
const CALLS: usize = 6;

/// Milliseconds that a single launch may take by itself.
const LAUNCH: f32 = 0.01;

/// What is to be computed: all that a choice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) problem: Problem,
    pub(super) direction: Direction,
    /// Whether the result is added to what is there.
    pub(super) accumulate: bool,
}

/// A way to do a task.
pub(super) struct Tuned {
    task: Task,
    descriptors: Descriptors,
    by: By,
}

enum By {
    /// A kernel of ours, with so many bytes of working memory.
    Ours(usize),
    Algorithm(Algorithm),
    Plan(Box<Plan>),
}

impl Tuned {
    /// The way for a task: the one chosen before, else the fastest over the tensors of `call`,
    /// whose result is lost. Nothing if cuDNN has none.
    pub(super) fn choose(
        cuda: &Cuda,
        task: Task,
        call: Call,
        scratch: &mut Workspace,
    ) -> Result<Option<Tuned>> {
        let choices = &cuda.shared.choices;
        let mut choices = choices.lock().unwrap_or_else(|e| e.into_inner());
        match choices.get(&task) {
            Some(Choice::None) => return Ok(None),
            // What was kept on disk is tried before it is trusted.
            Some(choice) => {
                if let Some(way) = Tuned::of(cuda, task, choice)?
                    && way.tried(cuda, call, scratch)?.is_some()
                {
                    return Ok(Some(way));
                }
                choices.forget(&task);
            }
            None => {}
        }
        let way = Tuned::fastest(cuda, task, call, scratch)?;
        choices.set(&task, way.as_ref().map_or(Choice::None, Tuned::choice));
        Ok(way)
    }

    fn of(cuda: &Cuda, task: Task, choice: Choice) -> Result<Option<Tuned>> {
        let by = match choice {
            Choice::None => None,
            Choice::Ours => ours(&*cuda.bound_stream()?, &task),
            Choice::Algorithm(a) => Some(By::Algorithm(a)),
            Choice::Plan(name) => Operation::new(&cuda.bound_stream()?, &task)
                .ok()
                .and_then(|o| o.named(name))
                .map(|plan| By::Plan(Box::new(plan))),
        };
        by.map(|by| Tuned::by(task, by)).transpose()
    }

    fn by(task: Task, by: By) -> Result<Tuned> {
        Ok(Tuned { task, descriptors: Descriptors::new(&task.problem)?, by })
    }

    fn choice(&self) -> Choice {
        match &self.by {
            By::Ours(_) => Choice::Ours,
            By::Algorithm(a) => Choice::Algorithm(*a),
            By::Plan(plan) => Choice::Plan(plan.name),
        }
    }

    fn fastest(
        cuda: &Cuda,
        task: Task,
        call: Call,
        scratch: &mut Workspace,
    ) -> Result<Option<Tuned>> {
        let (p, stream) = (&task.problem, cuda.bound_stream()?);
        let [kh, kw] = p.window.kernel;
        let work = p.batch * p.output.len() * kh * kw * p.input.channels;
        let descriptors = Descriptors::new(p)?;
        let algorithms = stream.cudnn.algorithms(p, &descriptors, task.direction);
        let mut candidates: Vec<By> = vec![];
        candidates.extend(ours(&stream, &task));
        candidates.extend(algorithms.into_iter().map(By::Algorithm));
        let measured = work >= WORTH_MEASURING;
        if measured && let Ok(operation) = Operation::new(&stream, &task) {
            let plans = operation.plans().into_iter();
            candidates.extend(plans.map(|plan| By::Plan(Box::new(plan))));
        }
        let mut best: Option<(f32, Tuned)> = None;
        for by in candidates {
            let way = Tuned::by(task, by)?;
            // What cuDNN offers is not always what it can do.
            let Some(call) = way.tried(cuda, call, scratch)? else {
                continue;
            };
            if !measured {
                return Ok(Some(way));
            }
            let limit = best.as_ref().map_or(f32::INFINITY, |(least, _)| 1.3 * least);
            let time = way.time(cuda, &call, limit)?;
            if best.as_ref().is_none_or(|(least, _)| time < *least) {
                best = Some((time, way));
            }
        }
        Ok(best.map(|(_, way)| way))
    }

    /// Runs it once, with the working memory it needs; gives the call with that memory in it, or
    /// nothing if it fails.
    fn tried(&self, cuda: &Cuda, call: Call, scratch: &mut Workspace) -> Result<Option<Call>> {
        if self.workspace() > WORKSPACE_LIMIT {
            return Ok(None);
        }
        scratch.reserve(cuda, self.workspace(), "a convolution's working memory")?;
        let workspace = scratch.pointer(cuda);
        let call = Call { workspace, ..call };
        Ok(self.run(&*cuda.bound_stream()?, &call).is_ok().then_some(call))
    }

    /// Milliseconds, without the host's part; what takes longer than `limit` is not measured
    /// further.
    fn time(&self, cuda: &Cuda, call: &Call, limit: f32) -> Result<f32> {
        let recorder = cuda.recorder()?;
        let once = recorder.record(|| self.run(&recorder, call));
        // There are kernels that cannot be recorded.
        let Ok(mut once) = once else {
            return Ok(f32::INFINITY);
        };
        // The launch itself takes a few microseconds of a single run.
        let once = once.time_once(cuda)?;
        if once > limit + LAUNCH {
            return Ok(once);
        }
        let many = || (0..CALLS).try_for_each(|_| self.run(&recorder, call));
        Ok(recorder.record(many)?.time(cuda)? / CALLS as f32)
    }

    /// Bytes of working memory it needs.
    pub(super) fn workspace(&self) -> usize {
        match &self.by {
            By::Ours(workspace) => *workspace,
            By::Algorithm(a) => a.workspace,
            By::Plan(plan) => plan.workspace,
        }
    }

    /// Gives the work to a stream.
    pub(super) fn run(&self, stream: &BoundStream, call: &Call) -> Result<()> {
        let Task { direction, accumulate, .. } = self.task;
        match &self.by {
            By::Ours(_) => stream.kernels.stem(&self.task.problem, direction, call),
            By::Algorithm(a) => stream.cudnn.run(&self.descriptors, direction, a, call, accumulate),
            By::Plan(plan) => plan.run(stream, direction, call),
        }
    }
}

/// Our own way, if we have one.
fn ours(stream: &BoundStream, task: &Task) -> Option<By> {
    let (k, direction) = (&stream.kernels, task.direction);
    k.stem_does(&task.problem, direction).then(|| By::Ours(k.stem_workspace(direction)))
}
