//! A third method in one file: SimCLR (Chen et al. 2020) with two views, a projector and both gradients of the contrastive
//! loss, trained by the one loop on every device.

use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::{
    Batch, Buffer, Device, Graph, Loss, Network, NetworkOptions, Precision, Result, Stream,
};
use anchorhood_methods::{Method, ViewSettings};
use anchorhood_train::{
    Checkpoint, Event, FeatureSource, Outcome, Preset, RunConfig, RunDir, ScheduleChoice,
    train_method,
};

/// An encoder, whose output is judged, and a projector, whose output is contrasted.
struct SimClr {
    encoder: Network,
    projector: Network,
    losses: Buffer,
    temperature: f32,
}

const VIEWS: usize = 2;
const PROJECTED: usize = 128;

impl SimClr {
    fn new(device: &Device, config: &RunConfig, size: usize, temperature: f32) -> Result<Self> {
        let (n, batch) = (&config.network, config.training.batch);
        let graph = n.architecture.graph(size, n.width, n.features)?;
        let graph = graph.up_to(graph.find("avgpool")?);
        let optimiser = config.training.optimiser();
        // One pass over both views: batch statistics over all.
        let options = NetworkOptions::new(VIEWS * batch).with_optimiser(optimiser);
        let mut encoder = device.network(&graph, &options)?;
        let features = encoder.features();
        let mut head = Graph::new();
        let x = head.input(1, 1, features);
        let x = head.linear("0", x, 2 * features, true)?;
        let x = head.relu("1", x)?;
        let x = head.linear("2", x, PROJECTED, true)?;
        let x = head.l2_normalise("3", x)?;
        head.output(x);
        let mut projector = device.network(&head, &options.with_input_gradient())?;
        encoder.initialise(config.seed);
        projector.initialise(config.seed + 1);
        Ok(SimClr {
            encoder,
            projector,
            losses: device.zeros(VIEWS * batch)?,
            temperature,
        })
    }
}

impl Method for SimClr {
    fn name(&self) -> &'static str {
        "simclr"
    }

    fn views(&self) -> Vec<ViewSettings> {
        vec![ViewSettings::default(); VIEWS]
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.encoder.forward(stream, 0, batch.all_views())?;
        self.projector
            .forward(stream, 0, self.encoder.output_of(0))?;
        let (rows, gradient) = self.projector.output_and_gradient();
        let loss = Loss {
            rows: &mut self.losses,
            gradient,
            weight: 1.0,
        };
        stream.contrastive(rows, VIEWS, PROJECTED, self.temperature, loss)?;
        self.projector.backward(stream, 0)?;
        let (_, gradient) = self.encoder.output_and_gradient();
        stream.copy(self.projector.input_gradient()?, gradient)?;
        self.encoder.backward(stream, 0)?;
        self.projector.update(stream)?;
        self.encoder.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.encoder), ("projector", &mut self.projector)]
    }
}

fn small() -> RunConfig {
    let mut config = Preset::Quick.config("shapes");
    config.data.shapes_train = 600;
    config.data.shapes_test = 300;
    config.data.size = Some(16);
    config.network.width = 8;
    config.training.batch = 60;
    config.training.rounds = 0;
    config.training.epochs = 16;
    config.training.learning_rate = 0.1;
    config.training.schedule = ScheduleChoice::Cosine;
    config.evaluation.features = FeatureSource::Recomputed;
    config.evaluation.k = 20;
    config
}

fn open(config: &RunConfig) -> Dataset {
    let options = config.data.load_options(config.seed);
    anchorhood_data::open(&config.data.set, &options).unwrap()
}

/// Trains, and gives the epochs' losses, the accuracy before and after, and what was saved.
fn train(device: &Device, config: &RunConfig) -> (Vec<f64>, [f64; 2], Checkpoint) {
    let data = open(config);
    let method = SimClr::new(device, config, data.train.pictures.height(), 0.5).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "simclr", config).unwrap();
    let (mut losses, mut judged) = (vec![], vec![]);
    let mut observer = |event: &Event| match event {
        Event::EpochEnded(e) => losses.push(e.loss),
        Event::Evaluated(e) => {
            println!("{:?}: {:.1}%", e.subject, 100.0 * e.accuracy.top1);
            judged.push(e.accuracy.top1);
        }
        _ => {}
    };
    let (method, stop) = (Box::new(method), AtomicBool::new(false));
    let outcome = train_method(device, &mut dir, &data, method, &mut observer, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
    let saved = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    (losses, [judged[1], judged[judged.len() - 1]], saved)
}

fn learns(device: &Device) {
    let config = small();
    let (losses, [before, after], saved) = train(device, &config);
    // Guessing among the 2·60 − 1 other rows costs ln 119 = 4.78.
    assert!(
        losses[0] > 4.0 && losses[15] < losses[0] - 0.4,
        "{losses:?}"
    );
    assert!(after > before + 0.05, "{before} before, {after} after");
    assert_eq!(saved.heads[0].namespace, "projector");
    assert_eq!(saved.heads[0].weights.len(), 4);
    assert!(saved.weights.iter().all(|t| !t.name.starts_with("fc")));
}

#[test]
fn it_learns_on_the_cpu() {
    learns(&Device::cpu(2));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn it_learns_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        learns(&Device::cuda(0, precision).unwrap());
    }
}

/// A hundred epochs on CIFAR-10 by the recipe of dkobak/simclr-cifar10, whose 512-d features have a kNN accuracy of 83.2%.
#[test]
#[ignore = "needs an NVIDIA GPU, CIFAR-10 and five minutes"]
fn a_hundred_epochs_of_cifar10_on_cuda() {
    let folder = std::env::var("ANCHORHOOD_CIFAR10").expect("ANCHORHOOD_CIFAR10 names the folder");
    let mut config = Preset::Paper.config(&format!("cifar10:{folder}"));
    config.training.rounds = 0;
    config.training.epochs = 100;
    config.training.batch = 512;
    config.training.learning_rate = 0.12;
    config.training.schedule = ScheduleChoice::Cosine;
    config.training.warm_up = 10.0;
    config.augmentation.hue = 0.1;
    config.augmentation.jitter = 0.8;
    config.augmentation.grey = 0.1;
    config.augmentation.flip = 0.5;
    config.evaluation.features = FeatureSource::Recomputed;
    config.evaluation.every = 20;
    let clock = std::time::Instant::now();
    let device = Device::cuda(0, Precision::Bf16).unwrap();
    let (losses, [_, after], _) = train(&device, &config);
    let seconds = clock.elapsed().as_secs_f64();
    println!(
        "kNN {:.2}%, loss {:.4}, {seconds:.0} s",
        100.0 * after,
        losses[99]
    );
    assert!(after > 0.80, "{after}");
}
