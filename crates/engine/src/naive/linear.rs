//! A linear layer: y = x·wᵀ + b, with x of batch × inputs and w of outputs × inputs.

/// The output.
pub fn forward(inputs: usize, x: &[f64], weight: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let mut y = vec![];
    for row in x.chunks(inputs) {
        for (o, w) in weight.chunks(inputs).enumerate() {
            y.push(dot(row, w) + bias.map_or(0.0, |b| b[o]));
        }
    }
    y
}

/// The gradient of the input: dx = dy·w.
pub fn input_gradient(inputs: usize, weight: &[f64], dy: &[f64]) -> Vec<f64> {
    let outputs = weight.len() / inputs;
    let mut dx = vec![];
    for d in dy.chunks(outputs) {
        for i in 0..inputs {
            dx.push((0..outputs).map(|o| d[o] * weight[o * inputs + i]).sum());
        }
    }
    dx
}

/// The gradient of the weight: dw = dyᵀ·x. The bias's is [`super::conv::bias_gradient`].
pub fn weight_gradient(inputs: usize, outputs: usize, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let mut dw = vec![0.0; outputs * inputs];
    for (row, d) in x.chunks(inputs).zip(dy.chunks(outputs)) {
        for o in 0..outputs {
            for i in 0..inputs {
                dw[o * inputs + i] += d[o] * row[i];
            }
        }
    }
    dw
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
