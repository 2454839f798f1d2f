//! A step of any [`Optimiser`] over the vector of all weights, tensor by tensor, and the moving
//! average of such vectors.
//!
//! Norms are summed in f64 over parts that depend on a tensor's length alone, and the parts in
//! order: the bits are the same for any number of threads. Nothing allocates but [`Update::new`].
//! Everything here runs in the current rayon pool.

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::simd::vectorised;
use super::sums::dot;
use crate::optimiser::Norms;
use crate::{Optimiser, ParameterGroup};

/// Values a task works on.
const TASK: usize = 16 * 1024;

/// Where each tensor lies in the vector of all weights and how it is trained, with the memory that
/// its norms need.
pub(crate) struct Update {
    optimiser: Optimiser,
    tensors: Vec<(Range<usize>, ParameterGroup)>,
    squares: Vec<[f64; 2]>,
}

impl Update {
    /// Tensors in order, each with its group. Neighbours that need not be told apart become one.
    pub(crate) fn new(
        optimiser: Optimiser,
        tensors: impl IntoIterator<Item = (Range<usize>, ParameterGroup)>,
    ) -> Self {
        let mut runs: Vec<(Range<usize>, ParameterGroup)> = vec![];
        for (range, group) in tensors {
            match runs.last_mut() {
                Some((last, same))
                    if last.end == range.start
                        && *same == group
                        && !optimiser.needs_norms(&group) =>
                {
                    last.end = range.end;
                }
                Some(_) | None => runs.push((range, group)),
            }
        }
        let most = runs.iter().map(|(range, _)| range.len().div_ceil(TASK));
        Update { optimiser, squares: vec![[0.0; 2]; most.max().unwrap_or(0)], tensors: runs }
    }

    /// How weights move.
    pub(crate) fn optimiser(&self) -> Optimiser {
        self.optimiser
    }

    /// One step; `number` steps of the run came before. What slots the optimiser does not have may
    /// be empty.
    pub(crate) fn run(
        &mut self,
        arch: Arch,
        rate: f32,
        number: u64,
        weights: &mut [f32],
        slots: [&mut [f32]; 2],
        gradients: &[f32],
    ) {
        let optimiser = self.optimiser;
        let [first, second] = slots;
        let trained = |(_, group): &&(_, ParameterGroup)| group.own_steps_before(number).is_some();
        for (range, group) in self.tensors.iter().filter(trained) {
            let (weights, gradients) = (&mut weights[range.clone()], &gradients[range.clone()]);
            let norms = match optimiser.needs_norms(group) {
                true => norms(arch, weights, gradients, &mut self.squares),
                false => Norms { weights: 0.0, gradient: 0.0 },
            };
            let step = Step { optimiser, rate, number, group: *group, norms };
            let first = &mut first[range.clone()];
            let second = if optimiser.slots() > 1 { &mut second[range.clone()] } else { &mut [] };
            step.over(arch, weights, [first, second], gradients);
        }
    }
}

/// All that a task is told.
#[derive(Clone, Copy)]
struct Step {
    optimiser: Optimiser,
    rate: f32,
    number: u64,
    group: ParameterGroup,
    norms: Norms,
}

impl Step {
    fn over(
        &self,
        arch: Arch,
        weights: &mut [f32],
        [first, second]: [&mut [f32]; 2],
        gradients: &[f32],
    ) {
        vectorised! {
            fn task<'a>(s: &'a Step, w: &'a mut [f32], slots: [&'a mut [f32]; 2], g: &'a [f32]) {
                s.optimiser.apply(s.rate, s.number, &s.group, w, slots, g, s.norms);
            }
        }
        let all = (weights.par_chunks_mut(TASK))
            .zip(first.par_chunks_mut(TASK))
            .zip(gradients.par_chunks(TASK));
        match second.is_empty() {
            true => all.for_each(|((w, a), g)| task(arch, self, w, [a, &mut []], g)),
            false => (all.zip(second.par_chunks_mut(TASK)))
                .for_each(|(((w, a), g), b)| task(arch, self, w, [a, b], g)),
        }
    }
}

/// The lengths of a tensor's weights and gradient.
fn norms(arch: Arch, weights: &[f32], gradient: &[f32], squares: &mut [[f64; 2]]) -> Norms {
    vectorised! {
        fn task<'a>(w: &'a [f32], g: &'a [f32], squares: &'a mut [f64; 2]) {
            *squares = [dot(w, w), dot(g, g)];
        }
    }
    let squares = &mut squares[..weights.len().div_ceil(TASK)];
    (squares.par_iter_mut())
        .zip(weights.par_chunks(TASK).zip(gradient.par_chunks(TASK)))
        .for_each(|(squares, (w, g))| task(arch, w, g, squares));
    let norm = |which: usize| squares.iter().map(|s| s[which]).sum::<f64>().sqrt();
    Norms { weights: norm(0), gradient: norm(1) }
}

/// The exponential moving average: target ← m · target + (1 − m) · source.
pub(crate) fn ema(arch: Arch, m: f32, target: &mut [f32], source: &[f32]) {
    vectorised! {
        fn task<'a>(m: f32, target: &'a mut [f32], source: &'a [f32]) {
            let rest = 1.0 - m;
            for (t, s) in target.iter_mut().zip(source) {
                *t = m * *t + rest * s;
            }
        }
    }
    let tasks = target.par_chunks_mut(TASK).zip(source.par_chunks(TASK));
    tasks.for_each(|(target, source)| task(arch, m, target, source));
}

#[cfg(test)]
mod tests;
