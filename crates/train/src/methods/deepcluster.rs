//! DeepCluster: *Deep Clustering for Unsupervised Learning of Visual Features* (Caron et al., ECCV
//! 2018).
//!
//! Before every epoch the features x of all pictures are divided into K clusters by k-means; in the
//! epoch a classifier on top of them, drawn anew, is to say in which cluster a picture is. With c
//! the cluster of picture i, n_c its pictures, N all of them, K′ the clusters that are in use, l =
//! W · max(0, norm(x)) + b the classifier's logits:
//!
//! ```text
//! ℓ_i = w_c · − ln [ exp(l_c) / Σ_k exp(l_k) ],   w_c = min(10, N / (K′ · n_c))
//! ```
//!
//! The weight w does what sampling clusters uniformly does (the paper's §3.3): large clusters do
//! not win. Features are whitened and brought to unit length before they are divided, and seen
//! without the ReLU, as the authors' code has it. k-means gives a cluster that runs empty the
//! picture it represents worst. The network's last layer, which is what is divided, is judged.
//!
//! Recipe (facebookresearch/deepcluster): SGD at 0.05 throughout, momentum 0.9, weight decay 1e-5,
//! batch 256, crops, mirrored; 20 rounds of k-means. Adapted for 32×32: K = 100, since many more
//! clusters of CIFAR-10 collapse (the authors of AND); colours that vary in place of Sobel filters,
//! both so that colour alone is no cluster; the last layer's 128 values in place of 256 principal
//! components of 4096; k-means by cosine, in fewer rounds where little moves; a batch norm before
//! the classifier's ReLU, so that a fresh classifier finds features of one scale; weights of at
//! most 10, so that a cluster of one picture does not decide a step.

use anchorhood_engine::vectors::{Whitening, kmeans_within, to_unit_length};
use anchorhood_engine::{
    Batch, Buffer, Device, Error, FrozenSteps, Graph, Loss, Network, Optimiser, ParameterGroup,
    Result, Stream,
};

use crate::config::{Preset, RunConfig};
use crate::discovery::mutual_information;
use crate::methods::recipes::{one_round, photographs};
use crate::methods::tally::{counted, go_on};
use crate::methods::{
    Embeds, EpochStart, Method, MethodKind, MethodSpec, PretextFigure, Setup, StateDict, Values,
    parameter_groups,
};

/// Classify images into clusters of their own features.
pub static DEEPCLUSTER: MethodSpec = MethodSpec {
    name: "deepcluster",
    summary: "Classify images into clusters of their own features",
    reference: "Caron et al., ECCV 2018",
    kind: MethodKind::Targets,
    embeds: Embeds::Fc,
    reads: &["clusters"],
    recipe,
    memory_bytes: |setup, config| {
        let networks = DeepCluster::memory_bytes(setup, config.method.clusters)?;
        Ok((networks, 8 * config.network.features))
    },
    build: |setup, config, _| Ok(Box::new(DeepCluster::new(setup, config.method.clusters)?)),
    ..MethodSpec::DEFAULT
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    one_round(c);
    photographs(c);
    let t = &mut c.training;
    (t.batch, t.learning_rate) = (256, 0.05);
    (t.weight_decay, t.nesterov) = (1e-5, false);
    t.decay_factor = 1.0; // one rate throughout
    if preset == Preset::Quick {
        // Clusters of few images.
        (t.batch, t.learning_rate) = (32, 0.02);
        c.method.clusters = 50;
    }
}

/// What a cluster counts at most, over what one of mean size counts.
const MOST_WEIGHT: f32 = 10.0;
/// Rounds of k-means, at most.
const ROUNDS: usize = 20;
const LABELS: &str = "clusters";
const TALLY: &str = "tally";
const INFORMATION: &str = "mutual_information";
const DRAWN: &str = "drawn";

