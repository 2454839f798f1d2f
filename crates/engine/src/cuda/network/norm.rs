//! Batch norms, behind a convolution or on their own: on the chip where it holds the tensor, else
//! in two kernels.

use super::State;
use super::walk::Walk;
use crate::cuda::launch::{Applied, Gradients, GroupSums};
use crate::cuda::profile::Part;
use crate::walk::{Layer, Pass};
use crate::{Norm, Result};

impl Walk<'_> {
    pub(crate) fn batch_norm_layer(&self, layer: &Layer, norm: Norm) -> Result<()> {
        let (state, e) = (self.state, self.state.io(layer));
        match layer.pass {
            Pass::Forward => {
                state.part(Part::NormForward, || state.normalise(layer, norm, e.x, 0, false))
            }
            Pass::Infer(_) => state.infer_norm(layer, norm, [e.x, 0, e.y], false),
            Pass::Backward => {
                state.part(Part::NormBackward, || state.norm_backward(layer, norm, e.x, false))?;
                match e.skip {
                    true => Ok(()),
                    false => state.kernels().pass_gradient(0, e.dy, e.accumulate, e.len, e.dx),
                }
            }
        }
    }
}

impl State {
    pub(super) fn normalise(
        &self,
        layer: &Layer,
        norm: Norm,
        before: u64,
        residual: u64,
        relu: bool,
    ) -> Result<()> {
        let (i, node) = (layer.i, layer.node);
        let (k, t) = (self.kernels(), self.norm_tensors(i, node));
        let applied = Applied { x: before, residual, relu, y: self.value(i) };
        let synced = self.sync_norm();
        if let (Some(cut), None) = (&self.on_chip[i], &synced) {
            let meeting = self.meeting(i, node, false);
            return k.norm_forward_on_chip(cut, norm, &t, meeting, &applied, self.relu_mask(i));
        }
        let (r, s) = (self.reduction(node), self.sums());
        k.statistics(&r, before, &s)?;
        let sums = match synced {
            None => GroupSums::of(&r, &s),
            Some(synced) => synced.statistics(self, &r, before, &s)?,
        };
        k.apply(&r, norm, &t, Some(sums), &applied)
    }

    pub(super) fn infer_norm(
        &self,
        layer: &Layer,
        norm: Norm,
        [x, residual, y]: [u64; 3],
        relu: bool,
    ) -> Result<()> {
        let applied = Applied { x, residual, relu, y };
        let (r, t) = (self.reduction(layer.node), self.norm_tensors(layer.i, layer.node));
        self.kernels().apply(&r, norm, &t, None, &applied)
    }

    /// Through ReLU, residual add and batch norm: the gradient of the layer's output becomes, in
    /// place, that of the values before the norm.
    pub(super) fn norm_backward(
        &self,
        layer: &Layer,
        norm: Norm,
        before: u64,
        relu: bool,
    ) -> Result<()> {
        let (i, node) = (layer.i, layer.node);
        // Where a residual was added, only the output can tell what the ReLU cut off. Without ReLU
        // it is not kept, and its place may hold something else by now.
        let y = if relu && node.inputs.len() > 1 { self.value(i) } else { 0 };
        let first = node.norm_parameters();
        let (residual, accumulate) = self.residual_gradient(layer);
        let gradients = Gradients {
            x: before,
            y,
            dy: self.gradient(i),
            relu,
            dgamma: self.parameters.gradient(first),
            dbeta: self.parameters.gradient(first + 1),
            residual,
            accumulate,
        };
        let (k, t, synced) = (self.kernels(), self.norm_tensors(i, node), self.sync_norm());
        // Blocks that wait for each other need the whole chip, and so may sums that wait for other
        // processes: one of them alone.
        let among_others = self.carrier.as_ref().is_some_and(|c| c.nccl.ranks() > 1);
        if let (Some(cut), None, false) = (&self.on_chip[i], &synced, among_others) {
            let meeting = self.meeting(i, node, true);
            return k.norm_backward_on_chip(cut, norm, &t, meeting, &gradients, self.relu_mask(i));
        }
        let (r, s) = (self.reduction(node), self.sums());
        k.backward_sums(&r, &t, &s, &gradients)?;
        let Some(synced) = synced else {
            return k.norm_gradients(&r, norm, &t, GroupSums::of(&r, &s), &gradients);
        };
        let sums = synced.gradients(self, &r, &t, &s, &gradients)?;
        let values_alone = Gradients { dgamma: 0, dbeta: 0, ..gradients };
        k.norm_gradients(&r, norm, &t, sums, &values_alone)
    }
}
