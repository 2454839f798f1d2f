//! SimSiam: *Exploring Simple Siamese Representation Learning* (Chen & He, CVPR 2021), and with
//! more than two views FastSiam (Pototzky et al., 2022).
//!
//! From one view a predictor is to say what the projector makes of the others. No other picture is
//! needed, nothing is remembered; that the targets are held constant (stop-gradient) keeps all
//! pictures from becoming one. With z the projector's output, p the predictor's of it, and V views:
//!
//! ```text
//! ℓ_v = − cos(p_v, stop(mean of z_w over the views w ≠ v))
//! ```
//!
//! The encoder's output before the projector is judged.
//!
//! Recipe for 32×32 (FastSiam as in lightly's benchmark): four views, SGD at 0.06 whatever the
//! batch, momentum 0.9, weight decay 5e-4, cosine, batch 128; crops of 0.2 to 1, mirrored, jitter
//! with 0.8, grey with 0.2, no blur; projector 512 → 2048 → 2048 with batch norm after both layers,
//! predictor 2048 → 512 → 2048.
//!
//! Adapted: two layers in the projector where the paper has three, as its own runs on 32×32 have;
//! weight decay and rate of the predictor as of all.

use anchorhood_engine::{Batch, Buffer, Network, Result, Stream};

use crate::config::{MethodConfig, Preset, RunConfig};
use crate::methods::chain::{Chain, Head};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{Method, MethodKind, MethodSpec, Setup, ViewSettings};

/// Predict from one view what the projector makes of the others.
pub static SIMSIAM: MethodSpec = MethodSpec {
    name: "simsiam",
    summary: "Predict from one view what the projector makes of the others",
    reference: "Chen & He, CVPR 2021; FastSiam: Pototzky et al., 2022",
    kind: MethodKind::Views,
    reads: &[
        "views",
        "view_statistics",
        "projector_layers",
        "projector_width",
        "projector_features",
        "projector_norm",
        "predictor_width",
        "whiten",
    ],
    passes_per_image: |method| method.views,
    recipe,
    memory_bytes: |setup, config| {
        let m = &config.method;
        Ok((Chain::memory_bytes(setup, m.passes(), &heads(m))?, 0))
    },
    build: |setup, config, _| Ok(Box::new(SimSiam::new(setup, &config.method)?)),
    ..MethodSpec::DEFAULT
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    views(c);
    (c.training.learning_rate, c.training.nesterov) = (0.06, false);
    (c.method.views, c.method.projector_features) = (4, 2048);
    views_of_preset(c, preset);
}

/// An encoder, whose output is judged, a projector and a predictor.
pub struct SimSiam {
    chain: Chain,
    targets: Buffer,
}

const PROJECTOR: usize = 1;

fn heads(m: &MethodConfig) -> [Head; 2] {
    [("projector", m.projector(), MlpEnd::Norm), ("predictor", m.predictor(), MlpEnd::Plain)]
}

impl SimSiam {
    /// At the beginning of a run.
    pub fn new(setup: Setup, m: &MethodConfig) -> Result<Self> {
        let chain = Chain::new(&setup, m.passes(), "", &heads(m))?;
        let targets = setup.device.zeros(chain.rows() * chain.features())?;
        Ok(SimSiam { chain, targets })
    }
}

impl Method for SimSiam {
    fn views(&self) -> Vec<ViewSettings> {
        self.chain.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let (views, dim) = (self.chain.views(), self.chain.features());
        let projected = self.chain.output(PROJECTOR);
        stream.mean_of_others(projected, views, dim, false, &mut self.targets)?;
        let (predicted, loss) = self.chain.output_and_loss();
        stream.cosine(predicted, &self.targets, dim, loss)?;
        self.chain.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.chain.networks()
    }
}
