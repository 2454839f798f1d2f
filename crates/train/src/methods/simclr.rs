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

use anchorhood_engine::{Batch, Buffer, Loss, Network, Result, Stream};

use crate::config::{Preset, RunConfig};
use crate::methods::chain::{Chain, Head};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{
    Embeds, Method, MethodKind, MethodSpec, Setup, SiameseSettings, ViewSettings, ViewStatistics,
};

/// Tell the views of an image from those of the batch's other images.
pub static SIMCLR: MethodSpec = MethodSpec {
    name: "simclr",
    summary: "Tell the views of an image from those of the batch's other images",
    reference: "Chen et al., ICML 2020",
    kind: MethodKind::Views,
    embeds: Embeds::BeforeFc,
    discovers: false,
    colours: None,
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
    multi_process: Ok(()),
    recipe,
    memory_bytes: |setup, config| Ok((SimClr::memory_bytes(setup, &config.method.siamese())?, 0)),
    build: |setup, config, _| Ok(Box::new(SimClr::new(setup, config.method.siamese())?)),
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
    settings: SiameseSettings,
    chain: Chain,
    losses: Buffer,
}

fn heads(settings: &SiameseSettings) -> [Head; 1] {
    [("projector", settings.projector, MlpEnd::UnitLength)]
}

impl SimClr {
    /// Bytes of the networks.
    pub fn memory_bytes(setup: &Setup, settings: &SiameseSettings) -> Result<usize> {
        Chain::memory_bytes(setup, settings.passes, &heads(settings))
    }

    /// At the beginning of a run.
    pub fn new(setup: Setup, settings: SiameseSettings) -> Result<Self> {
        let chain = Chain::new(&setup, settings.passes, "", &heads(&settings))?;
        Ok(SimClr { losses: setup.device.zeros(chain.rows())?, settings, chain })
    }
}

impl Method for SimClr {
    fn name(&self) -> &'static str {
        SIMCLR.name
    }

    fn views(&self) -> Vec<ViewSettings> {
        self.settings.passes.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let s = &self.settings;
        let (rows, gradient) = self.chain.last().output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        let (views, dim) = (s.passes.views, s.projector.features);
        stream.contrastive(rows, views, dim, s.temperature, loss)?;
        self.chain.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.chain.networks()
    }
}
