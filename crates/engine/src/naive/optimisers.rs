//! One step of each optimiser in f64, tensor by tensor, written as PyTorch and the LARS of
//! self-supervised libraries have them, apart from [`crate::Optimiser::apply`].

use crate::{Optimiser, ParameterGroup};

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Moves a whole tensor and its state by one step; `number` steps of the run came before.
pub fn step(
    optimiser: &Optimiser,
    rate: f64,
    number: u64,
    group: &ParameterGroup,
    weights: &mut [f64],
    slots: [&mut [f64]; 2],
    gradient: &[f64],
) {
    let is_frozen = |step: &u64| group.own_steps_before(*step).is_none();
    if is_frozen(&number) {
        return;
    }
    let rate = rate * f64::from(group.rate_factor);
    let decay = f64::from(optimiser.decay(group));
    let [first, second] = slots;
    let mut gradient = gradient.to_vec();
    match *optimiser {
        Optimiser::Sgd { momentum, nesterov, .. } => {
            add_decay(decay, weights, &mut gradient);
            with_momentum(rate, momentum, nesterov, weights, first, &gradient);
        }
        Optimiser::Lars { momentum, nesterov, trust, epsilon, .. } => {
            let [w, g] = [norm(weights), norm(&gradient)];
            if !group.adapt {
                add_decay(decay, weights, &mut gradient);
            } else if w != 0.0 && g != 0.0 {
                let local = f64::from(trust) * w / (g + decay * w + f64::from(epsilon));
                add_decay(decay, weights, &mut gradient);
                gradient.iter_mut().for_each(|g| *g *= local);
            }
            with_momentum(rate, momentum, nesterov, weights, first, &gradient);
        }
        Optimiser::AdamW { beta1, beta2, epsilon, .. } => {
            let [beta1, beta2, epsilon] = [beta1, beta2, epsilon].map(f64::from);
            let t = (0..=number).filter(|step| !is_frozen(step)).count() as f64;
            for i in 0..weights.len() {
                weights[i] -= rate * decay * weights[i];
                first[i] = beta1 * first[i] + (1.0 - beta1) * gradient[i];
                second[i] = beta2 * second[i] + (1.0 - beta2) * gradient[i] * gradient[i];
                let mean = first[i] / (1.0 - beta1.powf(t));
                let square = second[i] / (1.0 - beta2.powf(t));
                weights[i] -= rate * mean / (square.sqrt() + epsilon);
            }
        }
    }
}

fn add_decay(decay: f64, weights: &[f64], gradient: &mut [f64]) {
    for (g, w) in gradient.iter_mut().zip(weights) {
        *g += decay * w;
    }
}

fn with_momentum(
    rate: f64,
    momentum: f32,
    nesterov: bool,
    weights: &mut [f64],
    v: &mut [f64],
    gradient: &[f64],
) {
    let momentum = f64::from(momentum);
    for i in 0..weights.len() {
        v[i] = momentum * v[i] + gradient[i];
        let direction = if nesterov { gradient[i] + momentum * v[i] } else { v[i] };
        weights[i] -= rate * direction;
    }
}

/// The exponential moving average: target ← m · target + (1 − m) · source.
pub fn ema(m: f64, target: &mut [f64], source: &[f64]) {
    for (t, s) in target.iter_mut().zip(source) {
        *t = m * *t + (1.0 - m) * s;
    }
}
