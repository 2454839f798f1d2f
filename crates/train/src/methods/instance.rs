//! Instance discrimination: *Unsupervised Feature Learning via Non-Parametric Instance
//! Discrimination* (Wu et al., CVPR 2018), with the exact softmax over all pictures.
//!
//! Every picture is a class of its own: a step draws the features of a batch towards what the
//! memory holds of the same pictures, and away from all others. With v of unit length, x̃ the
//! memory, N pictures:
//!
//! ```text
//! ℓ_i = − ln [ exp(v_i·x̃_i / τ) / Σ_{j ≤ N} exp(v_i·x̃_j / τ) ]
//! x̃_i ← normalise((1 − η) · x̃_i + η · v_i)
//! ```
//!
//! This is Anchor Neighbourhood Discovery without discovery, in every round; its recipe is AND's.
//! The feature that is compared is also the one that is judged.
//!
//! Adapted: the paper estimates the softmax from 4,096 samples (NCE); here it is exact, and no
//! proximal term is needed.

use crate::methods::and::{and, remembered};
use crate::methods::{Embeds, MethodKind, MethodSpec};

/// Tell every image from all others, by a memory of their features.
pub static INSTANCE: MethodSpec = MethodSpec {
    name: "instance",
    summary: "Tell every image from all others, by a memory of their features",
    reference: "Wu et al., CVPR 2018",
    kind: MethodKind::Memory,
    embeds: Embeds::Output,
    recipe: |c, _| c.training.rounds = 0,
    memory_bytes: remembered,
    build: and,
    ..MethodSpec::DEFAULT
};
