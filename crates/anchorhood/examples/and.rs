//! Anchor Neighbourhood Discovery in one file: the network, the training step, the memory bank, the
//! discovery of neighbourhoods, the curriculum and the kNN evaluation, on the engine's operations.
//!
//! Read it beside the paper (Huang, Dong, Gong, Zhu: *Unsupervised Deep Learning by Neighbourhood
//! Discovery*, ICML 2019); equation numbers are the paper's. `anchorhood train --method and` does
//! the same, and adds checkpoints, resuming, reports and several processes.
//!
//! ```sh
//! # `shapes`, about a minute on two cores
//! cargo run --release -p anchorhood --example and
//! cargo run --release -p anchorhood --example and -- \
//!     cifar10:DATA --epochs 10 --rounds 2 --width 16
//! ```

use std::error::Error;
use std::time::Instant;

use anchorhood::research::{
    Augmentation, Batch, Buffer, ConvSpec, DataLoader, DeviceLoader, DevicePositives, Draws,
    DrawsFor, Epoch, EpochOrder, Graph, Loss, Network, NetworkOptions, NodeId, Optimiser,
    Positives, Scan, SoftmaxLoss, Stream, image_batches, normalise,
};
use anchorhood::{Dataset, Device, Images, Labels, LoadOptions, Pictures};

/// Any error, for `main` to print.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the paper calls hyper-parameters.
pub struct Settings {
    /// The data set, as `anchorhood train` takes it.
    pub data: String,
    /// Rounds with neighbourhoods (R), after round 0 in which every image is by itself.
    pub rounds: usize,
    /// Epochs of each round.
    pub epochs: usize,
    /// Images of a batch.
    pub batch: usize,
    /// Residual blocks in each of the network's four stages.
    pub blocks: [usize; 4],
    /// Channels after the network's first layer; 64 as published.
    pub width: usize,
    /// Length of a feature vector.
    pub features: usize,
    /// The temperature τ of the softmax (Eq. 2).
    pub temperature: f32,
    /// How much of a new feature the memory takes (η, Eq. 8).
    pub memory_rate: f32,
    /// Neighbours of an anchor (k, Eq. 1).
    pub neighbours: usize,
    /// The learning rate at the beginning of each round, …
    pub learning_rate: f32,
    /// … and the fractions of a round's epochs after which a tenth of it is left.
    pub milestones: [f64; 2],
    /// Whether the memory begins with the untrained network's features instead of noise.
    pub init_memory: bool,
    /// Every random draw follows from it.
    pub seed: u64,
}

impl Settings {
    /// The command's defaults: a tiny ResNet10 for `shapes`, a narrow ResNet18 for all else.
    pub fn new(data: &str) -> Self {
        let shapes = data == "shapes";
        Settings {
            data: data.into(),
            rounds: 2,
            epochs: if shapes { 28 } else { 10 },
            batch: if shapes { 32 } else { 64 },
            blocks: if shapes { [1; 4] } else { [2; 4] },
            width: if shapes { 4 } else { 16 },
            features: 128,
            temperature: 0.1,
            memory_rate: 0.5,
            neighbours: 1,
            learning_rate: 0.03,
            milestones: [0.8, 0.9],
            init_memory: shapes,
            seed: 0,
        }
    }
}

fn main() -> Result<()> {
    let settings = settings_from(std::env::args().skip(1))?;
    let options = LoadOptions { shapes_train: 2_000, shapes_test: 1_000, ..Default::default() };
    let data = Images::open(&settings.data)?.load(&options)?;
    let device = Device::cpu(std::thread::available_parallelism()?.get());
    device.within(|| {
        And::new(device.clone(), settings, data).and_then(And::train).map_err(|e| e.to_string())
    })?;
    Ok(())
}

/// The network, the memory, and which images belong together.
pub struct And {
    device: Device,
    settings: Settings,
    data: Dataset,
    network: Network,
    memory: Memory,
    /// The positives of every image: itself, and an anchor's neighbours.
    positives: DevicePositives,
    losses: Buffer,
}

