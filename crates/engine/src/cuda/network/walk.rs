//! The GPU's way through the layers: which stream each one's work goes to.
//!
//! Where two convolutions in a row read the same, as in a residual block with a shortcut, the
//! second goes beside the first: alone, it does not fill the chip. Backwards, nobody waits for the
//! gradient of a weight but the optimiser, so these are computed beside the rest: a convolution
//! fills the GPU with multiplications, a batch norm with reads and writes, and small layers with
//! neither.

use cudarc::driver::CudaEvent;

use super::gradient_sums::GradientSums;
use super::{LAG, State};
use crate::cuda::Doing;
use crate::cuda::bound_stream::{Pending, SideStream};
use crate::cuda::profile::Part;
use crate::cuda::stream::GpuStream;
use crate::walk::{self, Layer, LayerIo, Layers, Pass};
use crate::{Graph, Node, Op, Result};

/// A walk over a network's layers.
pub(crate) struct Walk<'a> {
    pub(super) state: &'a State,
    pub(super) beside: SideStream<'a>,
    /// Sums over processes, in a backward pass of several.
    sums: Option<GradientSums<'a>>,
}

impl State {
    pub(super) fn io(&self, layer: &Layer) -> LayerIo<u64> {
        let plan = match layer.pass {
            Pass::Forward | Pass::Backward => &self.training,
            Pass::Infer(_) => &self.inference,
        };
        let (value, gradient) = (|i| self.output_in(plan, i), |i| self.gradient(i));
        layer.io(&self.training, self.batch(), value, gradient)
    }

