//! NAT, noise as targets: *Unsupervised Learning by Predicting Noise* (Bojanowski & Joulin, ICML
//! 2017).
//!
//! Each picture is given a point of the unit sphere, drawn at random and never moved, and its
//! feature is to go there. Which picture is given which point is not fixed: every third epoch
//! pictures change points so that features and points are as near as can be. With x the feature of
//! unit length, t the points, P all permutations:
//!
//! ```text
//! ℓ_i = − x_i · t_P(i)                  the paper's ½ |x − t|², but for a constant
//! P ← argmax_P Σ_i x_i · t_P(i)         within groups of 256 pictures (Hungarian method)
//! ```
//!
//! Points are spread evenly, so features cannot collapse; alike pictures get points that are near
//! each other. The network's last layer is judged.
//!
//! Recipe: SGD, batch 256, reassigned every 3 epochs, crops, mirrored; at 0.01 (the paper's, for
//! AlexNet), falling at milestones.
//!
//! Adapted for 32×32: points are changed between epochs, by features of the pictures as they are,
//! in groups drawn at random, rather than in the step and by its views, so that a step stays on the
//! device; points of `features` values (128); colours that vary in place of the gradients of grey
//! pictures.

use anchorhood_engine::{Batch, Buffer, Device, Error, Loss, Network, Result, Stream};

use crate::config::{Preset, RunConfig};
use crate::discovery::NoiseTargets;
use crate::methods::recipes::{one_round, photographs};
use crate::methods::{
    Embeds, EpochStart, Method, MethodKind, MethodSpec, PretextFigure, Setup, StateDict, Values,
};

/// Map images to fixed random points of the unit sphere.
pub static NAT: MethodSpec = MethodSpec {
    name: "nat",
    summary: "Map images to fixed random points of the unit sphere",
    reference: "Bojanowski & Joulin, ICML 2017",
    kind: MethodKind::Targets,
    embeds: Embeds::Output,
    recipe,
    memory_bytes: |setup, config| {
        let network = setup.options(setup.batch).memory_bytes(setup.graph)?;
        Ok((network, 8 * config.network.features))
    },
    build: |setup, _, _| Ok(Box::new(Nat::new(setup)?)),
    ..MethodSpec::DEFAULT
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    one_round(c);
    photographs(c);
    (c.training.batch, c.training.learning_rate) = match preset {
        Preset::Paper | Preset::Strong => (256, 0.01),
        Preset::Quick => (32, 0.03), // few steps
    };
}

/// Epochs from one change of points to the next.
const REASSIGN_EVERY: usize = 3;
/// Pictures that change points with each other at once.
const GROUP: usize = 256;
const OWNED: &str = "targets";
const FOUND: &str = "found";

/// The network and the points.
pub struct Nat {
    network: Network,
    targets: NoiseTargets,
    /// At the last change, shares of the pictures that were nearest to their own point of the
    /// group's, and that kept it.
    found: [f32; 2],
    /// Every picture's point, and those of the batch.
    rows: Buffer,
    of_batch: Buffer,
    losses: Buffer,
}

impl Nat {
    /// At the beginning of a run.
    pub fn new(setup: Setup) -> Result<Self> {
        let network = setup.encoder(&setup.options(setup.batch))?;
        let dim = network.features();
        let targets = NoiseTargets::new(setup.pictures, dim, setup.seed);
        Ok(Nat {
            rows: setup.device.hand_over(targets.rows())?,
            of_batch: setup.device.zeros(setup.batch * dim)?,
            losses: setup.device.zeros(setup.batch)?,
            found: [0.0; 2],
            network,
            targets,
        })
    }
}

impl Method for Nat {
    fn before_epoch(&mut self, start: &mut EpochStart) -> Result<()> {
        if !start.epoch.is_multiple_of(REASSIGN_EVERY) {
            return Ok(());
        }
        let own = (start.features)(&mut self.network)?;
        let (pictures, dim) = (self.targets.of().len(), self.network.features());
        let together = start.device.communicator();
        // Every process has all points, and pictures of all of them change theirs.
        let features = together.gather_parts(&own, pictures, dim)?;
        if !features.iter().all(|value| value.is_finite()) {
            return Err(Error::Plan("features to give points that are no numbers".into()));
        }
        let time = (start.epoch / REASSIGN_EVERY) as u64;
        let found = self.targets.reassign(&features, GROUP, time);
        self.found = [found.nearest, found.kept].map(|share| share as f32);
        start.device.write(&self.targets.rows(), &mut self.rows)
    }

    fn pretext(&mut self, _device: &Device) -> Result<Vec<PretextFigure>> {
        let [nearest, kept] = self.found;
        let group = GROUP.min(self.targets.of().len());
        let figure = |name: &str, share: f32| PretextFigure {
            name: name.into(),
            share: share.into(),
            chance: Some(1.0 / group as f64),
        };
        Ok(vec![figure("own point nearest", nearest), figure("points kept", kept)])
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let dim = self.network.features();
        stream.gather_rows(&self.rows, dim, batch.indices(), &mut self.of_batch)?;
        self.network.forward(stream, 0, batch.view(0))?;
        let (features, gradient) = self.network.output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.cosine(features, &self.of_batch, dim, loss)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }

    fn state(&self, _device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        let of = self.targets.of().to_vec();
        state.push(OWNED, vec![of.len()], Values::U32(of));
        state.push(FOUND, vec![2], Values::F32(self.found.to_vec()));
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let n = self.targets.of().len();
        let of = state.words_of(OWNED, &[n], n)?;
        let targets = self.targets.owned(of);
        self.targets =
            targets.ok_or_else(|| Error::Plan(format!("its {OWNED} name one thing twice")))?;
        let found = state.floats_of(FOUND, &[2])?;
        self.found = [found[0], found[1]];
        device.write(&self.targets.rows(), &mut self.rows)
    }
}
