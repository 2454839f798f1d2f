//! A network's parameters on the GPU: all weights in one vector, so that the optimiser is one
//! launch, and their layout.
//!
//! Outside, tensors are PyTorch's: convolutions OIHW, linear layers out × in. In here a convolution
//! is OHWI, which cuDNN reads beside NHWC. Weights, momentum and statistics are f32. Where
//! activations are bf16, the matrices (weights of convolutions and linear layers, which come first)
//! have a rounded copy, and their gradients are bf16.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};

use super::launch::{Kernels, Pointer};
use super::nccl::Kind;
use super::optimisers::{Averages, StepInputs, Update, Vectors};
use super::{Cuda, Doing};
use crate::parameters::{ParameterPlace, grouped};
use crate::{
    Error, Graph, NetworkOptions, Node, Parameter, ParameterGroup, Precision, Result, Role, Tensors,
};

/// Every tensor begins at a multiple of so many values: sixteen bytes of bf16.
const ALIGN: usize = 8;

pub(super) struct Parameters {
    cuda: Cuda,
    places: Vec<CudaPlace>,
    /// How many values of `weights` belong to matrices.
    matrices: usize,
    weights: CudaSlice<f32>,
    /// The optimiser's state.
    slots: Vec<CudaSlice<f32>>,
    /// Running statistics, which every pass forwards moves, and as they were after the last step
    /// whose loss was finite.
    statistics: CudaSlice<f32>,
    kept_statistics: CudaSlice<f32>,
    /// The matrices in bf16, if activations are.
    copies: Option<CudaSlice<u16>>,
    /// The gradients of each pass, and the pass at hand.
    gradients: Vec<Gradients>,
    pass: usize,
    update: Update,
    averages: Averages,
}

/// Gradients of all weights, and those of the matrices in bf16, if activations are: these are not
/// among the others then.
struct Gradients {
    wide: CudaSlice<f32>,
    narrow: Option<CudaSlice<u16>>,
}

type CudaPlace = ParameterPlace<Matrix>;

/// A matrix's output channels, input channels and taps, and how many input channels it has in here:
/// those added are zero.
#[derive(Clone, Copy)]
struct Matrix {
    out: usize,
    input: usize,
    taps: usize,
    padded: usize,
}

impl Matrix {
    /// Values it has outside.
    fn len(self) -> usize {
        self.out * self.input * self.taps
    }

    /// Values it has in here.
    fn padded_len(self) -> usize {
        self.out * self.padded * self.taps
    }

    /// Where element k of an [out][in][tap] tensor lies in an [out][tap][in] one.
    fn inner_index(self, k: usize) -> usize {
        let (o, i, t) = (k / (self.input * self.taps), k / self.taps % self.input, k % self.taps);
        (o * self.taps + t) * self.padded + i
    }
}

