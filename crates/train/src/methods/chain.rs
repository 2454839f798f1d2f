//! Networks in a row: the encoder, whose output is judged, and its heads. Each one's output is the
//! next one's input, and back goes the gradient. Every view of a batch passes through all of them,
//! and outputs are stacked view after view.

use std::f64::consts::PI;

use anchorhood_engine::{Batch, Buffer, Loss, Network, NetworkOptions, Result, Scalar, Stream};

use crate::methods::mlp::{MlpEnd, MlpSettings, mlp};
use crate::methods::{Setup, ViewSettings};

/// Over which rows batch norm takes its statistics while it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewStatistics {
    /// Each view's own: a pass for each.
    Each,
    /// All views' together: one larger pass.
    All,
}

/// How many views, and how they pass through the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewPasses {
    /// Views of each picture.
    pub views: usize,
    /// Batch norm's statistics.
    pub statistics: ViewStatistics,
}

impl ViewPasses {
    /// How networks are built that they pass through.
    fn options(&self, setup: &Setup) -> NetworkOptions {
        match self.statistics {
            ViewStatistics::Each => setup.options(setup.batch).with_passes(self.views),
            ViewStatistics::All => setup.options(self.views * setup.batch),
        }
    }
}

/// A head: its namespace, its size, and how it ends.
pub type Head = (&'static str, MlpSettings, MlpEnd);

/// An encoder and its heads.
pub struct Chain {
    passes: ViewPasses,
    networks: Vec<(&'static str, Network)>,
    /// A loss for each row of the last output.
    losses: Buffer,
}

impl Chain {
    /// The setup's encoder, in a namespace, and heads on top of it, as the seed draws them.
    pub fn new(
        setup: &Setup,
        passes: ViewPasses,
        namespace: &'static str,
        heads: &[Head],
    ) -> Result<Self> {
        let options = passes.options(setup);
        let encoder = setup.encoder(&options)?;
        let mut features = encoder.features();
        let mut networks = vec![(namespace, encoder)];
        for (number, (name, settings, end)) in (1..).zip(heads) {
            let options = options.clone().with_input_gradient();
            let head = setup.network(&mlp(features, settings, *end)?, &options, number)?;
            features = head.features();
            networks.push((name, head));
        }
        let rows = networks[0].1.passes() * networks[0].1.batch();
        Ok(Chain { passes, networks, losses: setup.device.zeros(rows)? })
    }

    /// Bytes of the networks of such a chain.
    pub fn memory_bytes(setup: &Setup, passes: ViewPasses, heads: &[Head]) -> Result<usize> {
        let options = passes.options(setup);
        let mut bytes = options.memory_bytes(setup.graph)?;
        let mut features = setup.features();
        let options = options.with_input_gradient();
        for (_, settings, end) in heads {
            bytes += options.memory_bytes(&mlp(features, settings, *end)?)?;
            features = settings.features;
        }
        Ok(bytes)
    }

    /// Rows of an output: all views of a batch.
    pub fn rows(&self) -> usize {
        self.losses.len()
    }

    /// Views of an image.
    pub fn views(&self) -> usize {
        self.passes.views
    }

    /// Views that all have the run's augmentation.
    pub fn alike(&self) -> Vec<ViewSettings> {
        vec![ViewSettings::default(); self.views()]
    }

    /// Values of a row of the last output.
    pub fn features(&self) -> usize {
        self.networks[self.networks.len() - 1].1.features()
    }

    /// The first views of a batch, as many as it has, through all networks.
    pub fn forward(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.forward_from(stream, batch, 0)
    }

    /// As many views of a batch as it has, from one of them on.
    pub fn forward_from(&mut self, stream: &mut Stream, batch: Batch, first: usize) -> Result<()> {
        for pass in 0..self.networks[0].1.passes() {
            let input = match self.passes.statistics {
                ViewStatistics::Each => batch.view(first + pass),
                ViewStatistics::All => batch.views_from(first, self.passes.views),
            };
            self.networks[0].1.forward(stream, pass, input)?;
            for next in 1..self.networks.len() {
                let (before, after) = self.networks.split_at_mut(next);
                let input = before[next - 1].1.output_of(pass);
                after[0].1.forward(stream, pass, input)?;
            }
        }
        Ok(())
    }

    /// The encoder.
    pub fn encoder(&mut self) -> &mut Network {
        &mut self.networks[0].1
    }

    /// What the first head makes of features of the encoder, as inference has it.
    pub fn infer_projector(&mut self, features: Vec<f32>) -> Result<Vec<f32>> {
        let dim = self.networks[0].1.features();
        let head = &mut self.networks[1].1;
        let (batch, to) = (head.batch(), head.features());
        let mut rows = vec![0.0; features.len() / dim * to];
        let pieces = (features.chunks(batch * dim)).zip(rows.chunks_mut(batch * to));
        for (from, into) in pieces {
            head.infer(from, into)?;
        }
        Ok(rows)
    }

    /// What one of the networks made of all views; 0 is the encoder.
    pub fn output(&self, network: usize) -> &Buffer {
        self.networks[network].1.output()
    }

    /// What the last network made of all views, and where a loss of it goes.
    pub fn output_and_loss(&mut self) -> (&Buffer, Loss<'_>) {
        let last = self.networks.len() - 1;
        let (rows, gradient) = self.networks[last].1.output_and_gradient();
        (rows, Loss { rows: &mut self.losses, gradient, weight: 1.0 })
    }

    /// From the gradient of the last output backwards through all networks; then all weights move.
    pub fn learn(&mut self, stream: &mut Stream) -> Result<()> {
        let passes = self.networks[0].1.passes();
        for at in (0..self.networks.len()).rev() {
            for pass in 0..passes {
                self.networks[at].1.backward(stream, pass)?;
            }
            if at > 0 {
                let (before, after) = self.networks.split_at_mut(at);
                let (_, gradient) = before[at - 1].1.output_and_gradient();
                stream.copy(after[0].1.input_gradient()?, gradient)?;
            }
        }
        for (_, network) in self.networks.iter_mut().rev() {
            network.update(stream)?;
        }
        Ok(())
    }

    /// Moves every network towards the one in its place of another chain, which may be longer (an
    /// exponential moving average).
    pub fn follow(&mut self, stream: &mut Stream, other: &Chain, keep: Scalar) -> Result<()> {
        let pairs = self.networks.iter_mut().zip(&other.networks);
        for ((_, own), (_, other)) in pairs {
            own.follow(stream, other, keep)?;
        }
        Ok(())
    }

    /// The networks with their namespaces.
    pub fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        let all = self.networks.iter_mut();
        all.map(|(name, network)| (*name, network)).collect()
    }
}

/// The share of an exponential moving average that a step keeps: it begins at m₀ and rises to 1 as
/// a cosine, over a run of which the share `done` is done.
pub(crate) fn momentum_at(first: f64, done: f64) -> f32 {
    (1.0 - (1.0 - first) * ((PI * done).cos() + 1.0) / 2.0) as f32
}
