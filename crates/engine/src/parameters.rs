//! The tensors a network owns: weights that are trained and statistics that are not.

use std::ops::Range;

use anchorhood_storage::random::{Draws, Stream};

use crate::{Graph, ParameterGroup};

/// How a parameter begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Every element the same.
    Constant(f32),
    /// Uniform in ±limit.
    Uniform(f32),
}

impl Initial {
    /// PyTorch's default for convolutions, linear layers and their biases: Kaiming uniform with a =
    /// √5, which is uniform in ±1/√fan_in.
    pub fn torch_default(fan_in: usize) -> Self {
        Initial::Uniform(1.0 / (fan_in.max(1) as f32).sqrt())
    }
}

/// What a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Trained by the optimiser.
    Weight,
    /// Running statistics of a batch norm: saved, not trained.
    Statistic,
}

/// One named tensor, in PyTorch's layout (convolutions OIHW, linear layers out × in).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in a checkpoint, as torchvision has it: `layer1.0.conv1.weight`.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// How it begins.
    pub initial: Initial,
    /// What it is for.
    pub role: Role,
}

impl Parameter {
    /// How many values it has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its initial values; `index` is its place in the graph.
    pub fn initial_values(&self, seed: u64, index: usize) -> Vec<f32> {
        let mut values = vec![0.0; self.len()];
        match self.initial {
            Initial::Constant(c) => values.fill(c),
            Initial::Uniform(limit) => {
                Draws::new(seed, Stream::Weights, 0, index as u64)
                    .fill_symmetric(&mut values, limit);
            }
        }
        values
    }
}

/// Where a device keeps a parameter: in the vector of its role, a matrix laid out in a way of the
/// device's own.
pub(crate) struct ParameterPlace<M> {
    pub(crate) range: Range<usize>,
    pub(crate) role: Role,
    pub(crate) name: String,
    pub(crate) matrix: Option<M>,
}

/// Where each parameter that is trained lies, and how it is.
pub(crate) fn grouped<M>(
    places: &[ParameterPlace<M>],
    graph: &Graph,
    groups: &dyn Fn(&Parameter) -> ParameterGroup,
) -> Vec<(Range<usize>, ParameterGroup)> {
    let trained = places.iter().zip(graph.parameters());
    let trained = trained.filter(|(place, _)| place.role == Role::Weight);
    let group = |(place, p): (&ParameterPlace<M>, &Parameter)| (place.range.clone(), groups(p));
    trained.map(group).collect()
}