impl Parameters {
    /// Convolutions that read the pictures have as many input channels as these have on the device.
    pub(super) fn new(
        cuda: &Cuda,
        graph: &Graph,
        options: &NetworkOptions,
        input_channels: usize,
    ) -> Result<Self> {
        let (places, [matrices, weights, statistics]) = lay_out(graph, input_channels);
        let f32s = |len, what| cuda.zeros::<f32>(len, what);
        let bf16 = cuda.precision() == Precision::Bf16;
        let narrow = |what| bf16.then(|| cuda.zeros(matrices, what)).transpose();
        let gradients = |_| {
            Ok(Gradients {
                wide: f32s(weights, "gradients")?,
                narrow: narrow("gradients in bf16")?,
            })
        };
        let tensors = grouped(&places, graph, &options.groups);
        let len = weights / ALIGN * ALIGN;
        let slots = 0..options.optimiser.slots();
        Ok(Parameters {
            update: Update::new(cuda, options.optimiser, tensors, len)?,
            averages: Averages::load(cuda)?,
            cuda: cuda.clone(),
            places,
            matrices,
            weights: f32s(weights, "weights")?,
            slots: slots.map(|_| f32s(weights, "the optimiser's state")).collect::<Result<_>>()?,
            statistics: f32s(statistics, "statistics")?,
            kept_statistics: f32s(statistics, "statistics")?,
            copies: narrow("weights in bf16")?,
            gradients: (0..options.passes).map(gradients).collect::<Result<_>>()?,
            pass: 0,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let narrow = self.copies.as_ref().map_or(0, CudaSlice::len);
        let (slots, passes) = (self.slots.len(), self.gradients.len());
        let wide = (1 + slots + passes) * self.weights.len() + 2 * self.statistics.len();
        4 * wide + 2 * (1 + passes) * narrow
    }

    /// Gradients are those of this pass from now on.
    pub(super) fn select(&mut self, pass: usize) {
        self.pass = pass;
    }

    /// Where the weights begin: a number that no other living network has.
    pub(super) fn identity(&self) -> Pointer {
        self.base(&self.weights)
    }

    /// A weight or statistic in f32.
    pub(super) fn value(&self, parameter: usize) -> Pointer {
        let place = &self.places[parameter];
        match place.role {
            Role::Weight => self.at(&self.weights, place),
            Role::Statistic => self.at(&self.statistics, place),
        }
    }

    /// The gradient of a parameter that is no matrix, in f32.
    pub(super) fn gradient(&self, parameter: usize) -> Pointer {
        let gradients = &self.gradients[self.pass];
        self.at(&gradients.wide, &self.places[parameter])
    }

    /// A matrix as convolutions read it.
    pub(super) fn matrix(&self, parameter: usize) -> Pointer {
        match &self.copies {
            Some(copies) => self.at(copies, &self.places[parameter]),
            None => self.value(parameter),
        }
    }

    /// Where convolutions write a matrix's gradient.
    pub(super) fn matrix_gradient(&self, parameter: usize) -> Pointer {
        match &self.gradients[self.pass].narrow {
            Some(gradients) => self.at(gradients, &self.places[parameter]),
            None => self.gradient(parameter),
        }
    }

    fn at<T>(&self, slice: &CudaSlice<T>, place: &CudaPlace) -> Pointer {
        self.base(slice) + (place.range.start * size_of::<T>()) as u64
    }

    fn base<T>(&self, slice: &CudaSlice<T>) -> Pointer {
        slice.device_ptr(self.cuda.stream()).0
    }

    /// Fills the matrices with anything, for measurements over them.
    pub(super) fn fill(&self, kernels: &Kernels) -> Result<()> {
        let place = match &self.copies {
            Some(copies) => self.base(copies),
            None => self.base(&self.weights),
        };
        kernels.noise(self.matrices, place)
    }

    /// Zeroes the matrices and their gradients.
    pub(super) fn clear(&mut self) -> Result<()> {
        let stream = self.cuda.stream();
        stream.memset_zeros(&mut self.weights).doing("clearing the weights")?;
        let narrow = self.gradients.iter_mut().flat_map(|g| &mut g.narrow);
        for vector in narrow.chain(&mut self.copies) {
            stream.memset_zeros(vector).doing("clearing the weights")?;
        }
        for gradients in &mut self.gradients {
            stream.memset_zeros(&mut gradients.wide).doing("clearing the weights")?;
        }
        Ok(())
    }

    /// Values in the vector of all weights.
    pub(super) fn len(&self) -> usize {
        self.weights.len() / ALIGN * ALIGN
    }

    pub(super) fn is_matrix(&self, parameter: usize) -> bool {
        self.places[parameter].matrix.is_some()
    }

    /// Where a matrix ends among all weights; in the order of parameters, matrices are the first of
    /// them.
    pub(super) fn matrix_end(&self, parameter: usize) -> usize {
        self.places[parameter].range.end.next_multiple_of(ALIGN)
    }

    /// Where a matrix lies among all weights.
    pub(super) fn matrix_range(&self, parameter: usize) -> Option<Range<usize>> {
        let place = &self.places[parameter];
        let end = place.range.end.next_multiple_of(ALIGN);
        place.matrix.map(|_| place.range.start..end)
    }

    /// Bytes of a value of a matrix's gradient.
    pub(super) fn matrix_gradient_bytes(&self) -> usize {
        match self.copies {
            Some(_) => 2,
            None => 4,
        }
    }

    /// The gradients of matrices from one place on, in the pass at hand, and what they are made of.
    pub(super) fn matrix_gradients(&self, start: usize) -> (Pointer, Kind) {
        let gradients = &self.gradients[self.pass];
        match &gradients.narrow {
            Some(narrow) => (self.base(narrow) + 2 * start as u64, Kind::Bf16),
            None => (self.base(&gradients.wide) + 4 * start as u64, Kind::F32),
        }
    }

    /// The gradients of all that is no matrix, in the pass at hand, and how many they are.
    pub(super) fn other_gradients(&self) -> (Pointer, usize) {
        let wide = self.base(&self.gradients[self.pass].wide);
        (wide + 4 * self.matrices as u64, self.len().saturating_sub(self.matrices))
    }

    /// Running statistics, and how many they are.
    pub(super) fn statistics(&self) -> (Pointer, usize) {
        let len = self.statistics.len() / ALIGN * ALIGN;
        (self.base(&self.statistics), len)
    }

    fn vectors(&self) -> Vectors {
        let slot = |slot: usize| self.slots.get(slot).map_or(0, |s| self.base(s));
        Vectors {
            weights: self.base(&self.weights),
            slots: [slot(0), slot(1)],
            copies: self.copies.as_ref().map_or(0, |c| self.base(c)),
            matrices: self.copies.as_ref().map_or(0, |_| self.matrices),
        }
    }

    /// Parameters are trained by other groups from now on.
    pub(super) fn regroup(
        &mut self,
        graph: &Graph,
        groups: &dyn Fn(&Parameter) -> ParameterGroup,
    ) -> Result<()> {
        let tensors = grouped(&self.places, graph, groups);
        self.update.regroup(&self.cuda, tensors)
    }

    /// Moves some of the weights along the sum of the passes' gradients.
    pub(super) fn update(
        &self,
        stream: &Arc<CudaStream>,
        inputs: &StepInputs,
        some: Range<usize>,
    ) -> Result<()> {
        let narrow = |g: &Gradients| g.narrow.as_ref().map_or(0, |n| self.base(n));
        let passes = self.gradients.iter().map(|g| [self.base(&g.wide), narrow(g)]);
        let passes: Vec<_> = passes.collect();
        let vectors = self.vectors();
        self.update.enqueue(stream, inputs, &passes, &vectors, some)
    }

    /// Moves weights and statistics towards another network's.
    pub(super) fn follow(
        &self,
        stream: &Arc<CudaStream>,
        [m, flag]: [Pointer; 2],
        other: &Parameters,
    ) -> Result<()> {
        let source = other.base(&other.weights);
        self.averages.follow(stream, [m, flag], source, &self.vectors(), self.len())?;
        let statistics =
            Vectors { weights: self.base(&self.statistics), slots: [0; 2], copies: 0, matrices: 0 };
        let (source, len) = (other.base(&other.statistics), self.statistics.len());
        self.averages.follow(stream, [m, flag], source, &statistics, len / ALIGN * ALIGN)?;
        self.settle_statistics(stream, flag)
    }

    /// What passes have done to the statistics is kept, or undone where the flag is up.
    pub(super) fn settle_statistics(&self, stream: &Arc<CudaStream>, flag: Pointer) -> Result<()> {
        let both = [&self.statistics, &self.kept_statistics].map(|s| self.base(s));
        let len = self.statistics.len() / ALIGN * ALIGN;
        self.averages.settle(stream, flag, both, len)
    }

    /// Bytes an update reads and writes: weights and state both ways, gradients, copies.
    pub(super) fn update_bytes(&self) -> usize {
        let (all, slots) = (self.weights.len(), self.slots.len());
        let matrices = self.vectors().matrices;
        let gradients = 4 * (all - matrices) + 2 * matrices;
        8 * (1 + slots) * all + self.gradients.len() * gradients + 2 * matrices
    }

    /// In PyTorch's layout.
    pub(super) fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        let place = &self.places[parameter];
        let range = place.range.clone();
        let stream = self.cuda.stream();
        let inner = match (which, place.role) {
            (Tensors::Values, Role::Weight) => stream.clone_dtoh(&self.weights.slice(range)),
            (Tensors::Values, Role::Statistic) => stream.clone_dtoh(&self.statistics.slice(range)),
            (_, Role::Statistic) => return Ok(vec![]),
            (Tensors::Slot(slot), Role::Weight) => match self.slots.get(slot) {
                Some(slot) => stream.clone_dtoh(&slot.slice(range)),
                None => return Ok(vec![]),
            },
            (Tensors::Gradients, Role::Weight) => self.summed_gradients(place),
        };
        let inner = inner.doing(&format!("reading {}", place.name))?;
        Ok(match place.matrix {
            Some(m) => (0..m.len()).map(|k| inner[m.inner_index(k)]).collect(),
            None => inner,
        })
    }

    /// The passes' gradients of a parameter, added up.
    fn summed_gradients(&self, place: &CudaPlace) -> std::result::Result<Vec<f32>, DriverError> {
        let (stream, range) = (self.cuda.stream(), &place.range);
        let mut sums = vec![0.0; range.len()];
        for gradients in &self.gradients {
            let values: Vec<f32> = match (&gradients.narrow, place.matrix) {
                (Some(narrow), Some(_)) => {
                    let bits = stream.clone_dtoh(&narrow.slice(range.clone()))?;
                    bits.into_iter().map(from_bf16).collect()
                }
                _ => stream.clone_dtoh(&gradients.wide.slice(range.clone()))?,
            };
            sums.iter_mut().zip(values).for_each(|(s, v)| *s += v);
        }
        Ok(sums)
    }

    /// From PyTorch's layout.
    pub(super) fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        let place = &self.places[parameter];
        let range = place.range.clone();
        let expected = match (which, place.role) {
            (Tensors::Slot(_) | Tensors::Gradients, Role::Statistic) => 0,
            (Tensors::Slot(slot), Role::Weight) if slot >= self.slots.len() => 0,
            _ => place.matrix.map_or(range.len(), Matrix::len),
        };
        Error::check_length(&place.name, expected, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let mut inner = values.to_vec();
        if let Some(m) = place.matrix {
            inner = vec![0.0; m.padded_len()];
            for (k, value) in values.iter().enumerate() {
                inner[m.inner_index(k)] = *value;
            }
        }
        let vector = match (which, place.role) {
            (Tensors::Values, Role::Weight) => &mut self.weights,
            (Tensors::Values, Role::Statistic) => &mut self.statistics,
            (Tensors::Slot(slot), _) => &mut self.slots[slot],
            (Tensors::Gradients, _) => &mut self.gradients[self.pass].wide,
        };
        let stream = self.cuda.stream();
        let what = format!("writing {}", place.name);
        stream.memcpy_htod(&inner, &mut vector.slice_mut(range.clone())).doing(&what)?;
        if place.role == Role::Statistic {
            let mut kept = self.kept_statistics.slice_mut(range);
            return stream.memcpy_htod(&inner, &mut kept).doing(&what);
        }
        let narrow = match which {
            Tensors::Values => &mut self.copies,
            Tensors::Gradients => &mut self.gradients[self.pass].narrow,
            Tensors::Slot(_) => return Ok(()),
        };
        if let (Some(narrow), Some(_)) = (narrow, place.matrix) {
            let bits: Vec<u16> = inner.into_iter().map(to_bf16).collect();
            let mut to = narrow.slice_mut(range);
            stream.memcpy_htod(&bits, &mut to).doing(&what)?;
        }
        Ok(())
    }
}

/// Matrices first, then the other weights; statistics apart. Also how many values the matrices, all
/// weights and the statistics take.
fn lay_out(graph: &Graph, input_channels: usize) -> (Vec<CudaPlace>, [usize; 3]) {
    let parameters = graph.parameters();
    let matrix = |index: usize, p: &Parameter| {
        let (out, input, taps) = match p.shape[..] {
            [o, i, kh, kw] => (o, i, kh * kw),
            [o, i] => (o, i, 1),
            _ => return None,
        };
        let reads_pictures =
            |n: &Node| n.parameters.first() == Some(&index) && n.inputs[0].index() == 0;
        let padded = match p.shape.len() == 4 && graph.nodes().iter().any(reads_pictures) {
            true => input_channels,
            false => input,
        };
        Some(Matrix { out, input, taps, padded })
    };
    let len = |index, p: &Parameter| matrix(index, p).map_or(p.len(), Matrix::padded_len);
    let size = |index, p: &Parameter| len(index, p).next_multiple_of(ALIGN);
    let all = || parameters.iter().enumerate();
    let matrices: usize =
        all().filter(|(i, p)| matrix(*i, p).is_some()).map(|(i, p)| size(i, p)).sum();
    let (mut first, mut rest, mut statistics) = (0, matrices, 0);
    let place = |(index, p): (usize, &Parameter)| {
        let end = match (p.role, matrix(index, p)) {
            (Role::Statistic, _) => &mut statistics,
            (Role::Weight, Some(_)) => &mut first,
            (Role::Weight, None) => &mut rest,
        };
        let start = *end;
        *end += size(index, p);
        CudaPlace {
            range: start..start + len(index, p),
            role: p.role,
            name: p.name.clone(),
            matrix: matrix(index, p),
        }
    };
    let places = all().map(place).collect();
    (places, [matrices, rest, statistics])
}

/// Rounded to the nearest, ties to even, as the kernels round.
fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(super) fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_to_the_nearest_and_ties_to_even() {
        let rounded = |v: f32| from_bf16(to_bf16(v));
        let step = 1.0 / 128.0;
        assert_eq!(rounded(1.0), 1.0);
        assert_eq!(rounded(1.0 + 0.4 * step), 1.0);
        assert_eq!(rounded(1.0 + 0.5 * step), 1.0, "a tie, one is even");
        assert_eq!(rounded(1.0 + 1.5 * step), 1.0 + 2.0 * step, "a tie, two is even");
        assert_eq!(rounded(-1.0 - 0.6 * step), -1.0 - step);
        assert_eq!(rounded(f32::MAX), f32::INFINITY);
        assert!(rounded(f32::NAN).is_nan());
    }

    #[test]
    fn matrices_come_first_and_nothing_overlaps() {
        let mut g = Graph::new();
        let x = g.input(4, 4, 3);
        let spec = crate::ConvSpec::square(5, 3, 1, 1).with_bias();
        let x = g.conv_norm("conv", "bn", x, spec, true, None).unwrap();
        let x = g.global_avg_pool("pool", x).unwrap();
        g.linear("fc", x, 7, true).unwrap();
        let (places, [matrices, weights, _]) = lay_out(&g, 8);
        let mut taken = vec![0; weights];
        for p in places.iter().filter(|p| p.role == Role::Weight) {
            taken[p.range.clone()].iter_mut().for_each(|t| *t += 1);
            assert_eq!(p.matrix.is_some(), p.range.end <= matrices, "{}", p.name);
            assert!(p.range.start.is_multiple_of(ALIGN));
        }
        assert!(taken.iter().all(|t| *t <= 1));
        assert_eq!(taken.iter().sum::<usize>(), 5 * 9 * 8 + 5 + 10 + 7 * 5 + 7);
    }
}
