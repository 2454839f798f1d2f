//! Functions of each value alone, and their gradients by their results:
//!
//! ```text
//! leaky ReLU   y = x where x > 0, else leak · x      dx = dy where y > 0, else leak · dy
//! tanh         y = tanh x                            dx = dy · (1 − y²)
//! ```

use crate::Activation;

/// f(x).
pub fn forward(f: Activation, x: &[f64]) -> Vec<f64> {
    let value = |x: &f64| match f {
        Activation::LeakyRelu(_) if *x > 0.0 => *x,
        Activation::LeakyRelu(leak) => f64::from(leak) * x,
        Activation::Tanh => x.tanh(),
    };
    x.iter().map(value).collect()
}

/// The gradient of x, from the result y and its gradient.
pub fn backward(f: Activation, y: &[f64], dy: &[f64]) -> Vec<f64> {
    let slope = |y: f64| match f {
        Activation::LeakyRelu(_) if y > 0.0 => 1.0,
        Activation::LeakyRelu(leak) => f64::from(leak),
        Activation::Tanh => 1.0 - y * y,
    };
    y.iter().zip(dy).map(|(y, dy)| slope(*y) * dy).collect()
}
