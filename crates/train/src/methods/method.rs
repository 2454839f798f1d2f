//! What every method is asked for.

use anchorhood_engine::{Batch, Device, Network, Result, Stream};
use serde::{Deserialize, Serialize};

use crate::discovery::{MemoryBank, Neighbourhoods};
use crate::methods::StateDict;

/// A way to learn features.
pub trait Method: Send {
    /// The views of each picture that a step sees, and how each differs from the run's
    /// augmentation.
    fn views(&self) -> Vec<ViewSettings> {
        vec![ViewSettings::default()]
    }

    /// Its own schedules beside the learning rate, [`Scalar(1)`](anchorhood_engine::Scalar) and so
    /// on: their values in a step before which this share of the run is done.
    fn scalars(&self, _done: f64) -> Vec<f32> {
        vec![]
    }

    /// Before the first step of a round, and never again in it: a run that goes on within a round
    /// has what it kept.
    fn before_round(&mut self, _round: &mut Round) -> Result<()> {
        Ok(())
    }

    /// Before the first step of an epoch, and never again in it.
    fn before_epoch(&mut self, _epoch: &mut EpochStart) -> Result<()> {
        Ok(())
    }

    /// How well it did in an epoch, which ended, what it is taught by (its pretext task), where
    /// that says more than its loss.
    fn pretext(&mut self, _device: &Device) -> Result<Vec<PretextFigure>> {
        Ok(vec![])
    }

    /// One step: the same calls every time. Losses are told to the stream; weights move at the
    /// stream's learning rate.
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()>;

    /// Its networks with their namespaces. The first, whose namespace is empty, embeds: its output
    /// is the feature that is judged, searched and exported.
    fn networks(&mut self) -> Vec<(&'static str, &mut Network)>;

    /// The network that embeds, and the features of all pictures as they were last seen, where it
    /// remembers them.
    fn encoder(&mut self) -> (&mut Network, Option<&MemoryBank>) {
        let (_, network) = self.networks().swap_remove(0);
        (network, None)
    }

    /// What it keeps beside its networks, to go on from.
    fn state(&self, _device: &Device) -> Result<StateDict> {
        Ok(StateDict::default())
    }

    /// Takes up what it kept.
    fn restore(&mut self, _device: &Device, _state: &StateDict) -> Result<()> {
        Ok(())
    }

    /// The neighbourhoods it trains with, where it has discovered any.
    fn neighbourhoods(&self) -> Option<&Neighbourhoods> {
        None
    }
}

/// How a view differs from the run's augmentation; what is not said is the run's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ViewSettings {
    /// Probability of a Gaussian blur.
    pub blur: Option<f32>,
    /// Probability that bright values are turned dark.
    pub solarise: Option<f32>,
}

/// The beginning of a round.
pub struct Round<'a> {
    /// Where the method lives.
    pub device: &'a Device,
    /// Which round, from 0.
    pub round: usize,
    /// The last one.
    pub rounds: usize,
    /// Is told how many pictures are done, where something takes long.
    pub progress: &'a (dyn Fn(usize) + Sync),
    /// What a network makes of all training pictures now, not augmented: a row for each; on several
    /// processes, for each of this one's [part](anchorhood_engine::Communicator::part).
    pub features: &'a mut dyn FnMut(&mut Network) -> Result<Vec<f32>>,
}

/// The beginning of an epoch.
pub struct EpochStart<'a> {
    /// Where the method lives.
    pub device: &'a Device,
    /// Which epoch, counted over all rounds.
    pub epoch: usize,
    /// Steps that the run has taken before it.
    pub steps: usize,
    /// As a [`Round`]'s.
    pub features: &'a mut dyn FnMut(&mut Network) -> Result<Vec<f32>>,
}

/// A figure of a pretext task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PretextFigure {
    /// What it is the share of: `accuracy`.
    pub name: String,
    /// From 0 to 1.
    pub share: f64,
    /// What guessing would reach, where that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}
