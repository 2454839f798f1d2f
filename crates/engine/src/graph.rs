//! A graph of layers, built once, front to back; each layer's output shape is inferred as it is
//! added.

use std::fmt;

use crate::error::{Error, Result};
use crate::ops::Op;
use crate::parameters::{Initial, Parameter, Role};

/// The extent of one picture's activations; the batch is fixed later, by the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels, contiguous in memory.
    pub channels: usize,
}

impl Shape {
    /// A shape from its three extents.
    pub fn new(height: usize, width: usize, channels: usize) -> Self {
        Shape { height, width, channels }
    }

    /// Values per picture.
    pub fn len(&self) -> usize {
        self.pixels() * self.channels
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places per picture.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}

/// A window that slides over a picture: [rows, columns] each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its extent.
    pub kernel: [usize; 2],
    /// How far it moves.
    pub stride: [usize; 2],
    /// How far it reaches beyond each edge.
    pub padding: [usize; 2],
}

impl Window {
    /// A square window.
    pub fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Window { kernel: [kernel; 2], stride: [stride; 2], padding: [padding; 2] }
    }

    /// How many places it stops at along each axis.
    pub(crate) fn places(&self, layer: &str, input: Shape) -> Result<[usize; 2]> {
        let extent = [input.height, input.width];
        let mut places = [0; 2];
        for axis in 0..2 {
            let room = extent[axis] + 2 * self.padding[axis];
            if self.stride[axis] == 0 || self.kernel[axis] == 0 || room < self.kernel[axis] {
                let [h, w] = self.kernel;
                let expected = format!("at least a {h}×{w} window with a stride of 1 or more");
                return Err(Error::shape(layer, expected, input));
            }
            places[axis] = (room - self.kernel[axis]) / self.stride[axis] + 1;
        }
        Ok(places)
    }
}

/// A convolution's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvSpec {
    /// Output channels.
    pub out: usize,
    /// Kernel, stride and padding.
    pub window: Window,
    /// Whether a bias is added.
    pub bias: bool,
}

impl ConvSpec {
    /// A square kernel without bias.
    pub fn square(out: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        ConvSpec { out, window: Window::square(kernel, stride, padding), bias: false }
    }

    /// The same with a bias.
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }
}

/// Batch norm's settings; the defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// Added to the variance.
    pub epsilon: f32,
    /// The share of the new statistics in the running ones.
    pub momentum: f32,
}

impl Default for Norm {
    fn default() -> Self {
        Norm { epsilon: 1e-5, momentum: 0.1 }
    }
}

/// Which layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Its place in the order of execution.
    pub fn index(self) -> usize {
        self.0
    }
}

/// One layer.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// Where its inputs come from.
    pub inputs: Vec<NodeId>,
    /// What it gives, per picture.
    pub shape: Shape,
    /// Its parameters, as places in [`Graph::parameters`].
    pub parameters: Vec<usize>,
}

/// Layers in the order they run.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    parameters: Vec<Parameter>,
    taps: Vec<(String, NodeId)>,
    output: Option<NodeId>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Graph::default()
    }

    /// Names the graph's result.
    pub fn output(&mut self, x: NodeId) {
        self.output = Some(x);
    }

    /// Gives a layer a second name under which its output can be asked for (conv1 … conv5, fc).
    pub fn tap(&mut self, name: &str, x: NodeId) {
        self.taps.push((name.into(), x));
    }

    /// The graph that ends at a layer: what was added after it is left out, and the layer is the
    /// result.
    pub fn up_to(&self, last: NodeId) -> Graph {
        let nodes: Vec<Node> = self.nodes[..=last.0].to_vec();
        let used = nodes.iter().flat_map(|n| &n.parameters).max();
        Graph {
            parameters: self.parameters[..used.map_or(0, |p| p + 1)].to_vec(),
            taps: (self.taps.iter().filter(|(_, id)| *id <= last).cloned()).collect(),
            output: Some(last),
            nodes,
        }
    }

    /// The layers, in the order they run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One layer.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// All parameters, in the order their layers were added.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The result: the layer named so, else the last one.
    pub fn output_node(&self) -> NodeId {
        self.output.unwrap_or(NodeId(self.nodes.len() - 1))
    }

    /// The named taps.
    pub fn taps(&self) -> &[(String, NodeId)] {
        &self.taps
    }

    /// A layer by its tap's name or its own.
    pub fn find(&self, name: &str) -> Result<NodeId> {
        let tap = self.taps.iter().find(|(n, _)| n == name).map(|(_, id)| *id);
        let own = || self.nodes.iter().position(|n| n.name == name).map(NodeId);
        tap.or_else(own).ok_or_else(|| {
            let taps = self.taps.iter().map(|(n, _)| n.as_str());
            let nodes = self.nodes.iter().map(|n| n.name.as_str());
            Error::UnknownLayer {
                name: name.into(),
                known: taps.chain(nodes).collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// A layer's output, per picture.
    pub fn shape(&self, id: NodeId) -> Shape {
        self.nodes[id.0].shape
    }

    /// Multiplications and additions of a training step over one picture, in convolutions and linear
    /// layers: a forward pass, and as much again for the input's gradient and for the weights'; but
    /// the first layers need no gradient of the pictures.
    pub fn training_flops(&self) -> u64 {
        let passes = |n: &Node| if n.inputs.first() == Some(&NodeId(0)) { 2 } else { 3 };
        self.nodes.iter().map(|n| passes(n) * self.flops_of(n)).sum()
    }

    fn flops_of(&self, node: &Node) -> u64 {
        let multiplied = node.convolution(self).map_or(0, |(input, window)| {
            let [kh, kw] = window.kernel;
            node.shape.len() * kh * kw * input.channels
        });
        2 * multiplied as u64
    }

    /// A layer without weights that does what another one does, of an input of that one's shape.
    pub fn copy_layer(&mut self, name: &str, other: &Node, inputs: &[NodeId]) -> Result<NodeId> {
        Error::refuse(!other.parameters.is_empty(), || {
            format!("{name}: {} has parameters of its own", other.name)
        })?;
        self.push(name, other.op, inputs.to_vec(), other.shape)
    }

    pub(crate) fn push(
        &mut self,
        name: &str,
        op: Op,
        inputs: Vec<NodeId>,
        shape: Shape,
    ) -> Result<NodeId> {
        if self.nodes.iter().any(|n| n.name == name) {
            return Err(Error::DuplicateName(name.into()));
        }
        self.nodes.push(Node { name: name.into(), op, inputs, shape, parameters: vec![] });
        Ok(NodeId(self.nodes.len() - 1))
    }

    pub(crate) fn parameter(
        &mut self,
        id: NodeId,
        layer: &str,
        name: &str,
        shape: &[usize],
        initial: Initial,
        role: Role,
    ) {
        self.nodes[id.0].parameters.push(self.parameters.len());
        self.parameters.push(Parameter {
            name: format!("{layer}.{name}"),
            shape: shape.into(),
            initial,
            role,
        });
    }
}
