//! `anchorhood attention`: where a run's network looked, round after round, as strips of pictures.
//!
//! A strip shows one training picture, and for every round's checkpoint the picture under the heat of its attention, framed in
//! grey where the picture stood alone in that round, green where all neighbours it was drawn to are of its class, red where
//! some are not. Below lies the nearest of these neighbours. Without labels no frame judges.

use std::fs;
use std::path::{Path, PathBuf};

use anchorhood::data::{self, Dataset, Split};
use anchorhood::discover::{MemoryBank, Neighbourhoods};
use anchorhood::engine::{Device, NetworkOptions, Positives};
use anchorhood::evaluate::overlay::{Column, Mark, Tile, overlay, picture, png, strip};
use anchorhood::evaluate::{Attention, HeatMap, Memory};
use anchorhood::files::AtomicFile;
use anchorhood::train::{
    Checkpoint, DeviceChoice, MachineConfig, RunConfig, RunDir, TrainingSet, checkpoint_path,
};
use clap::Parser;

use crate::args::device;
use crate::args::resolve::find_run;
use crate::args::run_data;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood attention shapes-1 --pictures 1,5,9
  anchorhood attention shapes-1 --pictures 0 -o looks --layer conv4

Each strip is a PNG file: the picture, then the same under the heat of each round (blue: no matter, red: this is what
puts the picture near its neighbourhood). Frames: grey, the picture stood alone; green, its neighbours are of its class;
red, some are not. Below, the nearest neighbour of the round.")]
pub struct AttentionArgs {
    /// A run's name or folder.
    pub run: String,
    /// Which training pictures, by number from 0.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', required = true)]
    pub pictures: Vec<usize>,
    /// The folder to write strips to.
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "attention")]
    pub output: PathBuf,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Where the data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// The layer whose places are weighed: conv1 … conv5.
    #[arg(long, default_value = "conv5")]
    pub layer: String,
    /// τ of the softmax over the memory [default: the run's].
    #[arg(long)]
    pub tau: Option<f64>,
    /// Where to run: auto, cpu, cuda or cuda:N [default: as the run was].
    #[arg(long)]
    pub device: Option<DeviceChoice>,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

/// Runs the command.
pub fn run(args: &AttentionArgs) -> Result<(), Failure> {
    let run = find_run(&args.runs, &args.run)?;
    let mut config = RunDir::config_of(&run)?;
    config.machine = MachineConfig {
        threads: args.threads,
        device: args.device.unwrap_or(config.machine.device),
        ..config.machine
    };
    config.discovery.temperature = args.tau.unwrap_or(config.discovery.temperature);
    config.check()?;
    let rounds = rounds_of(&run, &config)?;
    let data = run_data::open(&config, args.data.as_deref())?;
    let n = data.train.pictures.len();
    if let Some(i) = args.pictures.iter().find(|i| **i >= n) {
        return Err(Failure::usage(format!(
            "--pictures {i}: {} has the training pictures 0 to {}",
            data.name,
            n - 1
        )));
    }
    let work = Looking {
        args,
        config: &config,
        data: &data,
        rounds: &rounds,
    };
    let seen = work.on(&device::open(&config.machine)?)?;
    fs::create_dir_all(&args.output)
        .map_err(|e| Failure::failed(format!("{}: {e}", args.output.display())))?;
    for (i, picture) in args.pictures.iter().enumerate() {
        let views: Vec<&View> = seen.iter().map(|round| &round[i]).collect();
        let path = args.output.join(format!("picture-{picture}.png"));
        let drawn = png(&strip(&columns(&data.train, *picture, &views)));
        AtomicFile::write(&path, &drawn)
            .map_err(|e| Failure::failed(format!("{}: cannot write it: {e}", path.display())))?;
        let told = sentence(&data.train, *picture, &views);
        output::line(&format!("{}: {told}", path.display()))?;
    }
    Ok(())
}

/// The checkpoints of the rounds that are there, in order.
fn rounds_of(run: &Path, config: &RunConfig) -> Result<Vec<PathBuf>, Failure> {
    let all = (0..=config.training.rounds).map(|r| checkpoint_path(run, &format!("round-{r}")));
    let there: Vec<PathBuf> = all.filter(|p| p.is_file()).collect();
    match there.is_empty() {
        true => Err(Failure::usage(format!(
            "{}: no round of this run is finished yet; each leaves a checkpoint at its end",
            run.display()
        ))),
        false => Ok(there),
    }
}

/// One picture in one round.
struct View {
    map: HeatMap,
    /// The neighbours it was drawn to, nearest first; none where it stood alone.
    neighbours: Vec<u32>,
}

struct Looking<'a> {
    args: &'a AttentionArgs,
    config: &'a RunConfig,
    data: &'a Dataset,
    rounds: &'a [PathBuf],
}

