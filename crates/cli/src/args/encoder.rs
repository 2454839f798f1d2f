//! Whose features are judged: a checkpoint's, those of weights another program made, or those of a
//! network nobody trained.

use std::path::{Path, PathBuf};

use anchorhood::research::{
    Backbone, Checkpoint, Encoder, EncoderSource, FeatureSource, Normalisation, Weights,
    model_file, paper_settings,
};
use anchorhood::{MachineConfig, RunConfig};
use anchorhood_storage::OpenContainer;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::args::EvaluateArgs;
use crate::terminal::failure::Failure;

/// What to type for a network as its seed draws it.
pub const UNTRAINED: &str = "untrained";

/// Flags for networks without a run, and for what they are judged on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Networks without a run, and their pictures")]
pub struct EncoderArgs {
    /// Which network the weights of another program are of, or which one is `untrained`.
    #[arg(long)]
    pub network: Option<&'static Backbone>,
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
    /// Whose mean and standard deviation pictures are normalised by [default: imagenet for weights
    /// of another program].
    #[arg(long, value_parser = PossibleValuesParser::new(["data", "imagenet"])
        .map(|s| normalisation(&s)))]
    pub normalise: Option<Normalisation>,
}

fn normalisation(name: &str) -> Normalisation {
    match name {
        "imagenet" => Normalisation::ImageNet,
        _ => Normalisation::Data,
    }
}

/// Resolves an `evaluate` command.
pub fn resolve(args: &EvaluateArgs) -> Result<Encoder, Failure> {
    let (source, path, mut config) = match (args.run.as_str(), args.encoder.network) {
        (UNTRAINED, Some(network)) => untrained(args, network)?,
        (UNTRAINED, None) => {
            return Err(Failure::usage(
                "untrained: say which network with --network, for example --network resnet18",
            ));
        }
        (file, Some(network)) => imported(args, Path::new(file), network)?,
        (_, None) => checkpoint(args)?,
    };
    overlay(args, &mut config)?;
    let usual = match source {
        EncoderSource::Weights(..) => Normalisation::ImageNet,
        _ => Normalisation::Data,
    };
    Ok(Encoder { source, path, config, normalisation: args.encoder.normalise.unwrap_or(usual) })
}

/// What flags say in place of a configuration.
pub fn overlay(args: &EvaluateArgs, config: &mut RunConfig) -> Result<(), Failure> {
    let given = &args.encoder;
    config.seed = given.seed.unwrap_or(config.seed);
    config.data.size = given.size.or(config.data.size);
    config.data.limit = given.limit.or(config.data.limit);
    config.data.test_limit = given.test_limit.or(config.data.test_limit);
    config.machine = MachineConfig {
        threads: args.threads,
        device: args.device.unwrap_or(config.machine.device),
        ..config.machine.clone()
    };
    config.evaluation.k = args.k.unwrap_or(config.evaluation.k);
    config.evaluation.temperature = args.tau.unwrap_or(config.evaluation.temperature);
    config.evaluation.features = args.features.unwrap_or(config.evaluation.features);
    Ok(config.check()?)
}

type Resolved = (EncoderSource, PathBuf, RunConfig);

fn checkpoint(args: &EvaluateArgs) -> Result<Resolved, Failure> {
    if args.encoder.width.is_some() {
        return Err(Failure::usage(
            "--width: a checkpoint has its own; the flag is for weights of another program and for \
             `untrained`",
        ));
    }
    let path = model_file(&args.runs, &args.run)?;
    let checkpoint = match Checkpoint::load(&path) {
        // A whole safetensors file of something else: the user may have meant to import it.
        Err(error) if !OpenContainer::is_ours(&path) && Weights::read(&path).is_ok() => {
            return Err(usage!(
                "{error}. Weights of another program need --network, for example --network resnet18"
            ));
        }
        other => other?,
    };
    let mut config = checkpoint.config.clone();
    if let Some(set) = &args.data {
        config.data.set = set.clone();
        config.evaluation.features = FeatureSource::Recomputed;
        // Another set may have another size of its own.
        config.data.size = config.data.size.or(Some(checkpoint.input.size));
    }
    Ok((EncoderSource::Checkpoint(Box::new(checkpoint)), path, config))
}

fn untrained(args: &EvaluateArgs, network: &'static Backbone) -> Result<Resolved, Failure> {
    let width = args.encoder.width.unwrap_or(network.width);
    let config = without_run(args, network, width)?;
    Ok((EncoderSource::Untrained, UNTRAINED.into(), config))
}

fn imported(
    args: &EvaluateArgs,
    file: &Path,
    network: &'static Backbone,
) -> Result<Resolved, Failure> {
    let place = file.display();
    if !file.is_file() {
        return Err(usage!(
            "{place}: no such file; with --network give a safetensors file of weights, or the word \
             `{UNTRAINED}`"
        ));
    }
    if OpenContainer::is_ours(file) {
        return Err(usage!(
            "{place}: a checkpoint of this program, which knows its network; leave out --network"
        ));
    }
    let weights = Weights::read(file).map_err(|e| Failure::usage(e.to_string()))?;
    let stem = weights.shape("conv1.weight").filter(|s| s.len() == 4);
    let stem = stem.ok_or_else(|| {
        usage!("{place}: it has no conv1.weight of four dimensions, so it is no {network}")
    })?;
    let form = network.form_of_stem(stem[3]).ok_or_else(|| {
        usage!(
            "{place}: its first convolution is {0}×{0} pixels wide, and no form of {network} has \
             such a one",
            stem[3]
        )
    })?;
    let width = args.encoder.width.unwrap_or(stem[0]);
    let config = without_run(args, network, width)?;
    Ok((EncoderSource::Weights(weights, form), file.into(), config))
}

/// Settings for a network that has no run: the paper's, on the data set that was named.
fn without_run(
    args: &EvaluateArgs,
    network: &'static Backbone,
    width: usize,
) -> Result<RunConfig, Failure> {
    let Some(set) = &args.data else {
        return Err(Failure::usage(
            "--network: say which pictures to judge on with --data, for example --data cifar10",
        ));
    };
    if args.features == Some(FeatureSource::Memory) {
        return Err(Failure::usage("--features memory: only a run has a memory; leave it out"));
    }
    let mut config = paper_settings(set);
    config.network.architecture = network;
    config.network.width = width;
    Ok(config)
}