impl And {
    /// The beginning of a training: drawn weights, a memory of noise.
    pub fn new(device: Device, settings: Settings, data: Dataset) -> Result<Self> {
        let images = data.train.pictures.len();
        let size = data.train.pictures.height();
        let sgd = Optimiser::Sgd { momentum: 0.9, nesterov: true, decay: 5e-4 };
        let options = NetworkOptions::new(settings.batch).with_optimiser(sgd);
        let mut network = device.network(&resnet(&settings, size)?, &options)?;
        network.initialise(settings.seed)?;
        let memory = Memory::noise(&device, images, settings.features, settings.seed)?;
        let by_itself: Vec<Vec<u32>> = (0..images as u32).map(|i| vec![i]).collect();
        let positives = upload(&device, &by_itself)?;
        let losses = device.zeros(settings.batch)?;
        Ok(And { device, settings, data, network, memory, positives, losses })
    }

    /// Algorithm 1: round 0 tells all images apart; each round after it trusts more neighbourhoods.
    /// Gives the mean loss of each epoch and the kNN accuracy at the end.
    pub fn train(mut self) -> Result<(Vec<f64>, f64)> {
        let mut stream = self.device.stream()?;
        let loader = DataLoader {
            images: self.data.train.pictures.clone(),
            views: Augmentation::default().into(),
            mean: self.data.mean,
            std: self.data.std,
            seed: self.settings.seed,
            batch: self.settings.batch,
            part: 0..self.settings.batch,
            threads: 1,
        };
        let mut batches = self.device.batches(image_batches(loader))?;
        if self.settings.init_memory {
            let features = self.embed(&self.data.train.pictures.clone())?;
            self.memory.rows = self.device.upload(&features)?;
        }
        let (clock, mut losses, mut accuracy) = (Instant::now(), vec![], 0.0);
        for round in 0..=self.settings.rounds {
            if round > 0 {
                self.discover(round)?;
            }
            for epoch in 0..self.settings.epochs {
                let loss = self.epoch(&mut stream, &mut batches, round, epoch)?;
                println!("round {round} epoch {}: loss {loss:.3}", epoch + 1);
                losses.push(loss);
            }
            accuracy = self.knn(200, 0.07)?;
            let seconds = clock.elapsed().as_secs_f64();
            println!("round {round}: kNN {:.1}% after {seconds:.0} s", 100.0 * accuracy);
        }
        Ok((losses, accuracy))
    }

    /// Every image once, in an order of its own; gives the mean loss.
    fn epoch(
        &mut self,
        stream: &mut Stream,
        batches: &mut DeviceLoader,
        round: usize,
        epoch: usize,
    ) -> Result<f64> {
        let s = &self.settings;
        let (images, batch) = (self.data.train.pictures.len(), s.batch);
        let (steps, number) = (images / batch, round * s.epochs + epoch);
        let passed = |m: &&f64| epoch >= (**m * s.epochs as f64 - 1e-9).ceil() as usize;
        let tenths = s.milestones.iter().filter(passed).count();
        let rate = f64::from(s.learning_rate) * 0.1_f64.powi(tenths as i32);
        let order = EpochOrder { seed: s.seed, pictures: images, batch, part: 0..batch };
        let epoch = Epoch {
            epoch: number as u64,
            order: &order.of(number as u64),
            first: 0,
            number: (number * steps) as u64,
            scalars: &[vec![rate as f32; steps]],
        };
        let losses =
            stream.epoch(batches, &epoch, &mut |stream, batch| self.step(stream, batch))?;
        Ok(losses.iter().sum::<f64>() / steps as f64)
    }

