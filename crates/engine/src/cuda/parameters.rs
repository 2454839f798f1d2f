//! A network's parameters on the GPU: all weights in one vector, so that the optimiser is one launch, and their layout.
//!
//! Outside, tensors are PyTorch's: convolutions OIHW, linear layers out × in. In here a convolution is OHWI, which cuDNN
//! reads beside NHWC. Weights, momentum and statistics are f32. Where activations are bf16, the matrices (weights of
//! convolutions and linear layers, which come first) have a rounded copy, and their gradients are bf16.

use std::ops::Range;

use cudarc::driver::{CudaSlice, DevicePtr};

use super::launch::{Kernels, Pointer};
use super::{Cuda, Precision, failed};
use crate::{Error, Graph, Node, Parameter, Result, Role, Sgd, Tensors};

/// Every tensor begins at a multiple of so many values: sixteen bytes of bf16.
const ALIGN: usize = 8;

pub(super) struct Parameters {
    cuda: Cuda,
    places: Vec<Place>,
    /// How many values of `weights` belong to matrices.
    matrices: usize,
    weights: CudaSlice<f32>,
    momentum: CudaSlice<f32>,
    gradients: CudaSlice<f32>,
    statistics: CudaSlice<f32>,
    /// The matrices and their gradients in bf16, if activations are.
    narrow: Option<[CudaSlice<u16>; 2]>,
    settings: CudaSlice<u32>,
    last_settings: Option<Sgd>,
}

struct Place {
    range: Range<usize>,
    role: Role,
    name: String,
    matrix: Option<Matrix>,
}

/// A matrix's output channels, input channels and taps, and how many input channels it has in here: those added are zero.
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
        let (o, i, t) = (
            k / (self.input * self.taps),
            k / self.taps % self.input,
            k % self.taps,
        );
        (o * self.taps + t) * self.padded + i
    }
}

