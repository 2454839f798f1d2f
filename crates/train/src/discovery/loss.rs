//! What a batch is drawn towards: Eq. 7, −Σ log p_ii over single pictures − Σ log Σ_{j ∈ N_k(i)}
//! p_ij over anchors.
//!
//! p_ij (Eq. 2) is the softmax of feature i over all rows of the memory. A single picture's only
//! positive is itself, so both sums are one: −log Σ p over the positives that
//! [`Neighbourhoods::positives`](crate::discovery::Neighbourhoods::positives) gives. As in the authors' code
//! it is meaned over the batch, not summed, and the memory is held constant: of the gradients, only
//! those of the features remain,
//!
//! - Eq. 9, single: ∂L/∂x_i = (Σ_k p_ik·x̃_k − x̃_i) / τ,
//! - Eq. 10, anchor: ∂L/∂x_i = (Σ_k p_ik·x̃_k − Σ_{k ∈ N_k(i)} p̃_ik·x̃_k) / τ, p̃ being p within
//!   the neighbourhood,
//!
//! which are again one, each divided by the batch size.

use anchorhood_engine::{Buffer, DevicePositives, Loss, Result, RowSample, SoftmaxLoss, Stream};

use crate::discovery::MemoryBank;

/// Eq. 7 as a mean over the batch, part of the stream's step. `items` are the batch's pictures,
/// `positives` those of all pictures. With a `sample` of the memory's rows it is estimated from
/// these, which stand for all.
pub fn neighbourhood_loss(
    stream: &mut Stream,
    features: &Buffer,
    bank: &MemoryBank,
    tau: f32,
    positives: &DevicePositives,
    items: &Buffer<u32>,
    sample: Option<RowSample>,
    loss: Loss,
) -> Result<()> {
    let of = SoftmaxLoss {
        queries: features,
        keys: bank.buffer(),
        dim: bank.dim(),
        temperature: tau,
        positives,
        items: Some(items),
    };
    match sample {
        Some(sample) => stream.sampled_softmax_loss(&of, sample, loss),
        None => stream.softmax_loss(&of, loss),
    }
}
