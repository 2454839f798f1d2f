//! The command line, parsed and nothing more: no file is read, no default of the method is decided
//! here. What was meant is decided by the library and by the modules below: which folders
//! ([`pictures`]), which model ([`model`]), which network ([`encoder`]), which device ([`device`]).
//! The flags of a run's settings come from where settings are declared ([`setting`]).

pub mod device;
pub mod encoder;
pub mod model;
pub mod pictures;
pub mod ranks;
pub mod setting;
pub mod token;

use std::path::PathBuf;
use std::str::FromStr;

use anchorhood::research::{Backbone, FeatureSource};
use anchorhood::{DeviceChoice, METHODS, MethodSpec, PrecisionChoice, Preset, RunOptions};
use anchorhood_data::dataset_names;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};

use setting::SettingArgs;

/// Learns image features without labels, by Anchor Neighbourhood Discovery.
#[derive(Debug, Parser)]
#[command(name = "anchorhood", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = help!("anchorhood"))]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Learn features from pictures.
    Train(Box<TrainArgs>),
    /// Judge the features of a run or a checkpoint.
    Evaluate(EvaluateArgs),
    /// Draw where a run's network looked, round after round.
    Attention(crate::commands::attention::AttentionArgs),
    /// The vectors of a folder of pictures, as Parquet, NumPy, CSV or JSON lines.
    Embed(Box<crate::commands::embed::EmbedArgs>),
    /// Make a folder of pictures searchable.
    Index(Box<crate::commands::index::IndexArgs>),
    /// Which pictures are like this one?
    Neighbours(Box<crate::commands::neighbours::NeighboursArgs>),
    /// Which pictures are the same, and which to keep?
    Duplicates(Box<crate::commands::duplicates::DuplicatesArgs>),
    /// Which few pictures show what all there is?
    Select(crate::commands::select::SelectArgs),
    /// Which pictures are unlike all others, or blurry, dark, bright, flat?
    Outliers(Box<crate::commands::outliers::OutliersArgs>),
    /// Which groups do the pictures form?
    Cluster(Box<crate::commands::cluster::ClusterArgs>),
    /// Carry a few labels to a whole folder.
    Classify(Box<crate::commands::classify::ClassifyArgs>),
    /// The model for other programs: ONNX, torchvision, timm.
    Export(crate::commands::export::ExportArgs),
    /// One page about a run, to look at and to send.
    Report(crate::commands::report::ReportArgs),
    /// Methods beside each other, for as long or as many views each.
    Compare(Box<crate::commands::compare::CompareArgs>),
    /// The paper's tables and figures, ours beside the paper's.
    Reproduce(crate::commands::reproduce::ReproduceArgs),
    /// A page to walk through pictures, on this machine.
    Serve(Box<crate::commands::serve::ServeArgs>),
    /// Which models there are, get one, see what one is.
    Model(crate::commands::model::ModelCommandArgs),
    /// What this machine and this program offer.
    Info(InfoArgs),
    /// Measure the speed of one part.
    Bench(BenchArgs),
    /// Get a data set, see whether it is whole, pack it.
    Data(crate::commands::data::DataArgs),
    /// A script that completes commands and flags in your shell.
    Completions(crate::commands::completions::CompletionsArgs),
    /// The manual.
    Man(crate::commands::completions::ManArgs),
}

#[derive(Debug, Parser)]
#[command(after_help = help!("train"))]
pub struct TrainArgs {
    #[command(flatten)]
    pub start: StartArgs,
    /// Train for so long, from the program's start to its end: the speed is measured first, and the
    /// epochs follow from it (of a short run of anchorhood also the rounds, unless --rounds says
    /// how many). They are kept in config.toml, so that the run can be resumed and repeated.
    #[arg(long, value_name = "M", value_parser = minutes,
          conflicts_with_all = ["training.epochs", "resume"])]
    pub minutes: Option<f64>,
    /// What to call the run [default: the data set and a number].
    #[arg(long)]
    pub name: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Go on with a run: its name or folder; without one, that of --name, or the latest.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Where the data set of the run is now, if it has moved; for --resume.
    #[arg(long = "data", value_name = "PATH")]
    pub moved: Option<String>,
    /// Say what every setting would be and who decided about it, and train nothing.
    #[arg(long, conflicts_with = "resume")]
    pub explain: bool,
    /// Events on stdout, one JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Neither bars nor lines while training.
    #[arg(long)]
    pub quiet: bool,
    /// Also write the run's figures for TensorBoard as they come, into its folder tensorboard/. A
    /// resumed run goes on with it.
    #[arg(long)]
    pub tensorboard: bool,
}