    /// One step: forward, the loss over the whole memory, the memory's update, backward, SGD.
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> anchorhood::research::Result<()> {
        let s = &self.settings;
        self.network.forward(stream, 0, batch.view(0))?;
        // Eq. 7, meaned over the batch: −log Σ p over an image's positives, where p (Eq. 2) is the
        // softmax of its feature over all rows of the memory. Its gradient (Eq. 9 and 10) goes to
        // the features alone; the memory is held constant.
        let (features, gradient) = self.network.output_and_gradient();
        let softmax = SoftmaxLoss {
            queries: features,
            keys: &self.memory.rows,
            dim: s.features,
            temperature: s.temperature,
            positives: &self.positives,
            items: Some(batch.indices()),
        };
        stream.softmax_loss(&softmax, Loss { rows: &mut self.losses, gradient, weight: 1.0 })?;
        self.memory.update(stream, batch.indices(), self.network.output(), s.memory_rate)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    /// Finds every image's neighbourhood in the memory, and trusts the most certain ones.
    fn discover(&mut self, round: usize) -> Result<()> {
        let s = &self.settings;
        let images = self.data.train.pictures.len();
        // Eq. 1: the k most similar rows of each row, itself left out. Eq. 5: the entropy of its
        // softmax over all rows, itself included.
        let all = Scan {
            dim: s.features,
            entropy_temperature: Some(s.temperature),
            k: s.neighbours,
            same: true,
        };
        let found = self.device.scan(&self.memory.rows, &self.memory.rows, &all, &|_| {})?;
        // Eq. 6: the curriculum takes a fraction r / R of the images, those of the lowest entropy.
        let anchors = images * round / s.rounds;
        let mut by_entropy: Vec<usize> = (0..images).collect();
        by_entropy.sort_by(|a, b| found.entropy[*a].total_cmp(&found.entropy[*b]));
        let mut positives: Vec<Vec<u32>> = (0..images as u32).map(|i| vec![i]).collect();
        for anchor in &by_entropy[..anchors] {
            positives[*anchor].extend(found.neighbours.of(*anchor));
        }
        self.positives = upload(&self.device, &positives)?;
        let consistent = self.data.train.labels.as_ref().map(|l| consistency(l, &positives));
        println!("round {round}: {anchors} anchors{}", consistent.unwrap_or_default());
        Ok(())
    }

    /// The network's features of images as they are, without augmentation.
    fn embed(&mut self, images: &Pictures) -> Result<Vec<f32>> {
        let (size, features) = (images.picture_len(), self.settings.features);
        let mut rows = vec![0.0; images.len() * features];
        let mut pixels = vec![0.0; self.settings.batch * size];
        for (batch, rows) in rows.chunks_mut(self.settings.batch * features).enumerate() {
            let count = rows.len() / features;
            for (i, to) in pixels.chunks_mut(size).take(count).enumerate() {
                let image = images.picture(batch * self.settings.batch + i);
                normalise(image, self.data.mean, self.data.std, to);
            }
            self.network.infer(&pixels[..count * size], rows)?;
        }
        Ok(rows)
    }

    /// The weighted kNN classifier of Wu et al. (CVPR 2018): the k rows of the memory most similar
    /// to a test image's feature vote for their classes, with weight exp(similarity / τ). Labels
    /// are used here alone.
    fn knn(&mut self, k: usize, temperature: f32) -> Result<f64> {
        let test = self.data.test.clone().ok_or("the data set has no test images")?;
        let labels = |l: &Option<Labels>| l.clone().ok_or("the data set has no labels");
        let (train, truth) = (labels(&self.data.train.labels)?, labels(&test.labels)?);
        let features = self.embed(&test.pictures)?;
        let queries = self.device.upload(&features)?;
        let dim = self.settings.features;
        let scan = Scan { dim, entropy_temperature: None, k, same: false };
        let found = self.device.scan(&queries, &self.memory.rows, &scan, &|_| {})?.neighbours;
        let right = |i: &usize| {
            let mut votes = vec![0.0; train.classes().len()];
            for (row, similarity) in found.of(*i).iter().zip(found.similarities_of(*i)) {
                votes[train.get(*row as usize) as usize] +=
                    f64::from(similarity / temperature).exp();
            }
            // Of equal classes the first counts.
            let best = (0..votes.len()).rev().max_by(|a, b| votes[*a].total_cmp(&votes[*b]));
            best == Some(truth.get(*i) as usize)
        };
        Ok((0..truth.len()).filter(right).count() as f64 / truth.len() as f64)
    }
}

/// What each image's feature was when it was last seen: a row for each, of unit length after its
/// first update.
struct Memory {
    rows: Buffer,
    dim: usize,
}

impl Memory {
    /// Noise, uniform in ±√(3 / dim).
    fn noise(device: &Device, images: usize, dim: usize, seed: u64) -> Result<Self> {
        let limit = (3.0 / dim as f32).sqrt();
        let mut rows = vec![0.0; images * dim];
        for (i, row) in (0..).zip(rows.chunks_exact_mut(dim)) {
            Draws::new(seed, DrawsFor::Memory, 0, i).fill_symmetric(row, limit);
        }
        Ok(Memory { rows: device.upload(&rows)?, dim })
    }

