//! Whose features are judged: a checkpoint's, those of weights another program made, or those of a network nobody trained.

use std::path::{Path, PathBuf};

use anchorhood::data::{Dataset, Labels, Pictures};
use anchorhood::engine::{Device, Graph, Network, NetworkOptions, NodeId};
use anchorhood::models::{Architecture, Form, Weights};
use anchorhood::train::{Checkpoint, FeatureSource, MachineConfig, Preset, RunConfig, TrainError};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::args::EvaluateArgs;
use crate::args::resolve::model_file;
use crate::terminal::failure::Failure;

/// What to type for a network as its seed draws it.
pub const UNTRAINED: &str = "untrained";

/// Flags for networks without a run, and for what they are judged on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Networks without a run, and their pictures")]
pub struct SubjectArgs {
    /// Which network the weights of another program are of, or which one is `untrained`.
    #[arg(long)]
    pub network: Option<Architecture>,
    /// Channels after its stem [default: as the weights have it; 64 untrained].
    #[arg(long)]
    pub width: Option<usize>,
    /// Resize pictures to so many pixels a side.
    #[arg(long)]
    pub size: Option<usize>,
    /// At most so many training pictures.
    #[arg(long)]
    pub limit: Option<usize>,
    /// At most so many test pictures.
    #[arg(long)]
    pub test_limit: Option<usize>,
    /// Decides every random draw [default: the run's, or 0].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Whose mean and standard deviation pictures are normalised by [default: imagenet for weights of another program].
    #[arg(long, value_parser = PossibleValuesParser::new(["data", "imagenet"]).map(|s| statistics(&s)))]
    pub normalise: Option<Statistics>,
}

/// Mean and standard deviation of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// The data set at hand; of a checkpoint, the one it was trained on.
    Data,
    /// ImageNet, as torchvision's models expect.
    ImageNet,
}

fn statistics(name: &str) -> Statistics {
    match name {
        "imagenet" => Statistics::ImageNet,
        _ => Statistics::Data,
    }
}

const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// Where the weights come from.
pub enum Source {
    /// A run.
    Checkpoint(Box<Checkpoint>),
    /// Another program.
    Weights(Weights, Form),
    /// The seed.
    Untrained,
}

/// What is judged, with all settings resolved.
pub struct Subject {
    /// Where its weights come from.
    pub source: Source,
    /// Its file; the word `untrained` without one.
    pub path: PathBuf,
    /// Data set, network, evaluation and machine.
    pub config: RunConfig,
    statistics: Statistics,
}

impl Subject {
    /// Resolves an `evaluate` command.
    pub fn resolve(args: &EvaluateArgs) -> Result<Subject, Failure> {
        let (source, path, mut config) = match (args.run.as_str(), args.subject.network) {
            (UNTRAINED, Some(network)) => untrained(args, network)?,
            (UNTRAINED, None) => {
                return Err(Failure::usage(
                    "untrained: say which network with --network, for example --network resnet18",
                ));
            }
            (file, Some(network)) => imported(args, Path::new(file), network)?,
            (_, None) => checkpoint(args)?,
        };
        let given = &args.subject;
        config.seed = given.seed.unwrap_or(config.seed);
        config.data.size = given.size.or(config.data.size);
        config.data.limit = given.limit.or(config.data.limit);
        config.data.test_limit = given.test_limit.or(config.data.test_limit);
        config.machine = MachineConfig {
            threads: args.threads,
            device: args.device.unwrap_or(config.machine.device),
            ..config.machine
        };
        config.evaluation.k = args.k.unwrap_or(config.evaluation.k);
        config.evaluation.temperature = args.tau.unwrap_or(config.evaluation.temperature);
        config.evaluation.features = args.features.unwrap_or(config.evaluation.features);
        config.check()?;
        let usual = match source {
            Source::Weights(..) => Statistics::ImageNet,
            _ => Statistics::Data,
        };
        Ok(Subject {
            source,
            path,
            config,
            statistics: given.normalise.unwrap_or(usual),
        })
    }

    /// The graph for pictures of a size.
    pub fn graph(&self, size: usize) -> Result<Graph, Failure> {
        let n = &self.config.network;
        let form = match &self.source {
            Source::Weights(_, form) => *form,
            _ => Form::for_size(size),
        };
        Ok(n.architecture.graph_of(form, size, n.width, n.features)?)
    }

    /// The network with its weights; a network nobody trained is drawn from `seed`. Also what there is to say of it.
    pub fn network(
        &self,
        device: &Device,
        graph: &Graph,
        keep: Vec<NodeId>,
        seed: u64,
    ) -> Result<(Network, Option<String>), Failure> {
        let options = NetworkOptions {
            keep,
            ..NetworkOptions::new(self.config.training.batch)
        };
        let mut network = device.network(graph, &options)?;
        network.initialise(seed);
        let mut note = None;
        match &self.source {
            Source::Checkpoint(checkpoint) => {
                checkpoint.restore(&mut network, false, &self.path)?
            }
            Source::Weights(weights, _) => {
                let loaded = weights.load_into(&mut network);
                let loaded =
                    loaded.map_err(|e| Failure::usage(format!("{}: {e}", self.path.display())))?;
                note = loaded.fc_left;
            }
            Source::Untrained => {}
        }
        Ok((network, note))
    }

    /// Whether its weights have no last layer of the size that is wanted.
    pub fn lacks_fc(&self, graph: &Graph) -> bool {
        let wanted = graph.parameters().iter().find(|p| p.name == "fc.weight");
        match &self.source {
            Source::Weights(weights, _) => {
                weights.shape("fc.weight") != wanted.map(|p| &p.shape[..])
            }
            _ => false,
        }
    }

