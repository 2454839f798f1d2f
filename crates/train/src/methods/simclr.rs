//! SimCLR: *A Simple Framework for Contrastive Learning of Visual Representations* (Chen et al.,
//! ICML 2020).
//!
//! Views of one picture are to be alike, and unlike all other pictures' of the batch. With z the
//! projector's output of unit length, for each row i whose other views are P(i), over all other
//! rows of the batch (NT-Xent):
//!
//! ```text
//! ℓ_i = mean over p in P(i) of  − ln [ exp(z_i·z_p / τ) / Σ_{j ≠ i} exp(z_i·z_j / τ) ]
//! ```
//!
//! The gradient is that of every row, as query and as key. The encoder's output before the
//! projector is judged.
//!
//! Recipe for 32×32 (dkobak/simclr-cifar10): batch 512, SGD at 0.06 · batch / 256, weight decay
//! 5e-4, cosine, τ = 0.5, projector of two layers without batch norm (512 → 1024 → 128), crops of
//! 0.2 to 1, grey with 0.1, no blur.
//!
//! Adapted: any number of views (the paper has two); batch norm's statistics over all views or over
//! each; SGD where the paper has LARS and batches of thousands.

use anchorhood_engine::{Batch, Network, Result, Stream};

use crate::config::{MethodConfig, Preset, RunConfig};
use crate::methods::chain::{Chain, Head};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{Method, MethodKind, MethodSpec, Setup, ViewSettings, ViewStatistics};

/// Tell the views of an image from those of the batch's other images.
pub static SIMCLR: MethodSpec = MethodSpec {
    name: "simclr",
    summary: "Tell the views of an image from those of the batch's other images",
    reference: "Chen et al., ICML 2020",
    kind: MethodKind::Views,
    reads: &[
        "views",
        "view_statistics",
        "temperature",
        "projector_layers",
        "projector_width",
        "projector_features",
        "projector_norm",
        "whiten",
    ],
    passes_per_image: |method| method.views,
    recipe,
    memory_bytes: |setup, config| {
        let m = &config.method;
        Ok((Chain::memory_bytes(setup, m.passes(), &heads(m))?, 0))
    },
    build: |setup, config, _| Ok(Box::new(SimClr::new(setup, &config.method)?)),
    ..MethodSpec::DEFAULT
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    views(c);
    let (t, m) = (&mut c.training, &mut c.method);
    (t.batch, t.learning_rate, t.warm_up) = (512, 0.12, 10.0);
    c.augmentation.grey = 0.1;
    m.view_statistics = ViewStatistics::All;
    (m.projector_width, m.projector_norm) = (1024, false);
    views_of_preset(c, preset);
}

/// An encoder, whose output is judged, and a projector, whose output is contrasted.
pub struct SimClr {
    temperature: f32,
    chain: Chain,
}

fn heads(m: &MethodConfig) -> [Head; 1] {
    [("projector", m.projector(), MlpEnd::UnitLength)]
}

impl SimClr {
    /// At the beginning of a run.
    pub fn new(setup: Setup, m: &MethodConfig) -> Result<Self> {
        let chain = Chain::new(&setup, m.passes(), "", &heads(m))?;
        Ok(SimClr { temperature: m.temperature as f32, chain })
    }
}

impl Method for SimClr {
    fn views(&self) -> Vec<ViewSettings> {
        self.chain.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let (views, dim) = (self.chain.views(), self.chain.features());
        let (rows, loss) = self.chain.output_and_loss();
        stream.contrastive(rows, views, dim, self.temperature, loss)?;
        self.chain.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.chain.networks()
    }
}
