//! Optimisers, and groups of parameters that they treat alike: SGD, LARS and AdamW as PyTorch users
//! know them.
//!
//! For each weight w with gradient g, learning rate `rate` (times the group's factor) and state
//! slots that begin at zero:
//!
//! ```text
//! SGD     g ← g + decay·w;  v ← momentum·v + g;  w ← w − rate·(g + momentum·v) with Nesterov,
//!         w − rate·v without
//! LARS    the same after g ← local·(g + decay·w),  local = trust·‖w‖ / (‖g‖ + decay·‖w‖ + epsilon)
//!         for each tensor;
//!         g as it is where either norm is 0;  as SGD where a group is not adapted
//! AdamW   w ← w − rate·decay·w;  m ← m + (1 − beta1)·(g − m);  v ← beta2·v + (1 − beta2)·g²
//!         w ← w − rate / (1 − beta1^t) · m / (√v / √(1 − beta2^t) + epsilon),  t = 1 at w's first
//! ```
//!
//! What a step reads and writes: gradients and norms are read; weights and slots are changed in
//! place.

use std::ops::Range;

use crate::Parameter;

/// Which optimiser, with what stays the same in all steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimiser {
    /// Stochastic gradient descent with momentum, as `torch.optim.SGD`.
    Sgd {
        /// The share of the momentum buffer that is kept.
        momentum: f32,
        /// Whether momentum is Nesterov's.
        nesterov: bool,
        /// The weight decay, added to the gradient.
        decay: f32,
    },
    /// Layer-wise adaptive rate scaling over SGD (You et al. 2017), for large batches.
    Lars {
        /// The share of the momentum buffer that is kept.
        momentum: f32,
        /// Whether momentum is Nesterov's.
        nesterov: bool,
        /// The weight decay, added to the gradient.
        decay: f32,
        /// The trust coefficient (eta): how far a tensor moves, relative to its own length.
        trust: f32,
        /// Keeps the division finite.
        epsilon: f32,
    },
    /// Adam with decoupled weight decay (Loshchilov & Hutter 2019), as `torch.optim.AdamW`.
    AdamW {
        /// The share of the mean gradient that is kept.
        beta1: f32,
        /// The share of the mean squared gradient that is kept.
        beta2: f32,
        /// Keeps the division finite.
        epsilon: f32,
        /// The weight decay, relative to the learning rate.
        decay: f32,
    },
}

/// The lengths (L2 norms) of a tensor's weights and of its gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Norms {
    /// Of the weights.
    pub(crate) weights: f64,
    /// Of the gradient.
    pub(crate) gradient: f64,
}

impl Optimiser {
    /// SGD with Nesterov momentum 0.9 and weight decay 5e-4.
    pub fn sgd() -> Self {
        Optimiser::Sgd { momentum: 0.9, nesterov: true, decay: 5e-4 }
    }

    /// LARS with the usual settings: momentum 0.9, weight decay 1e-6, trust 0.001.
    pub fn lars() -> Self {
        Optimiser::Lars { momentum: 0.9, nesterov: false, decay: 1e-6, trust: 0.001, epsilon: 1e-8 }
    }

    /// AdamW with PyTorch's settings.
    pub fn adam_w() -> Self {
        Optimiser::AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 1e-2 }
    }

    /// How many values of state it keeps for each weight.
    pub fn slots(&self) -> usize {
        match self {
            Optimiser::Sgd { .. } | Optimiser::Lars { .. } => 1,
            Optimiser::AdamW { .. } => 2,
        }
    }

    /// Whether a step needs the [`Norms`] of a group's tensors.
    pub(crate) fn needs_norms(&self, group: &ParameterGroup) -> bool {
        match self {
            Optimiser::Sgd { .. } | Optimiser::AdamW { .. } => false,
            Optimiser::Lars { .. } => group.adapt,
        }
    }

    /// The weight decay of a group.
    pub fn decay(&self, group: &ParameterGroup) -> f32 {
        let (Optimiser::Sgd { decay, .. }
        | Optimiser::Lars { decay, .. }
        | Optimiser::AdamW { decay, .. }) = self;
        group.decay.unwrap_or(*decay)
    }

    /// One step over a tensor, or a part of it: `number` steps of the run came before, `norms` are
    /// the whole tensor's. Nothing changes in a step in which the group is frozen.
    ///
    /// Of the two slots SGD and LARS use the first; what is not used may be empty. Norms are read
    /// where [`Optimiser::needs_norms`].
    #[inline(always)]
    pub(crate) fn apply(
        &self,
        rate: f32,
        number: u64,
        group: &ParameterGroup,
        weights: &mut [f32],
        slots: [&mut [f32]; 2],
        gradients: &[f32],
        norms: Norms,
    ) {
        let Some(number) = group.own_steps_before(number) else {
            return;
        };
        let (rate, decay) = (rate * group.rate_factor, self.decay(group));
        let [first, second] = slots;
        match *self {
            Optimiser::Sgd { momentum, nesterov, .. } => {
                let sgd = Momentum { rate, momentum, nesterov };
                sgd.apply(1.0, decay, weights, first, gradients);
            }
            Optimiser::Lars { momentum, nesterov, trust, epsilon, .. } => {
                let sgd = Momentum { rate, momentum, nesterov };
                let (local, decay) = match group.adapt {
                    true => norms.local_rate(trust, decay, epsilon),
                    false => (1.0, decay),
                };
                sgd.apply(local, decay, weights, first, gradients);
            }
            Optimiser::AdamW { beta1, beta2, epsilon, .. } => {
                let adam = Adam::new(rate, decay, [beta1, beta2], epsilon, number);
                adam.apply(weights, first, second, gradients);
            }
        }
    }
}

