//! The last layer's output and its gradient in f32, for losses; and what an inference gives.

use cudarc::driver::CudaSlice;

use super::State;
use crate::cuda::Doing;
use crate::{GradientWrite, Graph, Node, Result};

impl State {
    /// The f32 output, for a layer that is the graph's result and can write it unrounded.
    pub(super) fn wide_output(&self, i: usize, graph: &Graph) -> u64 {
        if graph.output_node().index() == i { self.part_of(&self.output) } else { 0 }
    }

    /// The result in f32, unless its layer has written it so itself.
    pub(super) fn take_output(&self, graph: &Graph) -> Result<()> {
        let output = graph.output_node();
        if graph.node(output).op.is_wide() {
            return Ok(());
        }
        let to = self.part_of(&self.output);
        let from = self.value(output.index());
        self.kernels().widen(from, self.output_len(), to)
    }

    /// The output's gradient in the precision of activations.
    pub(super) fn give_gradient(&self, graph: &Graph) -> Result<()> {
        let output = graph.output_node();
        if self.takes_wide_gradient(graph, output.index()) {
            return Ok(());
        }
        let from = self.part_of(&self.output_gradient);
        let to = self.gradient(output.index());
        self.kernels().narrow(from, self.output_len(), to)
    }

    /// Whether a layer reads the loss's gradient itself, unrounded: a result that is normalised,
    /// and that no layer reads.
    pub(super) fn takes_wide_gradient(&self, graph: &Graph, i: usize) -> bool {
        let reads = |n: &Node| n.inputs.iter().any(|x| x.index() == i);
        let is_result = graph.output_node().index() == i && !graph.nodes().iter().any(reads);
        is_result
            && graph.nodes()[i].op.is_wide()
            && self.training.writes[i][0] != GradientWrite::Skip
    }

    /// The result of an inference, as much of it as was asked for.
    pub(super) fn read_inferred(&self, graph: &Graph, output: &mut [f32]) -> Result<()> {
        let node = graph.output_node();
        if !graph.node(node).op.is_wide() {
            let from = self.at(&self.inference.value[node.index()]);
            let to = self.part_of(&self.output);
            self.kernels().widen(from, output.len(), to)?;
        }
        let all: &CudaSlice<f32> = self.output.memory()?;
        let view = all.slice(..output.len());
        self.cuda.stream().memcpy_dtoh(&view, output).doing("reading features")
    }
}
