//! One step of SGD, written as PyTorch's documentation has it, apart from [`crate::Sgd::apply`].

use crate::Sgd;

/// Moves `weights` and `momentum` by one step along `gradients`.
pub fn step(sgd: &Sgd, weights: &mut [f64], momentum: &mut [f64], gradients: &[f64]) {
    let [rate, mu, decay] = [sgd.rate, sgd.momentum, sgd.decay].map(f64::from);
    for i in 0..weights.len() {
        let mut g = gradients[i] + decay * weights[i];
        momentum[i] = mu * momentum[i] + g;
        if sgd.nesterov {
            g += mu * momentum[i];
        } else {
            g = momentum[i];
        }
        weights[i] -= rate * g;
    }
}