/// What a new run begins from.
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    #[arg(help = data_help())]
    pub data: Option<String>,
    /// Learn from the files that this text names: one a line, seen from its folder, and after a tab
    /// the class if there is one.
    #[arg(long, value_name = "LIST", conflicts_with = "data")]
    pub files: Option<String>,
    /// Settings to begin from: quick (minutes on two cores, the default), strong (minutes on a GPU)
    /// or paper.
    #[arg(long, value_parser = PossibleValuesParser::new(PRESETS).map(|s| preset(&s)))]
    pub preset: Option<Preset>,
    /// A configuration file, whole or in part, such as a run's config.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

impl StartArgs {
    /// The data set that was typed, if one was.
    pub fn set(&self) -> Option<String> {
        let list = self.files.as_ref().map(|list| format!("files:{list}"));
        list.or_else(|| self.data.clone())
    }

    /// What is asked for, as the library takes it.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            data: self.set(),
            preset: self.preset,
            config: self.config.clone(),
            settings: self.settings.0.clone(),
            ..RunOptions::default()
        }
    }
}

#[derive(Debug, Parser)]
#[command(after_help = help!("evaluate"))]
pub struct EvaluateArgs {
    /// A run's name or folder, a checkpoint file, `base`, a model file, an ONNX model; with
    /// --network a file of another program's weights, or `untrained`.
    pub run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Judge on this data set [default: the run's own].
    #[arg(long)]
    pub data: Option<String>,
    /// Neighbours that vote [default: the run's].
    #[arg(long)]
    pub k: Option<usize>,
    /// τ of their weights [default: the run's].
    #[arg(long)]
    pub tau: Option<f64>,
    /// Which features of the training pictures vote [default: the run's; recomputed with --data].
    #[arg(long, value_parser = one_of::<FeatureSource>(FeatureSource::NAMES))]
    pub features: Option<FeatureSource>,
    /// Where to run: auto, cpu, cuda or cuda:N [default: as the run was].
    #[arg(long)]
    pub device: Option<DeviceChoice>,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// The figures as one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub layers: crate::commands::evaluate::layers::LayerArgs,
    #[command(flatten)]
    pub encoder: encoder::EncoderArgs,
}

#[derive(Debug, Parser)]
pub struct InfoArgs {
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = help!("bench"))]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Bench,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// One training step on a fixed batch: forwards, loss over the bank, backwards, weights,
    /// memory.
    Step(BenchStepArgs),
    /// Entropy and nearest neighbours of a bank of random features; by several processes, too.
    Discover(BenchDiscoverArgs),
}

#[derive(Debug, Parser)]
pub struct BenchStepArgs {
    /// The network.
    #[arg(long, default_value = "resnet18")]
    pub network: &'static Backbone,
    /// Channels after its stem.
    #[arg(long, default_value = "16", value_parser = count())]
    pub width: usize,
    /// Pictures in the batch.
    #[arg(long, default_value = "64", value_parser = count())]
    pub batch: usize,
    /// Pixels a side.
    #[arg(long, default_value = "32", value_parser = count())]
    pub size: usize,
    /// Features in the memory bank.
    #[arg(long, default_value = "5000", value_parser = count())]
    pub n: usize,
    /// Length of a feature.
    #[arg(long, default_value = "128", value_parser = count())]
    pub dim: usize,
    /// Steps to measure, after as many as a fifth of them, and at least two, to warm up.
    #[arg(long, default_value = "10", value_parser = count())]
    pub steps: usize,
    /// Also time each part of the step alone, beside what the GPU can do at best.
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    pub common: BenchCommon,
}