impl Looking<'_> {
    /// For each round, a view of each picture.
    fn on(&self, device: &Device) -> Result<Vec<Vec<View>>, Failure> {
        let pictures = &self.data.train.pictures;
        let n = &self.config.network;
        let graph = (n.architecture).graph(pictures.height(), n.width, n.features)?;
        let node = graph.find(&self.args.layer);
        let node = node.map_err(|e| Failure::usage(format!("--layer: {e}")))?;
        let count = self.args.pictures.len();
        let options = NetworkOptions {
            keep: vec![node],
            ..NetworkOptions::new(count.min(64))
        };
        let network = device.network(&graph, &options)?;
        let mut attention = Attention::new(device, network, node, count)?;
        let bar = Bar::new("looking", false);
        let mut seen = vec![];
        for path in self.rounds {
            let checkpoint = self.checkpoint(path)?;
            attention.set_weights(|network| {
                network.initialise(self.config.seed);
                checkpoint
                    .restore(network, false, path)
                    .map_err(Failure::from)
            })?;
            let (mean, std) = match &checkpoint.input {
                Some(input) => (input.mean, input.std),
                None => (self.data.mean, self.data.std),
            };
            let one = pictures.picture_len();
            let mut pixels = vec![0.0; count * one];
            for (i, pixels) in self.args.pictures.iter().zip(pixels.chunks_exact_mut(one)) {
                data::normalise(pictures.picture(*i), mean, std, pixels);
            }
            let positives = self.positives(&checkpoint);
            let (rows, dim) = checkpoint.memory().unwrap_or_default();
            let bank = MemoryBank::from_values(device, rows, dim)?;
            let memory = Memory {
                bank: bank.buffer(),
                dim,
                temperature: self.config.discovery.temperature as f32,
            };
            let maps = attention.maps(&pixels, &positives, &memory)?;
            let view = |(i, map)| View {
                map,
                neighbours: positives.of(i)[1..].to_vec(), // the first is the picture itself
            };
            seen.push(maps.into_iter().enumerate().map(view).collect());
            bar.at(seen.len(), self.rounds.len());
        }
        Ok(seen)
    }

    fn checkpoint(&self, path: &Path) -> Result<Checkpoint, Failure> {
        let checkpoint = Checkpoint::load(path)?;
        checkpoint.check_memory(&TrainingSet::of(self.data), path)?;
        Ok(checkpoint)
    }

    /// What each chosen picture was drawn to in the round.
    fn positives(&self, checkpoint: &Checkpoint) -> Positives {
        let found = checkpoint.neighbourhoods();
        let found = found.unwrap_or_else(|| Neighbourhoods::single(checkpoint.pictures()));
        let all = found.positives();
        let chosen = &self.args.pictures;
        let mut positives = Positives::with_capacity(chosen.len(), chosen.len());
        for i in chosen {
            positives.push(all.of(*i).iter().copied());
        }
        positives
    }
}

/// The picture, then a column for each round.
fn columns(train: &Split, index: usize, views: &[&View]) -> Vec<Column> {
    let (height, width) = (train.pictures.height(), train.pictures.width());
    let plain = |i: usize| picture(train.pictures.picture(i), height, width);
    let mut columns = vec![Column {
        shown: Tile {
            picture: plain(index),
            mark: Mark::Plain,
        },
        neighbour: None,
    }];
    for view in views {
        let mark = judged(train, index, view);
        let nearest = view.neighbours.first().map(|n| *n as usize);
        let neighbour = nearest.map(|n| Tile {
            picture: plain(n),
            mark: match mark {
                Mark::Plain => Mark::Plain,
                _ => match same_class(train, index, n) {
                    true => Mark::Right,
                    false => Mark::Wrong,
                },
            },
        });
        columns.push(Column {
            shown: Tile {
                picture: overlay(&plain(index), &view.map),
                mark,
            },
            neighbour,
        });
    }
    columns
}

fn same_class(train: &Split, a: usize, b: usize) -> bool {
    let class = |i| train.labels.as_ref().map(|l| l.get(i));
    class(a) == class(b)
}

fn judged(train: &Split, index: usize, view: &View) -> Mark {
    let right = |n: &u32| same_class(train, index, *n as usize);
    match (&train.labels, view.neighbours.is_empty()) {
        (_, true) => Mark::Alone,
        (None, _) => Mark::Plain,
        _ if view.neighbours.iter().all(right) => Mark::Right,
        _ => Mark::Wrong,
    }
}

/// What a strip shows, for those who cannot see it.
fn sentence(train: &Split, index: usize, views: &[&View]) -> String {
    let name = |i: usize| match &train.labels {
        Some(labels) => labels.classes()[labels.get(i) as usize].clone(),
        None => format!("picture {i}"),
    };
    let rounds = views.iter().enumerate().map(|(round, view)| {
        let near = match (judged(train, index, view), view.neighbours.first()) {
            (_, None) => "alone".into(),
            (Mark::Wrong, Some(n)) => format!("with {}, wrong", name(*n as usize)),
            (_, Some(n)) => format!("with {}", name(*n as usize)),
        };
        format!("round {round} {near}")
    });
    format!("{}; {}", name(index), rounds.collect::<Vec<_>>().join(", "))
}
