//! A planned graph on a device, with its parameters, their gradients and the optimiser's state.
//!
//! A network holds one or more passes: activations and gradients of so many batches, over the same
//! weights. The passes' weight gradients are added up by the optimiser, in the passes' order.
//! Inputs, outputs and their gradients stay on the device, so that networks chain: one's output is
//! the next one's input, and back goes the gradient.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::{Parts, both, either};
use crate::batch::DeviceLoader;
use crate::buffer::of_another_device;
use crate::cpu::CpuNetwork;
use crate::cuda::CudaNetwork;
use crate::graph::{Graph, NodeId};
use crate::stream::Stream;
use crate::{Buffer, Error, Optimiser, Parameter, ParameterGroup, Plan, Result, Scalar};

/// How a network is to be built.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Rows (pictures) in a pass, and at most in an inference batch.
    pub batch: usize,
    /// How many training passes it holds at once.
    pub passes: usize,
    /// Layers whose outputs are kept, beside the result's.
    pub keep: Vec<NodeId>,
    /// Whether the gradient of the input is computed too.
    pub input_gradient: bool,
    /// Whether batch norm's statistics are those of all processes' rows, where several take a step
    /// together, rather than of each one's own.
    pub sync_norm: bool,
    /// How weights move.
    pub optimiser: Optimiser,
    /// Which parameters it treats alike.
    pub groups: fn(&Parameter) -> ParameterGroup,
}

impl NetworkOptions {
    /// A batch size, one pass, nothing kept, and plain SGD over all parameters alike.
    pub fn new(batch: usize) -> Self {
        NetworkOptions {
            batch,
            passes: 1,
            keep: vec![],
            input_gradient: false,
            sync_norm: false,
            optimiser: Optimiser::sgd(),
            groups: ParameterGroup::all_alike,
        }
    }

    /// With another optimiser.
    pub fn with_optimiser(self, optimiser: Optimiser) -> Self {
        NetworkOptions { optimiser, ..self }
    }

    /// So many passes.
    pub fn with_passes(self, passes: usize) -> Self {
        NetworkOptions { passes, ..self }
    }

    /// With the gradient of the input.
    pub fn with_input_gradient(self) -> Self {
        NetworkOptions { input_gradient: true, ..self }
    }

    /// Bytes that a network of a graph will hold on a device of f32 numbers, but for its working
    /// memory; known before anything is built.
    pub fn memory_bytes(&self, graph: &Graph) -> Result<usize> {
        let training = Plan::training(graph, self)?.arena;
        let arena = training.max(Plan::inference(graph, self)?.arena);
        let parameters: usize = graph.parameters().iter().map(Parameter::len).sum();
        let output = self.batch * graph.shape(graph.output_node()).len();
        let passes = self.passes * (arena + parameters + 2 * output);
        Ok(4 * (passes + (1 + self.optimiser.slots()) * parameters))
    }
}

/// Which of a network's tensors, one per parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensors {
    /// Weights and statistics.
    Values,
    /// A slot of the optimiser's state, of as many as [`Optimiser::slots`]; statistics have none
    /// (an empty tensor).
    Slot(usize),
    /// Gradients of the last backward passes, added up; statistics have none (an empty tensor).
    Gradients,
}

/// What a pass reads.
#[derive(Clone)]
pub enum Input<'a> {
    /// Views of the step's batch.
    Views {
        /// The batch.
        batch: &'a DeviceLoader,
        /// Which of its views.
        views: Range<usize>,
    },
    /// As many rows of a matrix on the device as the pass has, from this one on.
    Rows {
        /// The matrix.
        rows: &'a Buffer,
        /// The first row.
        first: usize,
    },
}

impl<'a> Input<'a> {
    /// A whole matrix.
    pub fn rows(rows: &'a Buffer) -> Self {
        Input::Rows { rows, first: 0 }
    }
}

/// A network of the CPU's or of a GPU's.
pub(crate) type NetworkParts = Parts<Box<CpuNetwork>, Box<CudaNetwork>>;

/// A graph on a device.
pub struct Network {
    backend: NetworkParts,
    graph: Arc<Graph>,
    batch: usize,
    slots: usize,
    /// Of each pass, whether its memory holds what the way back reads.
    trained: Vec<bool>,
}