/// An encoder, whose output is judged, a classifier, and the cluster of every picture.
pub struct DeepCluster {
    encoder: Network,
    classifier: Network,
    /// Steps that the run had taken when the classifier was drawn.
    drawn: u32,
    optimiser: Optimiser,
    seed: u64,
    of: Vec<u32>,
    /// How much the clusters say of those before.
    information: f32,
    labels: Buffer<u32>,
    weights: Buffer,
    /// Right guesses of the epoch so far, and pictures of each cluster.
    tally: Buffer<u32>,
    losses: Buffer,
}

/// No more clusters than pictures.
fn clusters_of(setup: &Setup, clusters: usize) -> usize {
    clusters.clamp(1, setup.pictures)
}

impl DeepCluster {
    /// Bytes of the networks.
    pub fn memory_bytes(setup: &Setup, clusters: usize) -> Result<usize> {
        let options = setup.options(setup.batch);
        let head = classifier(setup.features(), clusters_of(setup, clusters))?;
        let encoder = options.memory_bytes(setup.graph)?;
        Ok(encoder + options.with_input_gradient().memory_bytes(&head)?)
    }

    /// At the beginning of a run, where all pictures are one cluster. There are no more clusters
    /// than pictures.
    pub fn new(setup: Setup, clusters: usize) -> Result<Self> {
        let options = setup.options(setup.batch);
        let encoder = setup.encoder(&options)?;
        let (device, clusters) = (setup.device, clusters_of(&setup, clusters));
        let graph = classifier(encoder.features(), clusters)?;
        let classifier = setup.network(&graph, &options.with_input_gradient(), 1)?;
        let of = vec![0; setup.pictures];
        Ok(DeepCluster {
            labels: device.upload_indices(&of)?,
            weights: device.upload(&weights(&of, clusters))?,
            tally: device.upload_indices(&vec![0; clusters + 1])?,
            losses: device.zeros(setup.batch)?,
            information: 0.0,
            drawn: 0,
            optimiser: setup.optimiser,
            seed: setup.seed,
            encoder,
            classifier,
            of,
        })
    }

    fn clusters(&self) -> usize {
        self.classifier.features()
    }

    /// Goes on with a classifier that was drawn after so many steps, which AdamW does not count.
    fn count_from(&mut self, steps: u32) -> Result<()> {
        self.drawn = steps;
        if !matches!(self.optimiser, Optimiser::AdamW { .. }) {
            return Ok(());
        }
        let groups = parameter_groups(&self.optimiser);
        let frozen = FrozenSteps::from(0..u64::from(steps));
        self.classifier.regroup(&|p| ParameterGroup { frozen, ..groups(p) })
    }

    /// Goes on with these clusters.
    fn take(&mut self, device: &Device, of: Vec<u32>) -> Result<()> {
        self.labels = device.upload_indices(&of)?;
        let weights = weights(&of, self.clusters());
        device.write(&weights, &mut self.weights)?;
        self.of = of;
        Ok(())
    }
}

/// Batch norm, ReLU and a linear layer, over features.
fn classifier(features: usize, clusters: usize) -> Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.input(1, 1, features);
    let x = graph.batch_norm("0", x)?;
    let x = graph.relu("1", x)?;
    let x = graph.linear("2", x, clusters, true)?;
    graph.output(x);
    Ok(graph)
}

/// Pictures of each cluster.
fn sizes(of: &[u32], clusters: usize) -> Vec<usize> {
    let mut sizes = vec![0; clusters];
    of.iter().for_each(|cluster| sizes[*cluster as usize] += 1);
    sizes
}

/// What each cluster's pictures count.
fn weights(of: &[u32], clusters: usize) -> Vec<f32> {
    let sizes = sizes(of, clusters);
    let used = sizes.iter().filter(|size| **size > 0).count();
    let mean = of.len() as f32 / used.max(1) as f32;
    let weight = |size: &usize| (mean / (*size).max(1) as f32).min(MOST_WEIGHT);
    sizes.iter().map(weight).collect()
}

