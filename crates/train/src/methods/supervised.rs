//! Cross-entropy on labels: the ceiling that features without labels are measured against.
//!
//! The same networks, augmentation, optimiser and schedule as any method's, with a value of the
//! result (a logit) for each class. It is the only method that is given labels; it has no memory
//! and no neighbourhoods, and a round is no more than a restart of the schedule. With logits l and
//! class c of picture i:
//!
//! ```text
//! ℓ_i = − ln [ exp(l_c) / Σ_k exp(l_k) ]
//! ```
//!
//! The recipe is AND's, in one round. The logits are judged, brought to unit length.

use anchorhood_engine::{Batch, Buffer, Error, Loss, Network, Result, Stream};

use crate::methods::recipes::one_round;
use crate::methods::{Embeds, Method, MethodKind, MethodSpec, Setup};

/// Learn labels by cross-entropy: the ceiling for features without labels.
pub static SUPERVISED: MethodSpec = MethodSpec {
    name: "supervised",
    summary: "Learn labels by cross-entropy: the ceiling for features without labels",
    reference: "",
    kind: MethodKind::Supervised,
    embeds: Embeds::Fc,
    recipe: |c, _| one_round(c),
    memory_bytes: |setup, _| Ok((setup.options(setup.batch).memory_bytes(setup.graph)?, 4)),
    build: |setup, _, labels| Ok(Box::new(Supervised::new(setup, labels)?)),
    ..MethodSpec::DEFAULT
};

/// The network and the labels.
pub struct Supervised {
    network: Network,
    /// The class of every picture.
    labels: Buffer<u32>,
    losses: Buffer,
}

impl Supervised {
    /// At the beginning of a run: a graph with a value for each class, and the class of every
    /// picture.
    pub fn new(setup: Setup, labels: &[u32]) -> Result<Self> {
        let network = setup.encoder(&setup.options(setup.batch))?;
        let classes = network.features();
        if let Some(label) = labels.iter().find(|l| **l as usize >= classes) {
            return Err(Error::Plan(format!("label {label} of {classes} classes")));
        }
        Ok(Supervised {
            network,
            labels: setup.device.upload_indices(labels)?,
            losses: setup.device.zeros(setup.batch)?,
        })
    }
}

impl Method for Supervised {
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.network.forward(stream, 0, batch.view(0))?;
        let classes = self.network.features();
        let (logits, gradient) = self.network.output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.cross_entropy(logits, classes, &self.labels, batch.indices(), loss)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }
}