    pub(super) fn walk(&self) -> Walk<'_> {
        Walk { state: self, beside: SideStream::new(&self.stream, &self.side), sums: None }
    }

    /// Forwards in training, and the result in f32.
    pub(super) fn forward_pass(&self, graph: &Graph) -> Result<()> {
        walk::forwards(&mut self.walk(), graph, Pass::Forward)?;
        self.part(Part::Rest, || self.take_output(graph))
    }

    /// Always over a whole batch: what a smaller one leaves of the pictures before is computed too
    /// and read by nobody, since no layer mixes pictures here.
    pub(super) fn infer_pass(&self, graph: &Graph) -> Result<()> {
        let pass = Pass::Infer(self.batch());
        walk::forwards(&mut self.walk(), graph, pass)
    }

    /// The gradients, from the last layer to the first. What is still computed beside when all else
    /// has been asked for is left to whoever needs it; and so is what is still summed over
    /// processes, all but the first matrix by the event.
    pub(super) fn backward_pass(&self, graph: &Graph) -> Result<(Pending, Option<CudaEvent>)> {
        self.part(Part::Rest, || self.give_gradient(graph))?;
        let mut walk = self.walk();
        walk.sums = GradientSums::begin(self)?;
        walk::backwards(&mut walk, graph)?;
        let summed = walk.sums.take().map(GradientSums::end).transpose()?;
        if let Some(inputs) = &self.input_gradient {
            let slot = &self.training.gradient[0];
            let (from, to) = (self.at(slot), self.part_of(inputs));
            self.part(Part::Rest, || self.kernels().widen(from, slot.len, to))?;
        }
        Ok((walk.beside.leave(), summed))
    }

    /// What is still computed beside and was not waited for. Events of a recording mean nothing
    /// outside of it; they were waited for at its end.
    pub(super) fn take_pending(&mut self, stream: &GpuStream) -> (Pending, Option<CudaEvent>) {
        let (pending, summed) = (std::mem::take(&mut self.pending), self.summed.take());
        let direct = !self.pending_recorded && !stream.is_recording();
        match direct || self.pending_since == stream.since() {
            true => (pending, summed),
            false => (Pending::new(), None),
        }
    }

    /// Waits for what still reads the activations of the last pass, before they are written to
    /// again; among several processes for all that goes on beside, since norms on the chip are to
    /// be alone there.
    pub(super) fn settle(&mut self, stream: &mut GpuStream) -> Result<()> {
        let (pending, _) = self.take_pending(stream);
        if stream.together().is_some_and(|t| t.nccl.ranks() > 1) {
            stream.join_beside()?;
        }
        SideStream::resume(&self.stream, &self.side, pending).wait_for(0)
    }

    /// Statistics settled and the weights moved: all but the first layer's while that one's
    /// gradient is still computed, or summed over processes.
    pub(super) fn update(&mut self, graph: &Graph, stream: &mut GpuStream) -> Result<()> {
        let (pending, summed) = self.take_pending(stream);
        let inputs = &stream.step_inputs();
        let main = self.stream.clone();
        let mut beside = SideStream::resume(&main, &self.side, pending);
        let p = &self.parameters;
        p.settle_statistics(&main.inner, inputs.flag)?;
        let trained = |n: &Node| n.parameters.iter().any(|i| p.is_matrix(*i));
        let first = graph.nodes().iter().position(trained).unwrap_or(0);
        match (&self.carrier, summed) {
            (None, _) => beside.wait_for(first + 1)?,
            (Some(_), None) => stream.wait_for_carrier()?,
            (Some(_), Some(summed)) => {
                main.inner.wait(&summed).doing("work on two streams")?;
            }
        }
        let end = match graph.nodes()[first].parameters.first() {
            Some(matrix) => p.matrix_end(*matrix),
            None => 0,
        };
        p.update(&main.inner, inputs, end..p.len())?;
        beside.wait_for(0)?;
        stream.wait_for_carrier()?;
        p.update(&main.inner, inputs, 0..end)
    }

    /// The device waits for what is still computed beside, where somebody reads gradients.
    pub(super) fn wait_beside(&self) -> Result<()> {
        // A recording waits for its own.
        if self.pending_recorded {
            return Ok(());
        }
        for (_, done) in &self.pending {
            self.cuda.stream().wait(done).doing("work on two streams")?;
        }
        Ok(())
    }

    /// Whether a layer is a convolution with a norm that reads what the one before it reads, and
    /// nothing else. Its place in memory is free a layer early: what the one before it reads and
    /// writes is needed longer, if it has a gradient.
    pub(super) fn is_beside(&self, i: usize, graph: &Graph) -> bool {
        let normalised = |n: &Node| matches!(n.op, Op::Conv { norm: Some(_), .. });
        let Some([before, node]) = i.checked_sub(1).and_then(|b| graph.nodes().get(b..=i)) else {
            return false;
        };
        let both = normalised(before) && normalised(node) && before.inputs == node.inputs;
        let kept = self.gradient(i - 1) != 0;
        both && kept && self.only.is_none() && !self.is_beside(i - 1, graph)
    }
}

impl Layers for Walk<'_> {
    fn has_gradient(&self, i: usize) -> bool {
        self.state.gradient(i) != 0
    }

    fn visit(&mut self, layer: &Layer) -> Result<()> {
        self.begin(layer)?;
        layer.node.op.layer(|op| op.cuda(self, layer))
    }
}

impl Walk<'_> {
    /// Before a layer, on the way it is on.
    fn begin(&mut self, layer: &Layer) -> Result<()> {
        let (i, graph) = (layer.i, layer.graph);
        match layer.pass {
            Pass::Forward => {
                if self.state.is_beside(i + 1, graph) {
                    let next = Layer { i: i + 1, node: &graph.nodes()[i + 1], ..*layer };
                    let state = self.state;
                    let workspace = state.workspaces[1].pointer(&state.cuda);
                    self.beside.run(i + 1, |stream| {
                        state.convolve((stream, workspace), &next, false, 0)
                    })?;
                }
                if self.state.is_beside(i, graph) { self.beside.wait_for(i) } else { Ok(()) }
            }
            Pass::Backward => {
                if let Some(sums) = &mut self.sums {
                    sums.come_to(i)?;
                }
                self.beside.wait_for(i + LAG + 1)
            }
            Pass::Infer(_) => Ok(()),
        }
    }
}