impl Network {
    /// A device's own.
    pub(crate) fn new(backend: NetworkParts, graph: Arc<Graph>, options: &NetworkOptions) -> Self {
        let (batch, slots) = (options.batch, options.optimiser.slots());
        Network { backend, graph, batch, slots, trained: vec![false; options.passes] }
    }

    /// The graph it runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Rows in a pass.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Training passes it holds at once.
    pub fn passes(&self) -> usize {
        self.trained.len()
    }

    /// Bytes of device memory it holds.
    pub fn memory_bytes(&self) -> usize {
        either!(&self.backend, network => network.memory_bytes())
    }

    /// Slots of the optimiser's state.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Values of one row of its output.
    pub fn features(&self) -> usize {
        self.graph().shape(self.graph().output_node()).len()
    }

    /// Trains parameters by other groups from the next update on: what is frozen in them keeps its
    /// bits, and its state.
    pub fn regroup(&mut self, groups: &dyn Fn(&Parameter) -> ParameterGroup) -> Result<()> {
        either!(&mut self.backend, network => network.regroup(groups))
    }

    /// Draws the initial parameters and clears the optimiser's state. The seed decides dropout's
    /// masks, too.
    pub fn initialise(&mut self, seed: u64) -> Result<()> {
        either!(&mut self.backend, network => network.seed_dropout(seed));
        let (parameters, slots) = (self.graph().parameters().to_vec(), self.slots());
        draw(&parameters, slots, seed, |which, index, values| self.write(which, index, values))
    }

    /// Runs a full batch forwards in training mode: batch statistics, running ones updated, dropout
    /// drawn for the stream's step.
    pub fn forward(&mut self, stream: &mut Stream, pass: usize, input: Input) -> Result<()> {
        self.check_pass(pass)?;
        check_input(&self.graph, self.batch, &input)?;
        self.trained[pass] = false;
        both!(&mut self.backend, &mut stream.backend, network, stream => network.forward(stream, pass, input))?;
        self.trained[pass] = true;
        Ok(())
    }

    /// The results of the last passes, one after the other.
    pub fn output(&self) -> &Buffer {
        either!(&self.backend, network => network.output())
    }

    /// The result of one pass, for another network to read.
    pub fn output_of(&self, pass: usize) -> Input<'_> {
        Input::Rows { rows: self.output(), first: pass * self.batch() }
    }

    /// The results of the last passes, and where the loss writes their gradients.
    pub fn output_and_gradient(&mut self) -> (&Buffer, &mut Buffer) {
        either!(&mut self.backend, network => network.output_and_gradient())
    }

    /// Computes the gradients of a pass from its output's. It follows that pass forwards; other
    /// passes may have come in between, and before any but the first an inference.
    pub fn backward(&mut self, stream: &mut Stream, pass: usize) -> Result<()> {
        self.check_pass(pass)?;
        match self.trained[pass] {
            true => match (&mut self.backend, &mut stream.backend) {
                (Parts::Cpu(network), _) => network.backward(pass),
                (Parts::Cuda(network), Parts::Cuda(stream)) => network.backward(stream, pass),
                (Parts::Cuda(_), Parts::Cpu(_)) => Err(of_another_device()),
            },
            false => Err(Error::Plan(format!(
                "backward of pass {pass} needs that pass forwards before it, in training mode"
            ))),
        }
    }

    /// The gradients of the passes' inputs, one after the other, where the network was built to
    /// compute them.
    pub fn input_gradient(&self) -> Result<&Buffer> {
        let why = "the gradient of the pictures was not asked for when the network was built";
        either!(&self.backend, network => network.input_gradient())
            .ok_or_else(|| Error::Plan(why.into()))
    }

    /// Moves the weights along the gradients of all passes, and of all processes that take the
    /// step, at the stream's learning rate, unless the step's loss is not a finite number: then
    /// weights stay, and the running statistics become again what they were after the last update.
    pub fn update(&mut self, stream: &mut Stream) -> Result<()> {
        both!(&mut self.backend, &mut stream.backend, network, stream => network.update(stream))
    }

    /// Moves weights and statistics towards another network's of the same graph (an exponential
    /// moving average): own ← m · own + (1 − m) · other, with m a schedule's; unless the step's
    /// loss is not a finite number, as above.
    pub fn follow(&mut self, stream: &mut Stream, other: &Network, m: Scalar) -> Result<()> {
        let (own, others) = (self.graph().parameters(), other.graph().parameters());
        Error::refuse(own != others, || {
            "a network follows one of the same parameters only".into()
        })?;
        match (&mut self.backend, &mut stream.backend, &other.backend) {
            (Parts::Cpu(own), Parts::Cpu(stream), Parts::Cpu(other)) => {
                own.follow(stream, other, m)
            }
            (Parts::Cuda(own), Parts::Cuda(stream), Parts::Cuda(other)) => {
                own.follow(stream, other, m)
            }
            _ => Err(of_another_device()),
        }
    }

    /// Runs up to a batch of rows in inference mode: running statistics, no dropout. `output`
    /// (count × features) takes the result. It happens in the memory of pass 0, which must go
    /// forwards again before it goes backwards.
    pub fn infer(&mut self, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let count = count_pictures(&self.graph, self.batch, pixels)?;
        Error::check_length("features to infer", count * self.features(), output.len())?;
        self.trained[0] = false;
        either!(&mut self.backend, network => network.infer(count, pixels, output))
    }

    /// The output of a layer named in [`NetworkOptions::keep`] after the last pass over `count`
    /// pictures.
    pub fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>> {
        either!(&self.backend, network => network.kept(node, count))
    }

    /// One tensor, in PyTorch's layout.
    pub fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        either!(&self.backend, network => network.read(which, parameter))
    }

    /// Sets one tensor, in PyTorch's layout.
    pub fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        either!(&mut self.backend, network => network.write(which, parameter, values))
    }

    fn check_pass(&self, pass: usize) -> Result<()> {
        Error::refuse(pass >= self.passes(), || {
            format!("pass {pass} of a network with {}", self.passes())
        })
    }
}