impl Norms {
    /// LARS's factor of a tensor's gradient, and its weight decay: where either norm is 0, the
    /// gradient stays as it is.
    pub(crate) fn local_rate(&self, trust: f32, decay: f32, epsilon: f32) -> (f32, f32) {
        if self.weights == 0.0 || self.gradient == 0.0 {
            return (1.0, 0.0);
        }
        let length = self.gradient + f64::from(decay) * self.weights + f64::from(epsilon);
        ((f64::from(trust) * self.weights / length) as f32, decay)
    }
}

/// SGD's step after weight decay and a factor of the gradient.
struct Momentum {
    rate: f32,
    momentum: f32,
    nesterov: bool,
}

impl Momentum {
    #[inline(always)]
    fn apply(&self, local: f32, decay: f32, weights: &mut [f32], v: &mut [f32], gradients: &[f32]) {
        for ((w, v), g) in weights.iter_mut().zip(v).zip(gradients) {
            let g = local * (g + decay * *w);
            *v = self.momentum * *v + g;
            let direction = if self.nesterov { g + self.momentum * *v } else { *v };
            *w -= self.rate * direction;
        }
    }
}

/// AdamW's numbers for one step.
struct Adam {
    /// 1 − rate · decay.
    keep: f32,
    /// rate / (1 − beta1^t).
    step: f32,
    /// √(1 − beta2^t).
    root: f32,
    betas: [f32; 2],
    epsilon: f32,
}

impl Adam {
    /// For a step of weights that have taken `number` before.
    fn new(rate: f32, decay: f32, betas: [f32; 2], epsilon: f32, number: u64) -> Self {
        let [first, second] = betas.map(|beta| 1.0 - f64::from(beta).powf((number + 1) as f64));
        Adam {
            keep: (1.0 - f64::from(rate) * f64::from(decay)) as f32,
            step: (f64::from(rate) / first) as f32,
            root: second.sqrt() as f32,
            betas,
            epsilon,
        }
    }

    #[inline(always)]
    fn apply(&self, weights: &mut [f32], m: &mut [f32], v: &mut [f32], gradients: &[f32]) {
        let [beta1, beta2] = self.betas;
        for (((w, m), v), g) in weights.iter_mut().zip(m).zip(v).zip(gradients) {
            *m += (1.0 - beta1) * (g - *m);
            *v = beta2 * *v + (1.0 - beta2) * (g * g);
            *w = self.keep * *w - self.step * (*m / (v.sqrt() / self.root + self.epsilon));
        }
    }
}

/// Steps of a run in which a parameter is not trained, counted from the run's first step. AdamW's
/// bias correction leaves them out, as PyTorch's does: it counts the steps that the parameter has
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrozenSteps {
    first: u64,
    end: u64,
}

impl FrozenSteps {
    /// Trained in every step.
    pub const NONE: Self = FrozenSteps { first: 0, end: 0 };
    /// Never trained.
    pub const ALL: Self = FrozenSteps { first: 0, end: u64::MAX };

    /// The first of them, and the first step after them.
    pub(crate) fn bounds(self) -> [u64; 2] {
        [self.first, self.end]
    }
}

impl From<Range<u64>> for FrozenSteps {
    fn from(steps: Range<u64>) -> Self {
        match steps.is_empty() {
            true => FrozenSteps::NONE,
            false => FrozenSteps { first: steps.start, end: steps.end },
        }
    }
}

/// How a parameter is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterGroup {
    /// Times the learning rate.
    pub rate_factor: f32,
    /// Its own weight decay, if it is not the optimiser's.
    pub decay: Option<f32>,
    /// The steps in which it stays as it is.
    pub frozen: FrozenSteps,
    /// Whether LARS adapts its rate.
    pub adapt: bool,
}

impl Default for ParameterGroup {
    fn default() -> Self {
        ParameterGroup { rate_factor: 1.0, decay: None, frozen: FrozenSteps::NONE, adapt: true }
    }
}

impl ParameterGroup {
    /// The rule by which all parameters are alike.
    pub fn all_alike(_: &Parameter) -> Self {
        ParameterGroup::default()
    }

    /// How many steps it has taken when the run has taken `number`; nothing where it is frozen in
    /// the next.
    pub fn own_steps_before(&self, number: u64) -> Option<u64> {
        let FrozenSteps { first, end } = self.frozen;
        match number {
            _ if number < first => Some(number),
            _ if number < end => None,
            _ => Some(number - (end - first)),
        }
    }

    /// The usual rule: biases and the weights of norms, which are vectors, have no weight decay and
    /// are not adapted.
    pub fn biases_and_norms_apart(parameter: &Parameter) -> Self {
        match parameter.shape.len() {
            0 | 1 => ParameterGroup { decay: Some(0.0), adapt: false, ..ParameterGroup::default() },
            2.. => ParameterGroup::default(),
        }
    }
}
