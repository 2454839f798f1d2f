//! What every method is made of: a device, the embedding network's graph, the size of a batch, how
//! weights move, a seed.

use anchorhood_engine::{
    Device, Graph, Network, NetworkOptions, Optimiser, Parameter, ParameterGroup, Result, Shape,
};

/// What a run gives to its method.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Where it lives.
    pub device: &'a Device,
    /// The graph of the network that embeds.
    pub graph: &'a Graph,
    /// Pictures there are to learn from.
    pub pictures: usize,
    /// Pictures in a batch; of several processes that take a step together, in this one's part of
    /// it.
    pub batch: usize,
    /// Mean of each channel that pictures are normalised by.
    pub mean: [f32; 3],
    /// Standard deviation, likewise.
    pub std: [f32; 3],
    /// Whether batch norm's statistics are those of all processes' pictures.
    pub sync_norm: bool,
    /// How weights move.
    pub optimiser: Optimiser,
    /// Decides every random draw.
    pub seed: u64,
}

impl Setup<'_> {
    /// Options for a network of so many rows in a pass.
    pub fn options(&self, rows: usize) -> NetworkOptions {
        NetworkOptions {
            groups: parameter_groups(&self.optimiser),
            sync_norm: self.sync_norm,
            ..NetworkOptions::new(rows).with_optimiser(self.optimiser)
        }
    }

    /// Values that the network which embeds makes of a picture.
    pub(crate) fn features(&self) -> usize {
        self.graph.shape(self.graph.output_node()).len()
    }

    /// What the network that embeds is given of a picture.
    pub(crate) fn picture(&self) -> Shape {
        self.graph.nodes()[0].shape
    }

    /// The network that embeds, as the seed draws it.
    pub fn encoder(&self, options: &NetworkOptions) -> Result<Network> {
        let mut network = self.network(self.graph, options, 0)?;
        network.normalised_by(&self.mean, &self.std)?;
        Ok(network)
    }

    /// A network as the seed draws it; those of a method have numbers of their own, so that no two
    /// are drawn alike.
    pub(crate) fn network(
        &self,
        graph: &Graph,
        options: &NetworkOptions,
        number: u64,
    ) -> Result<Network> {
        let mut network = self.device.network(graph, options)?;
        network.initialise(self.seed.wrapping_add(number))?;
        Ok(network)
    }

    /// A network that gives pictures as they are, for what is cut from them.
    pub(crate) fn pixels(&self) -> Result<Network> {
        let picture = self.picture();
        let mut graph = Graph::new();
        let x = graph.input(picture.height, picture.width, picture.channels);
        let x = graph.channels("pixels", x, 0, picture.channels)?;
        graph.output(x);
        self.device.network(&graph, &self.options(self.batch))
    }
}

/// Which parameters an optimiser treats alike, as the papers have it: SGD decays all; LARS and
/// AdamW leave biases and norms without decay, and LARS without adaptation.
pub fn parameter_groups(optimiser: &Optimiser) -> fn(&Parameter) -> ParameterGroup {
    match optimiser {
        Optimiser::Sgd { .. } => ParameterGroup::all_alike,
        Optimiser::Lars { .. } | Optimiser::AdamW { .. } => ParameterGroup::biases_and_norms_apart,
    }
}