impl Parameters {
    /// Convolutions that read the pictures have as many input channels as these have on the device.
    pub(super) fn new(cuda: &Cuda, graph: &Graph, input_channels: usize) -> Result<Self> {
        let (places, [matrices, weights, statistics]) = lay_out(graph, input_channels);
        let f32s = |len, what| cuda.zeros::<f32>(len, what);
        let narrow = match cuda.precision() {
            Precision::Bf16 => Some([
                cuda.zeros(matrices, "weights in bf16")?,
                cuda.zeros(matrices, "gradients in bf16")?,
            ]),
            _ => None,
        };
        Ok(Parameters {
            cuda: cuda.clone(),
            places,
            matrices,
            weights: f32s(weights, "weights")?,
            momentum: f32s(weights, "momentum")?,
            gradients: f32s(weights, "gradients")?,
            statistics: f32s(statistics, "statistics")?,
            narrow,
            settings: cuda.zeros(4, "settings")?,
            last_settings: None,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let narrow = self.narrow.as_ref().map_or(0, |[a, b]| a.len() + b.len());
        4 * (3 * self.weights.len() + self.statistics.len()) + 2 * narrow
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
        self.at(&self.gradients, &self.places[parameter])
    }

    /// A matrix as convolutions read it.
    pub(super) fn matrix(&self, parameter: usize) -> Pointer {
        match &self.narrow {
            Some([copies, _]) => self.at(copies, &self.places[parameter]),
            None => self.value(parameter),
        }
    }

    /// Where convolutions write a matrix's gradient.
    pub(super) fn matrix_gradient(&self, parameter: usize) -> Pointer {
        match &self.narrow {
            Some([_, gradients]) => self.at(gradients, &self.places[parameter]),
            None => self.gradient(parameter),
        }
    }

    fn at<T>(&self, slice: &CudaSlice<T>, place: &Place) -> Pointer {
        self.base(slice) + (place.range.start * size_of::<T>()) as u64
    }

    fn base<T>(&self, slice: &CudaSlice<T>) -> Pointer {
        slice.device_ptr(self.cuda.stream()).0
    }

    /// Fills the matrices with anything, for measurements over them.
    pub(super) fn fill(&self, kernels: &Kernels) -> Result<()> {
        let place = match &self.narrow {
            Some([copies, _]) => self.base(copies),
            None => self.base(&self.weights),
        };
        kernels.noise(self.matrices, place)
    }

    /// Zeroes the matrices and their gradients.
    pub(super) fn clear(&mut self) -> Result<()> {
        let stream = self.cuda.stream();
        let failed = |e| failed("clearing the weights", e);
        stream.memset_zeros(&mut self.weights).map_err(failed)?;
        stream.memset_zeros(&mut self.gradients).map_err(failed)?;
        for narrow in self.narrow.iter_mut().flatten() {
            stream.memset_zeros(narrow).map_err(failed)?;
        }
        Ok(())
    }

    /// Tells the optimiser's settings to the device, if they are new.
    pub(super) fn set(&mut self, kernels: &Kernels, sgd: &Sgd) -> Result<()> {
        if self.last_settings != Some(*sgd) {
            kernels.set_settings(sgd, self.base(&self.settings))?;
            self.last_settings = Some(*sgd);
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

    /// Where a matrix ends among all weights; in the order of parameters, matrices are the first of them.
    pub(super) fn matrix_end(&self, parameter: usize) -> usize {
        self.places[parameter].range.end.next_multiple_of(ALIGN)
    }

    /// Moves some of the weights by the settings told.
    pub(super) fn update(&self, kernels: &Kernels, some: Range<usize>) -> Result<()> {
        if some.is_empty() {
            return Ok(());
        }
        let settings = self.base(&self.settings);
        let wide = 4 * some.start as u64;
        let ([copies, narrow], matrices) = match &self.narrow {
            Some([copies, gradients]) => {
                let at = 2 * some.start as u64;
                let places = [self.base(copies) + at, self.base(gradients) + at];
                (places, self.matrices.saturating_sub(some.start))
            }
            None => ([0; 2], 0),
        };
        kernels.sgd(
            settings,
            [self.base(&self.gradients) + wide, narrow],
            matrices,
            some.len(),
            [
                self.base(&self.weights) + wide,
                self.base(&self.momentum) + wide,
                copies,
            ],
        )
    }

    /// Bytes an update reads and writes: weights and momentum both ways, gradients, copies.
    pub(super) fn update_bytes(&self) -> usize {
        let (all, narrow) = (self.weights.len(), self.narrow.is_some());
        match narrow {
            true => 16 * all + 4 * self.matrices + 4 * (all - self.matrices),
            false => 20 * all,
        }
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
            (Tensors::Momentum, _) => stream.clone_dtoh(&self.momentum.slice(range)),
            (Tensors::Gradients, _) => match (&self.narrow, place.matrix) {
                (Some([_, gradients]), Some(_)) => stream
                    .clone_dtoh(&gradients.slice(range))
                    .map(|bits| bits.into_iter().map(from_bf16).collect()),
                _ => stream.clone_dtoh(&self.gradients.slice(range)),
            },
        };
        let inner = inner.map_err(|e| failed(&format!("reading {}", place.name), e))?;
        Ok(match place.matrix {
            Some(m) => (0..m.len()).map(|k| inner[m.inner_index(k)]).collect(),
            None => inner,
        })
    }

    /// From PyTorch's layout.
    pub(super) fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        let place = &self.places[parameter];
        let range = place.range.clone();
        let expected = match (which, place.role) {
            (Tensors::Momentum | Tensors::Gradients, Role::Statistic) => 0,
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
            (Tensors::Momentum, _) => &mut self.momentum,
            (Tensors::Gradients, _) => &mut self.gradients,
        };
        let stream = self.cuda.stream();
        let what = format!("writing {}", place.name);
        let failed = |e| failed(&what, e);
        stream
            .memcpy_htod(&inner, &mut vector.slice_mut(range.clone()))
            .map_err(failed)?;
        let narrow = match (which, &mut self.narrow) {
            (Tensors::Values, Some([copies, _])) => copies,
            (Tensors::Gradients, Some([_, gradients])) => gradients,
            _ => return Ok(()),
        };
        if place.matrix.is_some() {
            let bits: Vec<u16> = inner.into_iter().map(to_bf16).collect();
            let mut to = narrow.slice_mut(range);
            stream.memcpy_htod(&bits, &mut to).map_err(failed)?;
        }
        Ok(())
    }
}

/// Matrices first, then the other weights; statistics apart. Also how many values the matrices, all weights and the
/// statistics take.
fn lay_out(graph: &Graph, input_channels: usize) -> (Vec<Place>, [usize; 3]) {
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
        Some(Matrix {
            out,
            input,
            taps,
            padded,
        })
    };
    let len = |index, p: &Parameter| matrix(index, p).map_or(p.len(), Matrix::padded_len);
    let size = |index, p: &Parameter| len(index, p).next_multiple_of(ALIGN);
    let all = || parameters.iter().enumerate();
    let matrices: usize = all()
        .filter(|(i, p)| matrix(*i, p).is_some())
        .map(|(i, p)| size(i, p))
        .sum();
    let (mut first, mut rest, mut statistics) = (0, matrices, 0);
    let place = |(index, p): (usize, &Parameter)| {
        let end = match (p.role, matrix(index, p)) {
            (Role::Statistic, _) => &mut statistics,
            (Role::Weight, Some(_)) => &mut first,
            (Role::Weight, None) => &mut rest,
        };
        let start = *end;
        *end += size(index, p);
        Place {
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
        assert_eq!(
            rounded(1.0 + 1.5 * step),
            1.0 + 2.0 * step,
            "a tie, two is even"
        );
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