    /// Eq. 8: x̃ ← (1 − η)·x̃ + η·x, and back to unit length, for the images of a batch.
    fn update(
        &mut self,
        stream: &mut Stream,
        images: &Buffer<u32>,
        features: &Buffer,
        rate: f32,
    ) -> anchorhood::research::Result<()> {
        stream.blend_rows(&mut self.rows, self.dim, images, features, rate)
    }
}

/// A ResNet (He et al., 2016) for small images: a 3×3 convolution, four stages of residual blocks
/// of which the last three halve the image, the mean over pixels, a linear layer, unit length.
fn resnet(settings: &Settings, size: usize) -> Result<Graph> {
    let mut g = Graph::new();
    let image = g.input(size, size, 3);
    let stem = ConvSpec::square(settings.width, 3, 1, 1);
    let mut x = g.conv_norm("conv1", "bn1", image, stem, true, None)?;
    for (stage, blocks) in settings.blocks.into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("layer{}.{block}", stage + 1);
            x = residual_block(&mut g, &name, x, settings.width << stage, stride)?;
        }
    }
    let x = g.global_avg_pool("avgpool", x)?;
    let x = g.linear("fc", x, settings.features, true)?;
    let x = g.l2_normalise("normalise", x)?;
    g.output(x);
    Ok(g)
}

/// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)).
fn residual_block(
    g: &mut Graph,
    name: &str,
    x: NodeId,
    channels: usize,
    stride: usize,
) -> Result<NodeId> {
    let of = |part: &str| format!("{name}.{part}");
    let first = ConvSpec::square(channels, 3, stride, 1);
    let inner = g.conv_norm(&of("conv1"), &of("bn1"), x, first, true, None)?;
    let shortcut = match stride == 1 && g.shape(x).channels == channels {
        true => x,
        false => {
            let project = ConvSpec::square(channels, 1, stride, 0);
            g.conv_norm(&of("downsample.0"), &of("downsample.1"), x, project, false, None)?
        }
    };
    let second = ConvSpec::square(channels, 3, 1, 1);
    Ok(g.conv_norm(&of("conv2"), &of("bn2"), inner, second, true, Some(shortcut))?)
}

/// Brings the positives of all images to the device.
fn upload(device: &Device, positives: &[Vec<u32>]) -> Result<DevicePositives> {
    let mut all = Positives::default();
    for of in positives {
        all.push(of.iter().copied());
    }
    Ok(device.positives(&all, positives.len())?)
}

/// How many of the anchors' neighbours have the anchor's class, in words.
fn consistency(labels: &Labels, positives: &[Vec<u32>]) -> String {
    let pairs = positives.iter().flat_map(|of| of[1..].iter().map(|n| (of[0], *n)));
    let same = |(a, b): (u32, u32)| labels.get(a as usize) == labels.get(b as usize);
    let (mut all, mut right) = (0, 0);
    pairs.for_each(|pair| (all, right) = (all + 1, right + usize::from(same(pair))));
    format!(", {:.1}% of their neighbours of the same class", 100.0 * right as f64 / all as f64)
}

/// The command line: a data set, then `--NAME NUMBER`.
fn settings_from(mut args: impl Iterator<Item = String>) -> Result<Settings> {
    let mut args = args.by_ref().peekable();
    let data = args.next_if(|word| !word.starts_with("--"));
    let mut settings = Settings::new(data.as_deref().unwrap_or("shapes"));
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name}: a number must follow"))?;
        let number = value.parse().map_err(|_| format!("{name} {value}: not a number"))?;
        match name.as_str() {
            "--rounds" => settings.rounds = number,
            "--epochs" => settings.epochs = number,
            "--batch" => settings.batch = number,
            "--width" => settings.width = number,
            "--features" => settings.features = number,
            "--neighbours" => settings.neighbours = number,
            _ => {
                return Err(format!(
                    "{name}: give --rounds, --epochs, --batch, --width, --features or --neighbours"
                )
                .into());
            }
        }
    }
    Ok(settings)
}
