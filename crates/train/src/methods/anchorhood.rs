//! Anchorhood: AND's exact memory, entropy and curriculum, with several views of a picture and a
//! projector.
//!
//! Views of one picture are to be alike and unlike all other pictures' of the batch, as in SimCLR;
//! and every view is drawn, among all pictures remembered, towards its own picture and, once
//! neighbourhoods are discovered, towards the neighbours of an anchor, as in AND. With z the
//! projector's output of unit length of each of V views, x̃ the memory of such rows, ω the weight
//! of the memory, P(i) the positives:
//!
//! ```text
//! ℓ_v = (1 − ω) · NT-Xent(z_v; τ_views)
//!       − ω · ln [ Σ_{p in P(i)} exp(z_v·x̃_p / τ) / Σ_{j ≤ N} exp(z_v·x̃_j / τ) ]
//! x̃_i ← normalise((1 − η) · x̃_i + η · z_0)
//! ```
//!
//! With momentum rows, what is remembered comes from a second network instead, which follows the
//! first one slowly (an exponential moving average) and sees one view more; it is written before
//! the loss, so that a view's own row is of now.
//!
//! Before every round from some share of the rounds on, neighbourhoods are discovered from the
//! encoder's features, which are judged and better than the projector's, whitened as those are:
//! sure anchors then have purer neighbourhoods. One cosine spans all rounds.

use anchorhood_engine::vectors::{Whitening, to_unit_length};
use anchorhood_engine::{Batch, Buffer, Device, Loss, Network, Result, Scalar, Stream};

use crate::config::{DiscoveryConfig, FeatureSource, MethodConfig, Preset, RunConfig};
use crate::discovery::Neighbourhoods;
use crate::methods::and::memory_row_bytes;
use crate::methods::chain::{Chain, Head, momentum_at};
use crate::methods::memory::{Memory, PROJECTED};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{
    Method, MethodKind, MethodSpec, Round, Setup, StateDict, ViewPasses, ViewSettings,
    ViewStatistics,
};

/// Compare views, and draw them towards discovered neighbours in a memory.
pub static ANCHORHOOD: MethodSpec = MethodSpec {
    name: "anchorhood",
    summary: "Compare views, and draw them towards discovered neighbours in a memory",
    reference: "AND with the views and the projector of SimCLR",
    kind: MethodKind::Views,
    discovers: true,
    reads: &[
        "views",
        "view_statistics",
        "temperature",
        "momentum",
        "momentum_rows",
        "memory_weight",
        "projector_layers",
        "projector_width",
        "projector_features",
        "projector_norm",
        "predictor",
        "predictor_width",
        "whiten",
    ],
    passes_per_image: |method| method.views,
    recipe,
    memory_bytes: |setup, config| {
        let m = &config.method;
        let own = Chain::memory_bytes(setup, m.passes(), &heads(m))?;
        let target = follower(m).map(|head| Chain::memory_bytes(setup, ONE, &[head]));
        let row = memory_row_bytes(config, m.projector_features);
        Ok((own + target.transpose()?.unwrap_or(0), row))
    },
    build: |setup, config, _| Ok(Box::new(Anchorhood::new(setup, config)?)),
    ..MethodSpec::DEFAULT
};

/// Neighbours pay late: the first rounds are instance discrimination.
fn recipe(c: &mut RunConfig, preset: Preset) {
    views(c);
    let (t, m, d) = (&mut c.training, &mut c.method, &mut c.discovery);
    (t.rounds, t.one_schedule) = (9, true);
    (t.batch, t.learning_rate, t.warm_up) = (256, 0.24, 5.0);
    c.augmentation.grey = 0.1;
    m.view_statistics = ViewStatistics::All;
    (m.temperature, m.memory_weight) = (0.2, 0.25);
    (d.temperature, d.neighbours, d.memory_rate) = (0.2, 5, 1.0);
    (d.each, d.begin) = (true, 0.5);
    d.discover_from = FeatureSource::Recomputed;
    views_of_preset(c, preset);
    match preset {
        Preset::Paper => {}
        // Ten rounds of 50 epochs: 500 epochs of two views.
        Preset::Strong => (c.training.epochs, c.evaluation.every) = (50, 25),
        // Rounds that are not shorter than an epoch where there are many images, and of a few
        // epochs each, after which the features are judged: that embeds all images and takes as
        // long as a third of an epoch.
        Preset::Quick => (c.training.rounds, c.evaluation.every) = (4, 3),
    }
}

/// An encoder, whose output is judged, a projector, a memory of what it makes of pictures.
pub struct Anchorhood {
    settings: MethodConfig,
    discovery: DiscoveryConfig,
    chain: Chain,
    target: Option<Chain>,
    memory: Memory,
    /// The gradient of the loss over the memory, until it is added.
    gradient: Buffer,
}

