//! Before the first batch: an algorithm for every convolution.

use super::State;
use crate::cuda::convolution::{Convolution, Places};
use crate::cuda::cudnn::Problem;
use crate::{GradientWrite, Graph, Node, Op, Result, Shape};

impl State {
    /// Prepares the convolutions. Zeros are faster than numbers, so it is numbers that they are
    /// measured over.
    pub(super) fn choose_algorithms(&mut self, graph: &Graph) -> Result<()> {
        self.bind()?;
        let values = self.memory.arena.len() / self.cuda.precision().bytes();
        let arena = self.cuda.pointer(&self.memory.arena);
        self.kernels().noise(values, arena)?;
        self.parameters.fill(self.kernels())?;
        for (i, node) in graph.nodes().iter().enumerate() {
            let convolution = self.prepare(i, node, graph)?;
            self.convolutions.push(convolution);
        }
        let choices = &self.cuda.shared.choices;
        choices.lock().unwrap_or_else(|e| e.into_inner()).keep();
        self.parameters.clear()
    }

    fn prepare(&mut self, i: usize, node: &Node, graph: &Graph) -> Result<Option<Convolution>> {
        let Some((read, window)) = node.convolution(graph) else {
            return Ok(None);
        };
        let pictures = node.inputs[0].index() == 0 && matches!(node.op, Op::Conv { .. });
        let channels = if pictures { self.input_channels } else { read.channels };
        let problem = Problem {
            batch: self.batch(),
            input: Shape::new(read.height, read.width, channels),
            used: read.channels,
            output: node.shape,
            window,
            precision: self.cuda.precision(),
        };
        let x = node.inputs[0].index();
        let dx = match self.training.writes[i][0] {
            GradientWrite::Skip => 0,
            _ => self.gradient(x),
        };
        let places = Places {
            x: self.value(x),
            w: self.parameters.matrix(node.parameters[0]),
            y: self.before_norm(i, node),
            dx,
            dw: self.parameters.matrix_gradient(node.parameters[0]),
            dy: self.gradient(i),
            accumulate: self.training.writes[i][0] == GradientWrite::Accumulate,
        };
        Convolution::new(&self.cuda, problem, &places, &mut self.workspaces).map(Some)
    }
}
