//! Batch norm, as PyTorch defines it.
//!
//! ```text
//! training   μ, σ² = mean and biased variance of each channel over batch and places (m values)
//!            y = γ (x − μ) / √(σ² + ε) + β
//!            running mean ← (1 − a) · running mean + a · μ
//!            running var  ← (1 − a) · running var  + a · σ² · m/(m − 1)       (unbiased)
//! inference  the same y from the running mean and variance
//! backward   with x̂ = (x − μ)/√(σ² + ε):
//!            dβ = Σ dy,  dγ = Σ dy·x̂,  dx = γ/√(σ² + ε) · (dy − dβ/m − x̂·dγ/m)
//! ```
//!
//! Training needs at least two values per channel: the unbiased variance of one does not exist.

use super::{Case, Layer, NaiveAt, SavedForBackward};
use crate::cpu::CpuState;
use crate::cuda::CudaWalk;
use crate::{Graph, Initial, NodeId, Norm, Op, Result, Role, walk};

/// Batch norm alone.
pub(crate) struct BatchNorm(pub(super) Norm);

impl Layer for BatchNorm {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::INPUT
    }

    fn norm(&self) -> Option<Norm> {
        Some(self.0)
    }

    fn naive(&self, at: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64> {
        naive(self.0, at, inputs[0].to_vec())
    }

    fn naive_backward(&self, at: &mut NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<Vec<f64>> {
        vec![naive_backward(self.0, at, dy)]
    }

    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()> {
        network.batch_norm_layer(layer, self.0)
    }

    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()> {
        walk.batch_norm_layer(layer, self.0)
    }
}

/// Mean and biased variance of each channel, in two passes.
fn statistics(x: &[f64], channels: usize) -> [Vec<f64>; 2] {
    let count = (x.len() / channels) as f64;
    let mut mean = vec![0.0; channels];
    for pixel in x.chunks(channels) {
        for c in 0..channels {
            mean[c] += pixel[c] / count;
        }
    }
    let mut variance = vec![0.0; channels];
    for pixel in x.chunks(channels) {
        for c in 0..channels {
            variance[c] += (pixel[c] - mean[c]).powi(2) / count;
        }
    }
    [mean, variance]
}

/// Of a layer whose last four parameters are the norm's. In training x is kept, and the running
/// statistics are moved.
pub(super) fn naive(norm: Norm, at: &mut NaiveAt, x: Vec<f64>) -> Vec<f64> {
    let first = at.parameters.len() - 4;
    let [gamma, beta, running_mean, running_var] = &mut at.parameters[first..] else {
        unreachable!("four parameters")
    };
    let channels = gamma.len();
    let (mut mean, mut variance) = (running_mean.clone(), running_var.clone());
    if at.draw.is_some() {
        [mean, variance] = statistics(&x, channels);
        let (share, m) = (f64::from(norm.momentum), (x.len() / channels) as f64);
        for c in 0..channels {
            let unbiased = variance[c] * m / (m - 1.0);
            running_mean[c] = (1.0 - share) * running_mean[c] + share * mean[c];
            running_var[c] = (1.0 - share) * running_var[c] + share * unbiased;
        }
    }
    let mut y = vec![0.0; x.len()];
    for (to, from) in y.chunks_mut(channels).zip(x.chunks(channels)) {
        for c in 0..channels {
            let hat = (from[c] - mean[c]) / deviation(norm, variance[c]);
            to[c] = gamma[c] * hat + beta[c];
        }
    }
    *at.before_norm = x;
    y
}

/// The gradient in training, through the batch's statistics.
pub(super) fn naive_backward(norm: Norm, at: &mut NaiveAt, dy: &[f64]) -> Vec<f64> {
    let first = at.parameters.len() - 4;
    let (x, gamma) = (&*at.before_norm, &at.parameters[first]);
    let channels = gamma.len();
    let [mean, variance] = statistics(x, channels);
    let hat = |pixel: &[f64], c: usize| (pixel[c] - mean[c]) / deviation(norm, variance[c]);
    let (mut dgamma, mut dbeta) = (vec![0.0; channels], vec![0.0; channels]);
    for (pixel, d) in x.chunks(channels).zip(dy.chunks(channels)) {
        for (c, d) in d.iter().enumerate() {
            dgamma[c] += d * hat(pixel, c);
            dbeta[c] += d;
        }
    }
    let m = (x.len() / channels) as f64;
    let mut dx = vec![0.0; x.len()];
    let pixels = x.chunks(channels).zip(dy.chunks(channels));
    for (to, (pixel, d)) in dx.chunks_mut(channels).zip(pixels) {
        for c in 0..channels {
            let centred = d[c] - dbeta[c] / m - hat(pixel, c) * dgamma[c] / m;
            to[c] = gamma[c] / deviation(norm, variance[c]) * centred;
        }
    }
    at.gradients[first] = dgamma;
    at.gradients[first + 1] = dbeta;
    dx
}

fn deviation(norm: Norm, variance: f64) -> f64 {
    (variance + f64::from(norm.epsilon)).sqrt()
}

pub(super) fn cases() -> Vec<Case> {
    Case::over_shapes(1, |g, x| g.batch_norm("bn", x)).collect()
}

impl Graph {
    /// Batch norm alone.
    pub fn batch_norm(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let shape = self.shape(x);
        let id = self.push(name, Op::BatchNorm(Norm::default()), vec![x], shape)?;
        self.norm_parameters(id, name, shape.channels);
        Ok(id)
    }

    pub(super) fn norm_parameters(&mut self, id: NodeId, name: &str, channels: usize) {
        let dims = [channels];
        let (zero, one) = (Initial::Constant(0.0), Initial::Constant(1.0));
        self.parameter(id, name, "weight", &dims, one, Role::Weight);
        self.parameter(id, name, "bias", &dims, zero, Role::Weight);
        self.parameter(id, name, "running_mean", &dims, zero, Role::Statistic);
        self.parameter(id, name, "running_var", &dims, one, Role::Statistic);
    }
}
