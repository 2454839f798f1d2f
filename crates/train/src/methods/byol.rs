//! BYOL: *Bootstrap Your Own Latent* (Grill et al., NeurIPS 2020).
//!
//! Like SimSiam, a predictor is to say from one view what becomes of the others; but what it is to
//! say comes from a second network, the target, which is never trained: it follows the first one
//! slowly (an exponential moving average, EMA). With p the online predictor's output, z′ the target
//! projector's, and V views:
//!
//! ```text
//! ℓ_v = − cos(p_v, mean of z′_w / |z′_w| over the views w ≠ v)
//! target ← m · target + (1 − m) · online,   m = 1 − (1 − m₀) · (cos(π t) + 1) / 2
//! ```
//!
//! The loss is the paper's 2 − 2 cos, but for scale and constant; t is the share of the run that is
//! done.
//!
//! The online encoder's output before the projector is judged.
//!
//! Recipe for 32×32: m₀ = 0.99, projector 512 → 4096 → 256 and predictor 256 → 4096 → 256 with
//! batch norm in between, SGD at 0.06 and batch 128 with weight decay 5e-4 (lightly's benchmark) or
//! LARS, cosine, crops of 0.2 to 1, mirrored, jitter with 0.8, grey with 0.2.
//!
//! Adapted: a batch norm at the end of the projectors, as SimSiam has it; any number of views; the
//! paper's views differ (blur with 1.0 and 0.1, solarise with 0 and 0.2), which helps on
//! photographs of 224 pixels and is a setting here, off at 32; SGD rather than LARS.

use anchorhood_engine::{Batch, Buffer, Loss, Network, Result, Scalar, Stream};

use crate::config::{Preset, RunConfig};
use crate::methods::chain::{Chain, Head, momentum_at};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{
    Embeds, Method, MethodKind, MethodSpec, Setup, SiameseSettings, ViewSettings,
};

/// Predict from one view what a momentum encoder makes of the others.
pub static BYOL: MethodSpec = MethodSpec {
    name: "byol",
    summary: "Predict from one view what a momentum encoder makes of the others",
    reference: "Grill et al., NeurIPS 2020",
    kind: MethodKind::Views,
    embeds: Embeds::BeforeFc,
    discovers: false,
    colours: None,
    reads: &[
        "views",
        "view_statistics",
        "views_differ",
        "momentum",
        "projector_layers",
        "projector_width",
        "projector_features",
        "projector_norm",
        "predictor_width",
        "whiten",
    ],
    passes_per_image: |method| method.views,
    multi_process: Ok(()),
    recipe,
    memory_bytes: |setup, config| Ok((Byol::memory_bytes(setup, &config.method.siamese())?, 0)),
    build: |setup, config, _| Ok(Box::new(Byol::new(setup, config.method.siamese())?)),
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    views(c);
    (c.training.learning_rate, c.training.nesterov) = (0.06, false);
    let m = &mut c.method;
    (m.projector_width, m.projector_features, m.predictor_width) = (4096, 256, 4096);
    views_of_preset(c, preset);
}

/// The online networks, of which the encoder is judged, and the target's.
pub struct Byol {
    settings: SiameseSettings,
    online: Chain,
    target: Chain,
    targets: Buffer,
    losses: Buffer,
}

const TARGET_PROJECTOR: usize = 1;
/// The schedule of m.
const MOMENTUM: Scalar = Scalar(1);

/// Those of the online networks and the target's.
fn heads(settings: &SiameseSettings) -> ([Head; 2], [Head; 1]) {
    let projector = |name| (name, settings.projector, MlpEnd::Norm);
    let predictor = ("predictor", settings.predictor, MlpEnd::Plain);
    ([projector("projector"), predictor], [projector("target.projector")])
}

impl Byol {
    /// Bytes of the networks.
    pub fn memory_bytes(setup: &Setup, settings: &SiameseSettings) -> Result<usize> {
        let (own, follower) = heads(settings);
        let online = Chain::memory_bytes(setup, settings.passes, &own)?;
        Ok(online + Chain::memory_bytes(setup, settings.passes, &follower)?)
    }

    /// At the beginning of a run, where the target is what the online networks are.
    pub fn new(setup: Setup, settings: SiameseSettings) -> Result<Self> {
        let (own, follower) = heads(&settings);
        let online = Chain::new(&setup, settings.passes, "", &own)?;
        let target = Chain::new(&setup, settings.passes, "target", &follower)?;
        let rows = online.rows();
        Ok(Byol {
            targets: setup.device.zeros(rows * settings.projector.features)?,
            losses: setup.device.zeros(rows)?,
            settings,
            online,
            target,
        })
    }
}

impl Method for Byol {
    fn name(&self) -> &'static str {
        BYOL.name
    }

    fn views(&self) -> Vec<ViewSettings> {
        let of = |blur, solarise| ViewSettings { blur: Some(blur), solarise: Some(solarise) };
        let paper = [of(1.0, 0.0), of(0.1, 0.2)];
        if self.settings.views_differ {
            (0..self.settings.passes.views).map(|v| paper[v % 2]).collect()
        } else {
            self.settings.passes.alike()
        }
    }

    fn scalars(&self, done: f64) -> Vec<f32> {
        vec![momentum_at(self.settings.momentum, done)]
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.target.forward(stream, batch)?;
        self.online.forward(stream, batch)?;
        let (views, dim) = (self.settings.passes.views, self.settings.projector.features);
        let projected = self.target.output(TARGET_PROJECTOR);
        stream.mean_of_others(projected, views, dim, true, &mut self.targets)?;
        let (predicted, gradient) = self.online.last().output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.cosine(predicted, &self.targets, dim, loss)?;
        self.online.learn(stream)?;
        self.target.follow(stream, &self.online, MOMENTUM)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        let mut all = self.online.networks();
        all.extend(self.target.networks());
        all
    }
}
