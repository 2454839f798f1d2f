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

use anchorhood_engine::{Batch, Buffer, Network, Result, Scalar, Stream};

use crate::config::{MethodConfig, Preset, RunConfig};
use crate::methods::chain::{Chain, Head, momentum_at};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{Method, MethodKind, MethodSpec, Setup, ViewSettings};

/// Predict from one view what a momentum encoder makes of the others.
pub static BYOL: MethodSpec = MethodSpec {
    name: "byol",
    summary: "Predict from one view what a momentum encoder makes of the others",
    reference: "Grill et al., NeurIPS 2020",
    kind: MethodKind::Views,
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
    recipe,
    memory_bytes: |setup, config| {
        let (m, (online, target)) = (&config.method, heads(&config.method));
        let online = Chain::memory_bytes(setup, m.passes(), &online)?;
        Ok((online + Chain::memory_bytes(setup, m.passes(), &target)?, 0))
    },
    build: |setup, config, _| Ok(Box::new(Byol::new(setup, &config.method)?)),
    ..MethodSpec::DEFAULT
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
    /// Whether views differ as the paper has it.
    views_differ: bool,
    /// m₀.
    momentum: f64,
    online: Chain,
    target: Chain,
    targets: Buffer,
}

const TARGET_PROJECTOR: usize = 1;
/// The schedule of m.
const MOMENTUM: Scalar = Scalar(1);

/// Those of the online networks and the target's.
fn heads(m: &MethodConfig) -> ([Head; 2], [Head; 1]) {
    let projector = |name| (name, m.projector(), MlpEnd::Norm);
    let predictor = ("predictor", m.predictor(), MlpEnd::Plain);
    ([projector("projector"), predictor], [projector("target.projector")])
}

impl Byol {
    /// At the beginning of a run, where the target is what the online networks are.
    pub fn new(setup: Setup, m: &MethodConfig) -> Result<Self> {
        let (online, target) = heads(m);
        let online = Chain::new(&setup, m.passes(), "", &online)?;
        let target = Chain::new(&setup, m.passes(), "target", &target)?;
        Ok(Byol {
            views_differ: m.views_differ,
            momentum: m.momentum,
            targets: setup.device.zeros(online.rows() * online.features())?,
            online,
            target,
        })
    }
}

impl Method for Byol {
    fn views(&self) -> Vec<ViewSettings> {
        let of = |blur, solarise| ViewSettings { blur: Some(blur), solarise: Some(solarise) };
        let paper = [of(1.0, 0.0), of(0.1, 0.2)];
        if self.views_differ {
            (0..self.online.views()).map(|v| paper[v % 2]).collect()
        } else {
            self.online.alike()
        }
    }

    fn scalars(&self, done: f64) -> Vec<f32> {
        vec![momentum_at(self.momentum, done)]
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.target.forward(stream, batch)?;
        self.online.forward(stream, batch)?;
        let (views, dim) = (self.online.views(), self.online.features());
        let projected = self.target.output(TARGET_PROJECTOR);
        stream.mean_of_others(projected, views, dim, true, &mut self.targets)?;
        let (predicted, loss) = self.online.output_and_loss();
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
