//! The gradients, from the last layer to the first.
//!
//! Nobody waits for the gradient of a weight but the optimiser, so these are computed beside the rest: a convolution fills
//! the GPU with multiplications, a batch norm with reads and writes, and small layers with neither.

use super::{LAG, State, bias_parameter, norm_parameters};
use crate::cuda::failed;
use crate::cuda::lane::{Beside, Pending};
use crate::cuda::launch::Gradients;
use crate::cuda::optimisers::StepInputs;
use crate::cuda::profile::Part;
use crate::{GradientWrite, Graph, Node, Norm, Op, Result};

impl State {
    /// What is still computed beside when all else has been asked for is left to whoever needs it.
    pub(super) fn backward_pass(&self, graph: &Graph) -> Result<Pending> {
        let mut beside = Beside::new(&self.lane, &self.side);
        self.backward_layers(graph, &mut beside)?;
        if let Some(inputs) = &self.input_gradient {
            let slot = &self.training.gradient[0];
            let (from, to) = (self.at(slot), self.part_of(inputs));
            self.part(Part::Rest, || self.kernels().widen(from, slot.len, to))?;
        }
        Ok(beside.leave())
    }

    /// The weights moved: all but the first layer's while that one's gradient is still computed.
    pub(super) fn update(&mut self, graph: &Graph, inputs: &StepInputs) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut beside = Beside::resume(&self.lane, &self.side, pending);
        let p = &self.parameters;
        let trained = |n: &Node| n.parameters.iter().any(|i| p.is_matrix(*i));
        let first = graph.nodes().iter().position(trained).unwrap_or(0);
        beside.wait_for(first + 1)?;
        let end = match graph.nodes()[first].parameters.first() {
            Some(matrix) => p.matrix_end(*matrix),
            None => 0,
        };
        let stream = &self.lane.stream;
        p.update(stream, inputs, end..p.len())?;
        beside.wait_for(0)?;
        p.update(stream, inputs, 0..end)
    }

    /// The device waits for what is still computed beside, where somebody reads gradients.
    pub(super) fn wait_beside(&self) -> Result<()> {
        // A recording waits for its own.
        if self.pending_recorded {
            return Ok(());
        }
        for (_, done) in &self.pending {
            let waiting = self.cuda.stream().wait(done);
            waiting.map_err(|e| failed("work on two streams", e))?;
        }
        Ok(())
    }

    fn backward_layers(&self, graph: &Graph, beside: &mut Beside) -> Result<()> {
        self.part(Part::Rest, || self.give_gradient(graph))?;
        for (i, node) in graph.nodes().iter().enumerate().skip(1).rev() {
            beside.wait_for(i + LAG + 1)?;
            self.backward(i, node, graph, beside)?;
        }
        Ok(())
    }

    /// The output's gradient in the precision of activations.
    fn give_gradient(&self, graph: &Graph) -> Result<()> {
        let output = graph.output_node();
        if self.takes_wide_gradient(graph, output.index()) {
            return Ok(());
        }
        let from = self.part_of(&self.output_gradient);
        let to = self.gradient(output.index());
        self.kernels().narrow(from, self.output_len(), to)
    }

    fn backward(&self, i: usize, node: &Node, graph: &Graph, beside: &mut Beside) -> Result<()> {
        let dy = self.gradient(i);
        if dy == 0 {
            return Ok(());
        }
        let trained = matches!(
            node.op,
            Op::Conv { .. } | Op::Linear { .. } | Op::BatchNorm(_)
        );
        if !trained && self.only.is_some_and(|only| only != Part::Rest) {
            return Ok(());
        }
        let k = self.kernels();
        let write = self.training.writes[i][0];
        let accumulate = write == GradientWrite::Accumulate;
        let skip = write == GradientWrite::Skip;
        let from = node.inputs[0].index();
        let (x, y, dx) = (self.value(from), self.value(i), self.gradient(from));
        let (batch, input) = (self.batch(), graph.shape(node.inputs[0]));
        let len = batch * node.shape.len();
        match node.op {
            Op::Conv { norm, relu, .. } => {
                self.part(Part::NormBackward, || match norm {
                    Some(norm) => {
                        self.norm_backward(i, node, norm, self.before_norm(i, node), relu)
                    }
                    None => self.plain_backward(i, node, relu),
                })?;
                self.convolution_backward(i, node, beside)
            }
            Op::Linear { .. } => self.convolution_backward(i, node, beside),
            Op::BatchNorm(norm) => {
                self.part(Part::NormBackward, || {
                    self.norm_backward(i, node, norm, x, false)
                })?;
                match skip {
                    true => Ok(()),
                    false => k.pass_gradient(0, dy, accumulate, len, dx),
                }
            }
            Op::Add => {
                for (input, write) in node.inputs.iter().zip(&self.training.writes[i]).rev() {
                    if *write != GradientWrite::Skip {
                        let accumulate = *write == GradientWrite::Accumulate;
                        let dx = self.gradient(input.index());
                        k.pass_gradient(0, dy, accumulate, len, dx)?;
                    }
                }
                Ok(())
            }
            Op::Relu if !skip => k.pass_gradient(y, dy, accumulate, len, dx),
            Op::MaxPool(window) if !skip => {
                let shapes = [input, node.shape];
                k.max_pool_backward([x, y, dy], shapes, window, batch, accumulate, dx)
            }
            Op::GlobalAvgPool if !skip => {
                k.global_average_backward(dy, input, batch, accumulate, dx)
            }
            Op::Dropout(p) if !skip => {
                k.dropout(dy, i, self.step, p, accumulate, len, dx)
            }
            Op::L2Normalise if !skip => {
                let wide = match self.takes_wide_gradient(graph, i) {
                    true => self.part_of(&self.output_gradient),
                    false => 0,
                };
                k.l2_normalise_backward(x, [dy, wide], batch, input.len(), accumulate, dx)
            }
            _ => Ok(()),
        }
    }

    /// Whether a layer reads the loss's gradient itself, unrounded: a result that is normalised, and that no layer reads.
    fn takes_wide_gradient(&self, graph: &Graph, i: usize) -> bool {
        let is_result = graph.output_node().index() == i && self.readers(graph, i) == 0;
        is_result
            && matches!(graph.nodes()[i].op, Op::L2Normalise)
            && self.training.writes[i][0] != GradientWrite::Skip
    }

    fn readers(&self, graph: &Graph, i: usize) -> usize {
        let reads = |n: &&Node| n.inputs.iter().any(|x| x.index() == i);
        graph.nodes().iter().filter(reads).count()
    }

    /// Through ReLU, residual add and batch norm: the gradient of the layer's output becomes, in place, that of the
    /// values before the norm.
    fn norm_backward(
        &self,
        i: usize,
        node: &Node,
        norm: Norm,
        before: u64,
        relu: bool,
    ) -> Result<()> {
        // Where a residual was added, only the output can tell what the ReLU cut off. Without ReLU it is not kept, and
        // its place may hold something else by now.
        let y = match relu && node.inputs.len() > 1 {
            true => self.value(i),
            false => 0,
        };
        let first = norm_parameters(node);
        let (residual, accumulate) = self.residual_gradient(i, node);
        let gradients = Gradients {
            x: before,
            y,
            dy: self.gradient(i),
            relu,
            dgamma: self.parameters.gradient(first),
            dbeta: self.parameters.gradient(first + 1),
            residual,
            accumulate,
        };
        let (k, t) = (self.kernels(), self.norm_tensors(i, node));
        if let Some(cut) = &self.on_chip[i] {
            let meeting = self.meeting(i, node, true);
            return k.norm_backward_on_chip(cut, norm, &t, meeting, &gradients, self.above(i));
        }
        let (r, s) = (self.reduction(node), self.sums());
        k.norm_backward(&r, norm, &t, &s, &gradients)
    }

    /// Where the second input's gradient goes, 0 if nobody wants it, and whether it is added.
    fn residual_gradient(&self, i: usize, node: &Node) -> (u64, bool) {
        match (node.inputs.get(1), self.training.writes[i].get(1)) {
            (Some(r), Some(write)) if *write != GradientWrite::Skip => (
                self.gradient(r.index()),
                *write == GradientWrite::Accumulate,
            ),
            _ => (0, false),
        }
    }

    /// Through ReLU and residual add of a convolution without norm, in place.
    fn plain_backward(&self, i: usize, node: &Node, relu: bool) -> Result<()> {
        let dy = self.gradient(i);
        let len = self.batch() * node.shape.len();
        if relu {
            self.kernels()
                .pass_gradient(self.value(i), dy, false, len, dy)?;
        }
        match self.residual_gradient(i, node) {
            (0, _) => Ok(()),
            (dr, accumulate) => self.kernels().pass_gradient(0, dy, accumulate, len, dr),
        }
    }

    /// From the gradient of the convolution's own output to those of its bias, weights and input.
    fn convolution_backward(&self, i: usize, node: &Node, beside: &mut Beside) -> Result<()> {
        let convolution = self.convolutions[i].as_ref();
        let convolution = convolution.expect("a convolution was prepared");
        let from = node.inputs[0].index();
        let (x, dy) = (self.value(from), self.gradient(i));
        let dw = self.parameters.matrix_gradient(node.parameters[0]);
        let workspace = self.workspaces[1].pointer(&self.cuda);
        self.part(Part::WeightGradient, || {
            beside.run(i, |lane| {
                if let Some(bias) = bias_parameter(node) {
                    let (r, sums) = (self.reduction(node), self.parameters.gradient(bias));
                    lane.kernels.sums(&r, dy, &self.sums_beside(), sums)?;
                }
                convolution.weight_gradient(lane, workspace, [x, dy], dw)
            })
        })?;
        let write = self.training.writes[i][0];
        if write == GradientWrite::Skip {
            return Ok(());
        }
        let w = self.parameters.matrix(node.parameters[0]);
        let dx = self.gradient(from);
        self.part(Part::InputGradient, || {
            convolution.input_gradient(&self.lane, self.workspace(), [w, dy], dx)
        })
    }
}