#[derive(Debug, Parser)]
pub struct BenchDiscoverArgs {
    /// Features in the memory bank.
    #[arg(long, default_value = "50000", value_parser = count())]
    pub n: usize,
    /// Length of a feature.
    #[arg(long, default_value = "128", value_parser = count())]
    pub dim: usize,
    /// Neighbours of each.
    #[arg(long, short = 'k', default_value = "1", value_parser = count())]
    pub neighbours: usize,
    /// How often; the median counts.
    #[arg(long, default_value = "1", value_parser = count())]
    pub repeat: usize,
    /// In a few clusters of the features instead of all; the share of true neighbours found is
    /// told.
    #[arg(long)]
    pub approximate: bool,
    #[command(flatten)]
    pub common: BenchCommon,
}

#[derive(Debug, Parser)]
pub struct BenchCommon {
    /// Where to run: auto, cpu, cuda or cuda:N.
    #[arg(long, default_value = "cpu")]
    pub device: DeviceChoice,
    /// What numbers a GPU computes with: bf16, tf32 or f32.
    #[arg(long, default_value = "bf16", value_parser = precisions())]
    pub precision: PrecisionChoice,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

/// A time that can be trained for.
pub fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if minutes > 0.0 && f64::is_finite(minutes) => Ok(minutes),
        _ => Err("give a number of minutes above 0, such as 5 or 0.5".into()),
    }
}

const PRESETS: [&str; 3] = ["quick", "strong", "paper"];

fn preset(name: &str) -> Preset {
    let is = |p: &Preset| p.name() == name;
    Preset::ALL.into_iter().find(is).expect("the parser allows only these")
}

/// What a run may learn from.
fn data_help() -> String {
    let names: Vec<String> = dataset_names().map(|name| format!("`{name}`")).collect();
    format!(
        "{}, alone or as NAME:PATH; a packed set; a CIFAR .tar.gz; a folder of pictures, a .tar of \
         them, or a .txt that lists files [default: shapes]",
        names.join(", ")
    )
}

/// One of some names.
pub fn one_of<T: FromStr + Clone + Send + Sync + 'static>(
    names: &[&'static str],
) -> impl TypedValueParser<Value = T> + use<T> {
    let names = PossibleValuesParser::new(names.iter().copied());
    names.map(|name| name.parse().ok().expect("the parser allows only these"))
}

/// A method by its name.
pub fn method_names() -> impl TypedValueParser<Value = &'static MethodSpec> {
    let names = METHODS.all().into_iter().map(|m| PossibleValue::new(m.name).help(m.summary));
    PossibleValuesParser::new(names).map(|name| METHODS.find(&name).expect("it is one of them"))
}

/// What numbers a GPU computes with.
pub fn precisions() -> impl TypedValueParser<Value = PrecisionChoice> {
    one_of::<PrecisionChoice>(PrecisionChoice::NAMES)
}

/// How many: at least one.
fn count() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u64).range(1..).map(|count| count as usize)
}

/// What a `train` command says.
#[cfg(test)]
pub fn train(line: &str) -> TrainArgs {
    let words = std::iter::once("anchorhood").chain(line.split_whitespace());
    match Args::try_parse_from(words).unwrap().command {
        Command::Train(args) => *args,
        _ => panic!("not train"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn resume_takes_a_run_or_none() {
        assert_eq!(train("train").resume, None);
        assert_eq!(train("train --resume").resume.as_deref(), Some(""));
        assert_eq!(train("train --resume a").resume.as_deref(), Some("a"));
        let both = train("train shapes --resume --name b");
        assert_eq!(both.resume.as_deref(), Some(""));
        assert_eq!(both.start.data.as_deref(), Some("shapes"));
        let list = train("train --files a.txt");
        assert_eq!(list.start.set().as_deref(), Some("files:a.txt"));
    }
}
