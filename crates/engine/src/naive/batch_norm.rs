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

use crate::Norm;

/// Mean and biased variance of each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The means.
    pub mean: Vec<f64>,
    /// The variances, divided by m.
    pub variance: Vec<f64>,
    /// Values per channel, m.
    pub count: usize,
}

impl Statistics {
    /// Of a batch, in two passes.
    pub fn of(x: &[f64], channels: usize) -> Self {
        let count = x.len() / channels;
        let mut mean = vec![0.0; channels];
        for pixel in x.chunks(channels) {
            for c in 0..channels {
                mean[c] += pixel[c] / count as f64;
            }
        }
        let mut variance = vec![0.0; channels];
        for pixel in x.chunks(channels) {
            for c in 0..channels {
                variance[c] += (pixel[c] - mean[c]).powi(2) / count as f64;
            }
        }
        Statistics { mean, variance, count }
    }

    /// Moves the running statistics towards these.
    pub fn update_running(&self, norm: Norm, running_mean: &mut [f64], running_var: &mut [f64]) {
        let share = f64::from(norm.momentum);
        let m = self.count as f64;
        for c in 0..self.mean.len() {
            let unbiased = self.variance[c] * m / (m - 1.0);
            running_mean[c] = (1.0 - share) * running_mean[c] + share * self.mean[c];
            running_var[c] = (1.0 - share) * running_var[c] + share * unbiased;
        }
    }
}

/// The output for given statistics: the batch's in training, the running ones in inference.
pub fn forward(
    norm: Norm,
    x: &[f64],
    mean: &[f64],
    variance: &[f64],
    gamma: &[f64],
    beta: &[f64],
) -> Vec<f64> {
    let channels = gamma.len();
    let mut y = vec![0.0; x.len()];
    for (to, from) in y.chunks_mut(channels).zip(x.chunks(channels)) {
        for c in 0..channels {
            let hat = (from[c] - mean[c]) / deviation(norm, variance[c]);
            to[c] = gamma[c] * hat + beta[c];
        }
    }
    y
}

/// What the backward pass gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Of the input.
    pub input: Vec<f64>,
    /// Of γ.
    pub gamma: Vec<f64>,
    /// Of β.
    pub beta: Vec<f64>,
}

/// The gradients in training, through the batch's statistics.
pub fn backward(norm: Norm, x: &[f64], gamma: &[f64], dy: &[f64]) -> Gradients {
    let channels = gamma.len();
    let s = Statistics::of(x, channels);
    let hat = |pixel: &[f64], c: usize| (pixel[c] - s.mean[c]) / deviation(norm, s.variance[c]);
    let mut g = Gradients {
        input: vec![0.0; x.len()],
        gamma: vec![0.0; channels],
        beta: vec![0.0; channels],
    };
    for (pixel, d) in x.chunks(channels).zip(dy.chunks(channels)) {
        for (c, d) in d.iter().enumerate() {
            g.gamma[c] += d * hat(pixel, c);
            g.beta[c] += d;
        }
    }
    let m = s.count as f64;
    let pixels = x.chunks(channels).zip(dy.chunks(channels));
    for (to, (pixel, d)) in g.input.chunks_mut(channels).zip(pixels) {
        for c in 0..channels {
            let centred = d[c] - g.beta[c] / m - hat(pixel, c) * g.gamma[c] / m;
            to[c] = gamma[c] / deviation(norm, s.variance[c]) * centred;
        }
    }
    g
}

fn deviation(norm: Norm, variance: f64) -> f64 {
    (variance + f64::from(norm.epsilon)).sqrt()
}