impl Method for DeepCluster {
    fn before_epoch(&mut self, start: &mut EpochStart) -> Result<()> {
        let mut features = (start.features)(&mut self.encoder)?;
        if !features.iter().all(|value| value.is_finite()) {
            return Err(Error::Plan("features to cluster that are no numbers".into()));
        }
        let (dim, together) = (self.encoder.features(), start.device.communicator());
        if let Some(whitening) = Whitening::of_all(together, &features, dim, 1.0)? {
            features = whitening.apply(&features);
        }
        to_unit_length(&mut features, dim);
        let seed = self.seed.wrapping_add(start.epoch as u64);
        let (device, clusters) = (start.device, self.clusters());
        let found = kmeans_within(ROUNDS, device, &features, dim, clusters, seed, &mut |_| {});
        let found = found.map_err(|e| Error::Plan(e.to_string()))?;
        // Every process knows the clusters of all pictures: its batches are of any.
        let of = together.gather_parts(&found.of, self.of.len(), 1)?;
        self.information = mutual_information(&self.of, &of) as f32;
        self.take(device, of)?;
        self.tally = device.upload_indices(&vec![0; clusters + 1])?;
        self.classifier.initialise(seed.wrapping_add(1))?;
        self.count_from(start.steps as u32)
    }

    fn pretext(&mut self, device: &Device) -> Result<Vec<PretextFigure>> {
        let tally = counted(device, &self.tally)?;
        let seen: u32 = tally[1..].iter().sum();
        let sizes = sizes(&self.of, self.clusters());
        let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        let largest = share(sizes.iter().copied().max().unwrap_or(0), self.of.len());
        let used = sizes.iter().filter(|size| **size > 0).count();
        let figure = |name: &str, share, chance| PretextFigure { name: name.into(), share, chance };
        let accuracy = share(tally[0] as usize, seen as usize);
        Ok(vec![
            figure("accuracy", accuracy, Some(largest)),
            figure("mutual information", self.information.into(), None),
            figure("largest cluster", largest, None),
            figure("clusters in use", share(used, sizes.len()), None),
        ])
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let (clusters, items) = (self.clusters(), batch.indices());
        self.encoder.forward(stream, 0, batch.view(0))?;
        self.classifier.forward(stream, 0, self.encoder.output_of(0))?;
        let (logits, gradient) = self.classifier.output_and_gradient();
        stream.tally(logits, clusters, &self.labels, items, &mut self.tally)?;
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.weighted_cross_entropy(logits, &self.labels, items, &self.weights, loss)?;
        self.classifier.backward(stream, 0)?;
        let (_, gradient) = self.encoder.output_and_gradient();
        stream.copy(self.classifier.input_gradient()?, gradient)?;
        self.encoder.backward(stream, 0)?;
        self.classifier.update(stream)?;
        self.encoder.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.encoder), ("classifier", &mut self.classifier)]
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        let tally = counted(device, &self.tally)?;
        state.push(LABELS, vec![self.of.len()], Values::U32(self.of.clone()));
        state.push(TALLY, vec![tally.len()], Values::U32(tally));
        state.push(INFORMATION, vec![1], Values::F32(vec![self.information]));
        state.push(DRAWN, vec![1], Values::U32(vec![self.drawn]));
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let (pictures, clusters) = (self.of.len(), self.clusters());
        let of = state.words_of(LABELS, &[pictures], clusters)?;
        let tally = state.words_of(TALLY, &[clusters + 1], usize::MAX)?;
        self.information = state.floats_of(INFORMATION, &[1])?[0];
        self.tally = go_on(device, tally)?;
        self.count_from(state.words_of(DRAWN, &[1], usize::MAX)?[0])?;
        self.take(device, of.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters of one size count alike; small ones more, but not without end; empty ones harm
    /// nobody.
    #[test]
    fn clusters_count_by_their_size() {
        assert_eq!(weights(&[0, 1, 0, 1], 2), [1.0, 1.0]);
        assert_eq!(weights(&[0, 0, 0, 2], 3)[0], 2.0 / 3.0);
        assert_eq!(weights(&[0, 0, 0, 2], 3)[2], 2.0);
        let mut one_alone = vec![0; 1000];
        one_alone[7] = 1;
        assert_eq!(weights(&one_alone, 2)[1], MOST_WEIGHT);
        assert!(weights(&[0; 4], 3).iter().all(|w| w.is_finite()));
    }
}