const PROJECTOR: usize = 1;
/// The schedule of the second network's momentum.
const MOMENTUM: Scalar = Scalar(1);

/// What the second network is shown of a step.
const ONE: ViewPasses = ViewPasses { views: 1, statistics: ViewStatistics::Each };

fn heads(m: &MethodConfig) -> Vec<Head> {
    let projector = ("projector", m.projector(), MlpEnd::UnitLength);
    let predictor = ("predictor", m.predictor(), MlpEnd::UnitLength);
    [projector].into_iter().chain(m.predictor.then_some(predictor)).collect()
}

/// The second network's head, where there is one.
fn follower(m: &MethodConfig) -> Option<Head> {
    m.momentum_rows.then_some(("target.projector", m.projector(), MlpEnd::UnitLength))
}

impl Anchorhood {
    /// At the beginning of a run.
    pub fn new(setup: Setup, config: &RunConfig) -> Result<Self> {
        let m = &config.method;
        let chain = Chain::new(&setup, m.passes(), "", &heads(m))?;
        let target = follower(m).map(|head| Chain::new(&setup, ONE, "target", &[head]));
        let dim = chain.features();
        Ok(Anchorhood {
            memory: Memory::new(&setup, &config.discovery, PROJECTED, dim)?,
            gradient: setup.device.zeros(chain.rows() * dim)?,
            settings: m.clone(),
            discovery: config.discovery.clone(),
            chain,
            target: target.transpose()?,
        })
    }

    /// The weight of the memory's loss: it waits for neighbourhoods.
    fn memory_weight(&self) -> f32 {
        match self.memory.neighbourhoods.k() {
            0 => 0.0,
            _ => self.settings.memory_weight as f32,
        }
    }

    /// The gradient of both losses.
    fn losses(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let (views, dim, weight) =
            (self.chain.views(), self.chain.features(), self.memory_weight());
        let (rows, Loss { rows: losses, gradient, .. }) = self.chain.output_and_loss();
        let between_views =
            Loss { rows: &mut *losses, gradient: &mut *gradient, weight: 1.0 - weight };
        let temperature = self.settings.temperature as f32;
        stream.contrastive(rows, views, dim, temperature, between_views)?;
        if weight == 0.0 {
            return Ok(());
        }
        let over_the_memory = Loss { rows: losses, gradient: &mut self.gradient, weight };
        let temperature = self.discovery.temperature as f32;
        self.memory.loss(stream, rows, temperature, batch, over_the_memory)?;
        stream.add(&self.gradient, gradient)
    }
}

impl Method for Anchorhood {
    fn views(&self) -> Vec<ViewSettings> {
        let further = usize::from(self.target.is_some());
        vec![ViewSettings::default(); self.chain.views() + further]
    }

    fn scalars(&self, done: f64) -> Vec<f32> {
        let momentum = momentum_at(self.settings.momentum, done);
        self.target.iter().map(|_| momentum).collect()
    }

    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        if round.round == 0 && self.discovery.fill {
            let features = (round.features)(self.chain.encoder())?;
            let rows = self.chain.infer_projector(features)?;
            self.memory.fill(round.device, rows)?;
        }
        let (encoder, power) = (self.chain.encoder(), self.settings.whiten);
        self.memory.discover(round, &self.discovery, |round| {
            let (mut features, dim) = ((round.features)(encoder)?, encoder.features());
            if power > 0.0 {
                let together = round.device.communicator();
                if let Some(whitening) = Whitening::of_all(together, &features, dim, power)? {
                    features = whitening.apply(&features);
                }
            }
            to_unit_length(&mut features, dim);
            Ok((features, dim))
        })
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let (views, rate) = (self.chain.views(), self.discovery.memory_rate as f32);
        self.chain.forward(stream, batch)?;
        let bank = &mut self.memory.bank;
        if let Some(target) = &mut self.target {
            target.forward_from(stream, batch, views)?;
            bank.update(stream, batch.indices(), target.output(PROJECTOR), rate)?;
        }
        self.losses(stream, batch)?;
        let bank = &mut self.memory.bank;
        match &mut self.target {
            None => {
                let rows = self.chain.output(PROJECTOR);
                bank.update(stream, batch.indices(), rows, rate)?;
                self.chain.learn(stream)
            }
            Some(target) => {
                self.chain.learn(stream)?;
                target.follow(stream, &self.chain, MOMENTUM)
            }
        }
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        let mut all = self.chain.networks();
        all.extend(self.target.iter_mut().flat_map(Chain::networks));
        all
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        self.memory.state(device)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        self.memory.restore(device, state)
    }

    fn neighbourhoods(&self) -> Option<&Neighbourhoods> {
        Some(&self.memory.neighbourhoods)
    }
}