    /// Mean and standard deviation by which its pictures are normalised.
    pub fn normalisation(&self, data: &Dataset) -> ([f32; 3], [f32; 3]) {
        match (&self.source, self.statistics) {
            (_, Statistics::ImageNet) => IMAGENET,
            (Source::Checkpoint(c), _) => c
                .input
                .as_ref()
                .map_or((data.mean, data.std), |i| (i.mean, i.std)),
            _ => (data.mean, data.std),
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        let n = &self.config.network;
        let network = format!("{} width {}", n.architecture, n.width);
        match &self.source {
            Source::Checkpoint(c) => {
                let position = c.standing.position;
                let standing = match position.round > c.config.training.rounds {
                    true => "trained to the end".into(),
                    false => format!("up to {position}"),
                };
                format!("{}: {}, {standing}", self.path.display(), c.network())
            }
            Source::Weights(..) => format!("{}: {network}", self.path.display()),
            Source::Untrained => format!("{network}, untrained, seed {}", self.config.seed),
        }
    }
}

type Resolved = (Source, PathBuf, RunConfig);

fn checkpoint(args: &EvaluateArgs) -> Result<Resolved, Failure> {
    if args.subject.width.is_some() {
        return Err(Failure::usage(
            "--width: a checkpoint has its own; the flag is for weights of another program and for `untrained`",
        ));
    }
    let path = model_file(&args.runs, &args.run)?;
    let checkpoint = match Checkpoint::load(&path) {
        // A whole safetensors file of something else: the user may have meant to import it.
        Err(error) if Weights::read(&path).is_ok() => {
            return Err(Failure::usage(format!(
                "{error}. Weights of another program need --network, for example --network resnet18"
            )));
        }
        other => other?,
    };
    let mut config = checkpoint.config.clone();
    if let Some(set) = &args.data {
        config.data.set = set.clone();
        config.evaluation.features = FeatureSource::Recomputed;
        // Another set may have another size of its own.
        config.data.size = config.data.size.or(checkpoint.input.map(|i| i.size));
    }
    Ok((Source::Checkpoint(Box::new(checkpoint)), path, config))
}

fn untrained(args: &EvaluateArgs, network: Architecture) -> Result<Resolved, Failure> {
    let width = args.subject.width.unwrap_or(network.default_width());
    let config = without_run(args, network, width)?;
    Ok((Source::Untrained, UNTRAINED.into(), config))
}

fn imported(args: &EvaluateArgs, file: &Path, network: Architecture) -> Result<Resolved, Failure> {
    let place = file.display();
    if !file.is_file() {
        return Err(Failure::usage(format!(
            "{place}: no such file; with --network give a safetensors file of weights, or the word `{UNTRAINED}`"
        )));
    }
    if Checkpoint::load(file).is_ok() {
        return Err(Failure::usage(format!(
            "{place}: a checkpoint of this program, which knows its network; leave out --network"
        )));
    }
    let weights = Weights::read(file).map_err(|e| Failure::usage(e.to_string()))?;
    let stem = weights.shape("conv1.weight").filter(|s| s.len() == 4);
    let stem = stem.ok_or_else(|| {
        Failure::usage(format!(
            "{place}: it has no conv1.weight of four dimensions, so it is no {network}"
        ))
    })?;
    let form = network.form_of_stem(stem[3]).ok_or_else(|| {
        Failure::usage(format!(
            "{place}: its first convolution is {0}×{0} pixels wide, and no form of {network} has such a one",
            stem[3]
        ))
    })?;
    let width = args.subject.width.unwrap_or(stem[0]);
    let config = without_run(args, network, width)?;
    Ok((Source::Weights(weights, form), file.into(), config))
}

/// Settings for a network that has no run: the paper's, on the data set that was named.
fn without_run(
    args: &EvaluateArgs,
    network: Architecture,
    width: usize,
) -> Result<RunConfig, Failure> {
    let Some(set) = &args.data else {
        return Err(Failure::usage(
            "--network: say which pictures to judge on with --data, for example --data cifar10",
        ));
    };
    if args.features == Some(FeatureSource::Memory) {
        return Err(Failure::usage(
            "--features memory: only a run has a memory; leave it out",
        ));
    }
    let mut config = Preset::Paper.config(set);
    config.network.architecture = network;
    config.network.width = width;
    config.evaluation.features = FeatureSource::Recomputed;
    // What `train` would have drawn of shapes.
    let quick = Preset::Quick.config(set);
    config.data.shapes_train = quick.data.shapes_train;
    config.data.shapes_test = quick.data.shapes_test;
    Ok(config)
}

/// Labelled pictures to train and to test on, or why there are none.
pub fn labelled(data: &Dataset) -> Result<Judged<'_>, Failure> {
    let test = data.test.as_ref().filter(|t| !t.pictures.is_empty());
    let train = data.train.labels.as_ref();
    match (train, test.and_then(|t| t.labels.as_ref().zip(Some(t)))) {
        (Some(train_labels), Some((test_labels, test))) => Ok(Judged {
            train: &data.train.pictures,
            train_labels,
            test: &test.pictures,
            test_labels,
        }),
        _ => Err(TrainError::NoLabels {
            data: data.name.clone(),
        }
        .into()),
    }
}

/// What a protocol needs of a data set.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    /// Pictures to train on.
    pub train: &'a Pictures,
    /// Their labels.
    pub train_labels: &'a Labels,
    /// Pictures to test on.
    pub test: &'a Pictures,
    /// Their labels.
    pub test_labels: &'a Labels,
}
