//! What tests compare of every layer.

use crate::{Graph, NodeId, Result};

/// A layer, or a few around it, with a batch to run over.
pub struct Case {
    /// The layer, alone.
    pub graph: Graph,
    /// Pictures.
    pub batch: usize,
    /// Decides pixels, parameters and gradients; and it is the step's number.
    pub seed: u64,
}

impl Case {
    pub(super) fn new(
        seed: u64,
        batch: usize,
        [height, width, channels]: [usize; 3],
        layer: impl FnOnce(&mut Graph, NodeId) -> Result<NodeId>,
    ) -> Self {
        let mut graph = Graph::new();
        let x = graph.input(height, width, channels);
        layer(&mut graph, x).expect("a layer of this input");
        Case { graph, batch, seed }
    }

    /// Over uneven pictures with every count of channels that matters.
    pub(super) fn over_shapes(
        seed: u64,
        layer: fn(&mut Graph, NodeId) -> Result<NodeId>,
    ) -> impl Iterator<Item = Self> {
        let channels = [1, 3, 5, 16, 17, 33, 64];
        let batches = [2, 5, 2, 1, 2, 5, 3];
        let sizes = [(3, 5), (4, 4), (7, 2), (5, 3), (1, 6), (2, 2), (9, 8)];
        let all = channels.into_iter().zip(batches).zip(sizes);
        all.map(move |((c, batch), (h, w))| Case::new(seed, batch, [h, w, c], layer))
    }
}
