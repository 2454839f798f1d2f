//! From sRGB to CIE Lab (D65), each about as large as one. Images are normalised: a channel's value
//! v in 0..1 is x · std + mean, and what lies outside is cut off.
//!
//! ```text
//! c    = v / 12.92                     where v ≤ 0.04045, else ((v + 0.055) / 1.055)^2.4
//! t    = M c                           X, Y and Z, each divided by white's
//! f(t) = ∛t                            where t > δ³, else t / 3δ² + 4/29;   δ = 6/29
//! L = 116 f(Y) − 16,   a = 500 (f(X) − f(Y)),   b = 200 (f(Y) − f(Z))
//! y = (L / 50 − 1, a / 110, b / 110)
//! ```
//!
//! A place's three values depend on its own three.

mod cpu;
mod naive;

use super::{Case, CpuAt, CudaAt, NaiveAt, SavedForBackward, Unary};
use crate::cuda::{Pointer, ones};
use crate::{Error, Graph, Initial, Network, NodeId, Op, Result, Role, Tensors};
use cpu::Normalised;

/// Colours in CIE Lab.
pub(crate) struct Lab;

impl Unary for Lab {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::INPUT
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::forward(x, &at.parameters[0], &at.parameters[1])
    }

    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::backward(x, &at.parameters[0], &at.parameters[1], dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        let [mean, std] = at.statistics;
        Normalised { mean, std }.to_lab(x, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [x, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let [mean, std] = at.statistics;
        Normalised { mean, std }.lab_backward(x, dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let places = at.len / 3;
        at.launch(|k| &k.lab, ones(places)?, (x, at.statistics, places as u64, y))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let ([x, _, dy], places) = (of, at.len / 3);
        let arguments = (x, dy, at.statistics, i32::from(add), places as u64, dx);
        at.launch(|k| &k.lab_backward, ones(places)?, arguments)
    }
}

pub(super) fn cases() -> Vec<Case> {
    let alone = |shape| Case::new(23, 3, shape, |g, x| g.lab("lab", x));
    let added = Case::new(26, 2, [3, 3, 3], |g, x| {
        let lab = g.lab("lab", x)?;
        g.add("sum", lab, x)
    });
    vec![alone([5, 4, 3]), alone([4, 5, 3]), added]
}

impl Graph {
    /// The colours of pictures, normalised by a mean and a standard deviation that are statistics
    /// of the layer, in CIE Lab.
    pub fn lab(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let shape = self.shape(x);
        if shape.channels != 3 {
            return Err(Error::shape(name, "red, green and blue", shape));
        }
        let id = self.push(name, Op::Lab, vec![x], shape)?;
        let (zero, one) = (Initial::Constant(0.0), Initial::Constant(1.0));
        self.parameter(id, name, "mean", &[3], zero, Role::Statistic);
        self.parameter(id, name, "std", &[3], one, Role::Statistic);
        Ok(id)
    }
}

impl Network {
    /// Tells layers that turn colours into others by which mean and deviation pictures are
    /// normalised.
    pub fn normalised_by(&mut self, mean: &[f32; 3], std: &[f32; 3]) -> Result<()> {
        let of_colours = self.graph().nodes().iter().filter(|n| n.op == Op::Lab);
        let parameters: Vec<Vec<usize>> = of_colours.map(|n| n.parameters.clone()).collect();
        for own in parameters {
            self.write(Tensors::Values, own[0], mean)?;
            self.write(Tensors::Values, own[1], std)?;
        }
        Ok(())
    }
}
