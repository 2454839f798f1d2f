//! Stochastic gradient descent with Nesterov momentum and weight decay, exactly as PyTorch computes it.
//!
//! For each weight w with gradient g and momentum buffer v (zero at the start):
//!
//! ```text
//! g ← g + decay · w
//! v ← momentum · v + g          (PyTorch sets v ← g at the first step; with v = 0 that is the same)
//! w ← w − rate · (g + momentum · v)      with Nesterov;  w − rate · v  without
//! ```

/// The optimiser's settings for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// The learning rate.
    pub rate: f32,
    /// The share of the momentum buffer that is kept.
    pub momentum: f32,
    /// The weight decay, added to the gradient of every weight.
    pub decay: f32,
    /// Whether momentum is Nesterov's.
    pub nesterov: bool,
}

impl Sgd {
    /// The method's settings: Nesterov momentum 0.9, weight decay 5e-4.
    pub fn new(rate: f32) -> Self {
        Sgd {
            rate,
            momentum: 0.9,
            decay: 5e-4,
            nesterov: true,
        }
    }

    /// One step over a slice of weights: reads gradients, writes weights and momentum.
    #[inline(always)]
    pub fn apply(&self, weights: &mut [f32], momentum: &mut [f32], gradients: &[f32]) {
        for ((w, v), g) in weights.iter_mut().zip(momentum).zip(gradients) {
            let g = g + self.decay * *w;
            *v = self.momentum * *v + g;
            let direction = if self.nesterov {
                g + self.momentum * *v
            } else {
                *v
            };
            *w -= self.rate * direction;
        }
    }
}
