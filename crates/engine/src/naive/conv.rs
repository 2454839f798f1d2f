//! Convolution (cross-correlation, as PyTorch defines it).
//!
//! ```text
//! y[n,p,o] = b[o] + Σ over (i, k) of x[n, p·stride + k − padding, i] · w[o,i,k]
//! ```
//!
//! x and y are NHWC, w is OIHW. Every function returns a new tensor (`=`, never `+=`).

use super::window::Sliding;

/// The output.
pub fn forward(s: &Sliding, x: &[f64], weight: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let mut y = vec![0.0; s.batch * s.output.len()];
    if let Some(bias) = bias {
        y.chunks_mut(outputs).for_each(|p| p.copy_from_slice(bias));
    }
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                y[to * outputs + o] += x[from * inputs + i] * weight[at(s, o, i, k)];
            }
        }
    });
    y
}

/// The gradient of the input, from the output's.
pub fn input_gradient(s: &Sliding, weight: &[f64], dy: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let mut dx = vec![0.0; s.batch * s.input.len()];
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                dx[from * inputs + i] += dy[to * outputs + o] * weight[at(s, o, i, k)];
            }
        }
    });
    dx
}

/// The gradient of the weight, summed over the batch.
pub fn weight_gradient(s: &Sliding, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let [rows, columns] = s.window.kernel;
    let mut dw = vec![0.0; outputs * inputs * rows * columns];
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                dw[at(s, o, i, k)] += dy[to * outputs + o] * x[from * inputs + i];
            }
        }
    });
    dw
}

/// The gradient of the bias: the output's, summed over batch and places.
pub fn bias_gradient(channels: usize, dy: &[f64]) -> Vec<f64> {
    let mut db = vec![0.0; channels];
    for pixel in dy.chunks(channels) {
        for (sum, d) in db.iter_mut().zip(pixel) {
            *sum += d;
        }
    }
    db
}

/// Where OIHW keeps the weight from input channel `i` to output channel `o` at window place `k`.
fn at(s: &Sliding, o: usize, i: usize, k: usize) -> usize {
    let [rows, columns] = s.window.kernel;
    (o * s.input.channels + i) * rows * columns + k
}
