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

use crate::config::{FeatureSource, Preset, RunConfig};
use crate::discovery::Neighbourhoods;
use crate::methods::and::memory_row_bytes;
use crate::methods::chain::{Chain, Head, momentum_at};
use crate::methods::memory::{Memory, PROJECTED};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{
    Embeds, MemorySettings, Method, MethodKind, MethodSpec, Round, Setup, SiameseSettings,
    StateDict, StateError, ViewPasses, ViewSettings, ViewStatistics,
};

/// Compare views, and draw them towards discovered neighbours in a memory.
pub static ANCHORHOOD: MethodSpec = MethodSpec {
    name: "anchorhood",
    summary: "Compare views, and draw them towards discovered neighbours in a memory",
    reference: "AND with the views and the projector of SimCLR",
    kind: MethodKind::Views,
    embeds: Embeds::BeforeFc,
    discovers: true,
    colours: None,
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
    multi_process: Ok(()),
    recipe,
    memory_bytes: |setup, config| {
        let row = memory_row_bytes(config, config.method.projector_features);
        Ok((AnchorhoodSettings::of(config).memory_bytes(setup)?, row))
    },
    build: |setup, config, _| Ok(Box::new(Anchorhood::new(setup, AnchorhoodSettings::of(config))?)),
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

/// The method's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchorhoodSettings {
    /// Of views and heads.
    pub siamese: SiameseSettings,
    /// Whether there is a predictor.
    pub predictor: bool,
    /// The memory.
    pub memory: MemorySettings,
    /// ω: the weight of the memory's loss; the rest is the views'.
    pub memory_weight: f32,
    /// Whether what is remembered comes from a second network.
    pub momentum_rows: bool,
    /// How far features are whitened that neighbourhoods are discovered from: 0 leaves them.
    pub whiten: f64,
}

/// An encoder, whose output is judged, a projector, a memory of what it makes of pictures.
pub struct Anchorhood {
    settings: AnchorhoodSettings,
    chain: Chain,
    target: Option<Chain>,
    memory: Memory,
    losses: Buffer,
    /// The gradient of the loss over the memory, until it is added.
    gradient: Buffer,
}

const PROJECTOR: usize = 1;
/// The schedule of the second network's momentum.
const MOMENTUM: Scalar = Scalar(1);

/// What the second network is shown of a step.
const ONE: ViewPasses = ViewPasses { views: 1, statistics: ViewStatistics::Each };

impl AnchorhoodSettings {
    /// As a configuration has them.
    pub(crate) fn of(config: &RunConfig) -> AnchorhoodSettings {
        let m = &config.method;
        AnchorhoodSettings {
            siamese: m.siamese(),
            predictor: m.predictor,
            memory: config.memory(),
            memory_weight: m.memory_weight as f32,
            momentum_rows: m.momentum_rows,
            whiten: m.whiten,
        }
    }

    fn heads(&self) -> Vec<Head> {
        let s = &self.siamese;
        let projector = ("projector", s.projector, MlpEnd::UnitLength);
        let predictor = ("predictor", s.predictor, MlpEnd::UnitLength);
        [projector].into_iter().chain(self.predictor.then_some(predictor)).collect()
    }

    /// The second network's head, where there is one.
    fn follower(&self) -> Option<Head> {
        let head = ("target.projector", self.siamese.projector, MlpEnd::UnitLength);
        self.momentum_rows.then_some(head)
    }

    /// Bytes of the networks, without the memory.
    pub fn memory_bytes(&self, setup: &Setup) -> Result<usize> {
        let own = Chain::memory_bytes(setup, self.siamese.passes, &self.heads())?;
        let follower = self.follower().map(|head| Chain::memory_bytes(setup, ONE, &[head]));
        Ok(own + follower.transpose()?.unwrap_or(0))
    }
}

impl Anchorhood {
    /// At the beginning of a run.
    pub fn new(setup: Setup, settings: AnchorhoodSettings) -> Result<Self> {
        let chain = Chain::new(&setup, settings.siamese.passes, "", &settings.heads())?;
        let target = settings.follower().map(|head| Chain::new(&setup, ONE, "target", &[head]));
        let (rows, dim) = (chain.rows(), settings.siamese.projector.features);
        Ok(Anchorhood {
            memory: Memory::new(&setup, &settings.memory, PROJECTED, dim)?,
            losses: setup.device.zeros(rows)?,
            gradient: setup.device.zeros(rows * dim)?,
            settings,
            chain,
            target: target.transpose()?,
        })
    }

    /// The weight of the memory's loss: it waits for neighbourhoods.
    fn memory_weight(&self) -> f32 {
        match self.memory.neighbourhoods.k() {
            0 => 0.0,
            _ => self.settings.memory_weight,
        }
    }

    /// The gradient of both losses.
    fn losses(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let (s, weight) = (self.settings, self.memory_weight());
        let (rows, gradient) = self.chain.last().output_and_gradient();
        let (views, dim) = (s.siamese.passes.views, s.siamese.projector.features);
        let between_views =
            Loss { rows: &mut self.losses, gradient: &mut *gradient, weight: 1.0 - weight };
        stream.contrastive(rows, views, dim, s.siamese.temperature, between_views)?;
        if weight == 0.0 {
            return Ok(());
        }
        let over_the_memory = Loss { rows: &mut self.losses, gradient: &mut self.gradient, weight };
        let temperature = s.memory.temperature;
        self.memory.loss(stream, rows, temperature, batch, over_the_memory)?;
        stream.add(&self.gradient, gradient)
    }
}

impl Method for Anchorhood {
    fn name(&self) -> &'static str {
        ANCHORHOOD.name
    }

    fn views(&self) -> Vec<ViewSettings> {
        let further = usize::from(self.target.is_some());
        vec![ViewSettings::default(); self.settings.siamese.passes.views + further]
    }

    fn scalars(&self, done: f64) -> Vec<f32> {
        let momentum = momentum_at(self.settings.siamese.momentum, done);
        self.target.iter().map(|_| momentum).collect()
    }

    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        let settings = self.settings.memory;
        if round.round == 0 && settings.fill {
            let features = (round.features)(self.chain.encoder())?;
            let rows = self.chain.infer_projector(features)?;
            self.memory.fill(round.device, rows)?;
        }
        let (encoder, power) = (self.chain.encoder(), self.settings.whiten);
        self.memory.discover(round, &settings, |round| {
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
        let (views, rate) = (self.settings.siamese.passes.views, self.settings.memory.rate);
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

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<(), StateError> {
        self.memory.restore(device, state)
    }

    fn neighbourhoods(&self) -> Option<&Neighbourhoods> {
        Some(&self.memory.neighbourhoods)
    }
}