/// Writes the initial parameters, and zeros to the optimiser's slots.
fn draw(
    parameters: &[Parameter],
    slots: usize,
    seed: u64,
    mut write: impl FnMut(Tensors, usize, &[f32]) -> Result<()>,
) -> Result<()> {
    for (index, p) in parameters.iter().enumerate() {
        write(Tensors::Values, index, &p.initial_values(seed, index))?;
        if p.role == crate::Role::Weight {
            for slot in 0..slots {
                write(Tensors::Slot(slot), index, &vec![0.0; p.len()])?;
            }
        }
    }
    Ok(())
}

/// That a pass is given as many rows or views as it has.
fn check_input(graph: &Graph, batch: usize, input: &Input) -> Result<()> {
    match input {
        Input::Rows { rows, first } => {
            let one = graph.nodes()[0].shape.len();
            let there = (rows.len() / one.max(1)).saturating_sub(*first);
            match there >= batch && rows.len() % one == 0 {
                true => Ok(()),
                false => Err(Error::Length {
                    what: format!("values of rows of {one} for a pass, from row {first} on"),
                    expected: (first + batch) * one,
                    got: rows.len(),
                }),
            }
        }
        Input::Views { batch: from, views } => {
            Error::refuse(views.end > from.views, || {
                format!("view {} of batches with {}", views.end - 1, from.views)
            })?;
            Error::check_length("rows of a training batch", batch, views.len() * from.batch)
        }
    }
}

/// How many pictures `pixels` holds: whole ones, at least one, and no more than a batch.
fn count_pictures(graph: &Graph, batch: usize, pixels: &[f32]) -> Result<usize> {
    let one = graph.nodes()[0].shape.len();
    let count = pixels.len() / one;
    Error::check_length("pixels of a batch", count.max(1) * one, pixels.len())?;
    if count > batch {
        return Err(Error::Length {
            what: format!("pictures to infer (1 to {batch})"),
            expected: batch,
            got: count,
        });
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_fails_while_parameters_are_drawn_says_so() {
        let mut g = Graph::new();
        let x = g.input(1, 1, 2);
        g.linear("fc", x, 3, true).unwrap();
        let lost = || Err(Error::Device("an illegal memory access".into()));
        for failing in 0..4 {
            let mut written = 0;
            let drawn = draw(g.parameters(), 1, 0, |_, _, _| {
                written += 1;
                if written > failing { lost() } else { Ok(()) }
            });
            assert!(matches!(drawn, Err(Error::Device(_))), "write {failing}: {drawn:?}");
        }
        assert!(draw(g.parameters(), 1, 0, |_, _, _| Ok(())).is_ok());
    }
}
