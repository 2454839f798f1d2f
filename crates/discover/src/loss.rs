//! What a batch is drawn towards: Eq. 7, −Σ log p_ii over single pictures − Σ log Σ_{j ∈ N_k(i)} p_ij over anchors.
//!
//! p_ij (Eq. 2) is the softmax of feature i over all rows of the memory. A single picture's only positive is itself, so
//! both sums are one: −log Σ p over the positives that [`Neighbourhoods::positives`](crate::Neighbourhoods::positives)
//! gives. As in the authors' code it is meaned over the batch, not summed, and the memory is held constant: of the
//! gradients, only those of the features remain,
//!
//! - Eq. 9, single: ∂L/∂x_i = (Σ_k p_ik·x̃_k − x̃_i) / τ,
//! - Eq. 10, anchor: ∂L/∂x_i = (Σ_k p_ik·x̃_k − Σ_{k ∈ N_k(i)} p̃_ik·x̃_k) / τ, p̃ being p within the neighbourhood,
//!
//! which are again one, each divided by the batch size.

use crate::MemoryBank;
use anchorhood_engine::{Device, Positives, Result};

/// Eq. 7 as a mean over the batch. Writes one loss per picture to `losses`, and to `gradient` (`=`) the gradient with
/// respect to `features`; gives their mean.
pub fn neighbourhood_loss<D: Device>(
    device: &D,
    features: &D::Buffer,
    bank: &MemoryBank<D>,
    tau: f32,
    positives: &Positives,
    losses: &mut [f32],
    gradient: &mut D::Buffer,
) -> Result<f64> {
    device.softmax_loss(
        features,
        bank.buffer(),
        bank.dim(),
        tau,
        positives,
        losses,
        gradient,
    )?;
    let sum: f64 = losses.iter().map(|l| f64::from(*l)).sum();
    Ok(sum / losses.len().max(1) as f64)
}
