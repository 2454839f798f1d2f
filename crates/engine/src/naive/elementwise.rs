//! ReLU, addition and dropout: each output value depends on one place of the input(s).

use anchorhood_storage::random::{Draws, Stream, unit};

use crate::DropoutKey;

/// max(x, 0), and NaN where x is NaN, as in PyTorch.
pub fn relu(x: &[f64]) -> Vec<f64> {
    let floor = |v: &f64| if 0.0 > *v { 0.0 } else { *v };
    x.iter().map(floor).collect()
}

/// The gradient of ReLU's input: dy where the output is above zero. At zero it is 0, as in PyTorch.
pub fn relu_backward(y: &[f64], dy: &[f64]) -> Vec<f64> {
    let pass = |(y, d): (&f64, &f64)| if *y > 0.0 { *d } else { 0.0 };
    y.iter().zip(dy).map(pass).collect()
}

/// a + b.
pub fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// What dropout multiplies each of `len` values with in training: 0 with probability `p`, else 1/(1
/// − p).
///
/// Value e of the key's layer in `step` is dropped when its random number is below `p`. The number
/// depends on nothing but these three, so forward and backward passes, any number of threads and
/// any device agree on it.
pub fn dropout_mask(key: DropoutKey, step: u64, p: f32, len: usize) -> Vec<f64> {
    let epoch = step % (1 << 20);
    let factor = |e: usize| {
        let draws = Draws::new(key.seed, Stream::Dropout, epoch, (e / 4) as u64);
        let words = draws.block(((key.pass << 16) + key.layer) as u32);
        if unit(words[e % 4]) < p { 0.0 } else { 1.0 / (1.0 - f64::from(p)) }
    };
    (0..len).map(factor).collect()
}

/// x · mask: dropout's forward pass, and its backward pass for x = dy.
pub fn masked(x: &[f64], mask: &[f64]) -> Vec<f64> {
    x.iter().zip(mask).map(|(x, m)| x * m).collect()
}
