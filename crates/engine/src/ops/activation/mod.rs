//! Functions of each value alone, and their gradients by their results:
//!
//! ```text
//! leaky ReLU   y = x where x > 0, else leak · x      dx = dy where y > 0, else leak · dy
//! tanh         y = tanh x                            dx = dy · (1 − y²)
//! ```

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, SavedForBackward, Unary};
use crate::cuda::{Pointer, eights};
use crate::{Error, Graph, NodeId, Op, Result};

/// A function of each value alone, whose slope is told by its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// x above zero, and this share of it, which is above zero too, below.
    LeakyRelu(f32),
    /// The hyperbolic tangent.
    Tanh,
}

/// A function of each value alone.
pub(crate) struct ActivationLayer(pub(super) Activation);

/// Values a task works on.
const TASK: usize = 16 * 1024;

impl Unary for ActivationLayer {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::OUTPUT
    }

    fn naive(&self, _: &NaiveAt, x: &[f64]) -> Vec<f64> {
        let value = |x: &f64| match self.0 {
            Activation::LeakyRelu(_) if *x > 0.0 => *x,
            Activation::LeakyRelu(leak) => f64::from(leak) * x,
            Activation::Tanh => x.tanh(),
        };
        x.iter().map(value).collect()
    }

    fn naive_backward(&self, _: &NaiveAt, [_, y, dy]: [&[f64]; 3]) -> Vec<f64> {
        let slope = |y: f64| match self.0 {
            Activation::LeakyRelu(_) if y > 0.0 => 1.0,
            Activation::LeakyRelu(leak) => f64::from(leak),
            Activation::Tanh => 1.0 - y * y,
        };
        y.iter().zip(dy).map(|(y, dy)| slope(*y) * dy).collect()
    }

    fn cpu(&self, _: &CpuAt, x: &[f32], y: &mut [f32]) {
        let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
        tasks.for_each(|(y, x)| match self.0 {
            Activation::LeakyRelu(leak) => map(x, y, |x| if x > 0.0 { x } else { leak * x }),
            Activation::Tanh => map(x, y, f32::tanh),
        });
    }

    fn cpu_backward(&self, _: &CpuAt, [_, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let given = y.par_chunks(TASK).zip(dy.par_chunks(TASK));
        let tasks = dx.par_chunks_mut(TASK).zip(given);
        tasks.for_each(|(dx, (y, dy))| match self.0 {
            Activation::LeakyRelu(leak) => {
                through([y, dy], add, dx, |y| if y > 0.0 { 1.0 } else { leak })
            }
            Activation::Tanh => through([y, dy], add, dx, |y| 1.0 - y * y),
        });
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.launch(|k| &k.activation, eights(at.len)?, (x, self.words(), at.len as u64, y))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let ([_, y, dy], len) = (of, at.len);
        let arguments = (y, dy, self.words(), i32::from(add), len as u64, dx);
        at.launch(|k| &k.activation_backward, eights(len)?, arguments)
    }
}

impl ActivationLayer {
    /// Whether it is the tangent, and what a ReLU leaks.
    fn words(&self) -> (i32, f32) {
        match self.0 {
            Activation::LeakyRelu(leak) => (0, leak),
            Activation::Tanh => (1, 0.0),
        }
    }
}

#[inline(always)]
fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(*x);
    }
}

#[inline(always)]
fn through([y, dy]: [&[f32]; 2], accumulate: bool, dx: &mut [f32], slope: impl Fn(f32) -> f32) {
    for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
        *dx = slope(*y) * dy + if accumulate { *dx } else { 0.0 };
    }
}

pub(super) fn cases() -> Vec<Case> {
    const LEAKY: Activation = Activation::LeakyRelu(0.2);
    let leaky = Case::over_shapes(30, |g, x| g.activation("f", x, LEAKY));
    let tanh = Case::over_shapes(30, |g, x| g.activation("f", x, Activation::Tanh));
    let leaky_added = Case::over_shapes(31, |g, x| {
        let y = g.activation("f", x, LEAKY)?;
        g.add("sum", y, x)
    });
    let tanh_added = Case::over_shapes(31, |g, x| {
        let y = g.activation("f", x, Activation::Tanh)?;
        g.add("sum", y, x)
    });
    leaky.chain(tanh).chain(leaky_added).chain(tanh_added).collect()
}

impl Graph {
    /// A function of each value alone.
    pub fn activation(&mut self, name: &str, x: NodeId, activation: Activation) -> Result<NodeId> {
        if let Activation::LeakyRelu(share) = activation
            && !(share > 0.0 && share < 1.0)
        {
            return Err(Error::Plan(format!("{name}: a leak of {share} is not between 0 and 1")));
        }
        self.push(name, Op::Activation(activation), vec![x], self.shape(x))
    }
}
