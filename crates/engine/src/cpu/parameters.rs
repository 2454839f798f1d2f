//! A network's parameters on the CPU: all weights in one vector, so that the optimiser is one pass,
//! and their layout.
//!
//! Outside, tensors are PyTorch's: convolutions OIHW, linear layers out × in. In here a convolution
//! is HWIO and a linear layer in × out, which is what the kernels read.

use std::ops::Range;

use pulp::Arch;

use super::optimisers::Update;
use crate::parameters::{ParameterPlace, grouped};
use crate::{Error, Graph, NetworkOptions, Parameter, ParameterGroup, Result, Role, Tensors};

pub(super) struct Parameters {
    places: Vec<CpuPlace>,
    pub(super) weights: Vec<f32>,
    pub(super) gradients: Vec<f32>,
    /// The optimiser's state; slots that it does not have are empty.
    slots: [Vec<f32>; 2],
    update: Update,
    /// Running statistics, which every pass forwards moves, and as they were after the last step
    /// whose loss was finite.
    pub(super) statistics: Vec<f32>,
    kept_statistics: Vec<f32>,
}

/// A matrix has output channels, input channels and taps: the inner layout differs.
type CpuPlace = ParameterPlace<[usize; 3]>;

impl Parameters {
    pub(super) fn new(graph: &Graph, options: &NetworkOptions) -> Self {
        let (mut weights, mut statistics) = (0, 0);
        let place = |p: &Parameter| {
            let end = match p.role {
                Role::Weight => &mut weights,
                Role::Statistic => &mut statistics,
            };
            let start = *end;
            *end += p.len();
            CpuPlace {
                range: start..*end,
                role: p.role,
                name: p.name.clone(),
                matrix: match p.shape[..] {
                    [o, i, kh, kw] => Some([o, i, kh * kw]),
                    [o, i] => Some([o, i, 1]),
                    _ => None,
                },
            }
        };
        let places: Vec<CpuPlace> = graph.parameters().iter().map(place).collect();
        let update = Update::new(options.optimiser, grouped(&places, graph, &options.groups));
        let slot = |slot| match slot < options.optimiser.slots() {
            true => vec![0.0; weights],
            false => vec![],
        };
        Parameters {
            places,
            weights: vec![0.0; weights],
            gradients: vec![0.0; weights],
            slots: [slot(0), slot(1)],
            update,
            statistics: vec![0.0; statistics],
            kept_statistics: vec![0.0; statistics],
        }
    }

    /// Where a parameter lies in `weights` and `gradients`, or in `statistics`.
    pub(super) fn range(&self, parameter: usize) -> Range<usize> {
        self.places[parameter].range.clone()
    }

    pub(super) fn weight(&self, parameter: usize) -> &[f32] {
        &self.weights[self.range(parameter)]
    }

    pub(super) fn gradient(&mut self, parameter: usize) -> &mut [f32] {
        let range = self.range(parameter);
        &mut self.gradients[range]
    }

    /// Two neighbouring parameters of a layer (a norm's weight and bias, or its running mean and
    /// variance).
    pub(super) fn pair<'a>(
        &self,
        from: &'a mut [f32],
        first: usize,
    ) -> (&'a mut [f32], &'a mut [f32]) {
        let (a, b) = (self.range(first), self.range(first + 1));
        assert_eq!(a.end, b.start);
        from[a.start..b.end].split_at_mut(a.len())
    }

    pub(super) fn bytes(&self) -> usize {
        let vectors = 2 + self.slots();
        4 * (vectors * self.weights.len() + 2 * self.statistics.len())
    }

    /// Slots of the optimiser's state.
    fn slots(&self) -> usize {
        let kept = |slot: &&Vec<f32>| slot.len() == self.weights.len();
        self.slots.iter().filter(kept).count()
    }

    /// Parameters are trained by other groups from now on.
    pub(super) fn regroup(&mut self, graph: &Graph, groups: &dyn Fn(&Parameter) -> ParameterGroup) {
        let tensors = grouped(&self.places, graph, groups);
        self.update = Update::new(self.update.optimiser(), tensors);
    }

    /// One step of the optimiser; `number` came before.
    pub(super) fn update(&mut self, arch: Arch, rate: f32, number: u64) {
        let [first, second] = &mut self.slots;
        let weights = &mut self.weights;
        self.update.run(arch, rate, number, weights, [first, second], &self.gradients);
    }

    /// What passes have done to the statistics is kept, or undone where the step has failed.
    pub(super) fn settle_statistics(&mut self, failed: bool) {
        match failed {
            true => self.statistics.copy_from_slice(&self.kept_statistics),
            false => self.kept_statistics.copy_from_slice(&self.statistics),
        }
    }

    fn tensor(&self, which: Tensors, place: &CpuPlace) -> &[f32] {
        match (which, place.role) {
            (Tensors::Values, Role::Weight) => &self.weights[place.range.clone()],
            (Tensors::Values, Role::Statistic) => &self.statistics[place.range.clone()],
            (Tensors::Slot(slot), Role::Weight) => match self.slots.get(slot) {
                Some(slot) if !slot.is_empty() => &slot[place.range.clone()],
                Some(_) | None => &[],
            },
            (Tensors::Gradients, Role::Weight) => &self.gradients[place.range.clone()],
            (_, Role::Statistic) => &[],
        }
    }

    /// In PyTorch's layout.
    pub(super) fn read(&self, which: Tensors, parameter: usize) -> Vec<f32> {
        let place = &self.places[parameter];
        self.outside(place, self.tensor(which, place))
    }

    /// A weight's values in another vector laid out like the gradients, in PyTorch's layout.
    pub(super) fn read_from(&self, vector: &[f32], parameter: usize) -> Vec<f32> {
        let place = &self.places[parameter];
        match place.role {
            Role::Weight => self.outside(place, &vector[place.range.clone()]),
            Role::Statistic => vec![],
        }
    }

    fn outside(&self, place: &CpuPlace, inner: &[f32]) -> Vec<f32> {
        match place.matrix {
            Some(dims) => (0..inner.len()).map(|k| inner[inner_index(dims, k)]).collect(),
            None => inner.to_vec(),
        }
    }

    /// From PyTorch's layout.
    pub(super) fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        let place = &self.places[parameter];
        let expected = self.tensor(which, place).len();
        Error::check_length(&place.name, expected, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let vector = match (which, place.role) {
            (Tensors::Values, Role::Weight) => &mut self.weights,
            (Tensors::Values, Role::Statistic) => &mut self.statistics,
            (Tensors::Slot(slot), _) => &mut self.slots[slot],
            (Tensors::Gradients, _) => &mut self.gradients,
        };
        let inner = &mut vector[place.range.clone()];
        match place.matrix {
            Some(dims) => {
                for (k, value) in values.iter().enumerate() {
                    inner[inner_index(dims, k)] = *value;
                }
            }
            None => inner.copy_from_slice(values),
        }
        if place.role == Role::Statistic {
            let range = place.range.clone();
            self.kept_statistics[range.clone()].copy_from_slice(&self.statistics[range]);
        }
        Ok(())
    }
}

/// Where element k of an [out][in][tap] tensor lies in a [tap][in][out] one.
fn inner_index([out, input, taps]: [usize; 3], k: usize) -> usize {
    let (o, i, t) = (k / (input * taps), k / taps % input, k % taps);
    (t * input + i) * out + o
}
