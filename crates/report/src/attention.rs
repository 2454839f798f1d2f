//! Where a run's network looked, round after round, as strips of pictures.
//!
//! A strip shows one training picture, and for every round's checkpoint the picture under the heat
//! of its attention, framed in grey where the picture stood alone in that round, green where all
//! neighbours it was drawn to are of its class, red where some are not. Below lies the nearest of
//! these neighbours. Without labels no frame judges.

use std::path::{Path, PathBuf};

use anchorhood_data::{Dataset, Split, normalise};
use anchorhood_engine::{Device, NetworkOptions, Positives};
use anchorhood_train::discovery::{MemoryBank, Neighbourhoods};
use anchorhood_train::evaluation::overlay::{Column, Mark, Tile, overlay, picture, png, strip};
use anchorhood_train::evaluation::{Attention, HeatMap, Memory};
use anchorhood_train::{Checkpoint, RunConfig, TrainingSet, checkpoint_path};

use crate::ReportError;

/// Pictures that go through the network together, at most.
const BATCH: usize = 64;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct AttentionOptions<'a> {
    /// Training pictures, by number.
    pub pictures: &'a [usize],
    /// The layer whose places are weighed.
    pub layer: &'a str,
    /// τ of the softmax over the memory.
    pub temperature: f32,
}

/// A picture through all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionStrip {
    /// Which.
    pub picture: usize,
    /// The strip, as a PNG file.
    pub png: Vec<u8>,
    /// What it shows, for those who cannot see it.
    pub sentence: String,
}

/// The checkpoints of a run's finished rounds, in order.
pub fn finished_rounds(run: &Path, config: &RunConfig) -> Vec<PathBuf> {
    let all = (0..=config.training.rounds).map(|r| checkpoint_path(run, &format!("round-{r}")));
    all.filter(|p| p.is_file()).collect()
}

/// A strip for each picture, over the checkpoints of some rounds. `config` is the run's, `data`
/// what it was trained on; `progress` is told how many rounds are done.
pub fn attention_strips(
    device: &Device,
    rounds: &[PathBuf],
    config: &RunConfig,
    data: &Dataset,
    options: &AttentionOptions,
    progress: &dyn Fn(usize),
) -> Result<Vec<AttentionStrip>, ReportError> {
    let there = data.train.pictures.len();
    if let Some(number) = options.pictures.iter().copied().find(|i| *i >= there) {
        let why = format!("there is no training picture {number} among {there}");
        return Err(ReportError::Failed(why));
    }
    let looking = Looking { device, config, data, options };
    let seen = looking.rounds(rounds, progress)?;
    let strip_of = |(i, number): (usize, &usize)| {
        let views: Vec<&View> = seen.iter().map(|round| &round[i]).collect();
        AttentionStrip {
            picture: *number,
            png: png(&strip(&columns(&data.train, *number, &views))),
            sentence: sentence(&data.train, *number, &views),
        }
    };
    Ok(options.pictures.iter().enumerate().map(strip_of).collect())
}

/// One picture in one round.
struct View {
    map: HeatMap,
    /// The neighbours it was drawn to, nearest first; none where it stood alone.
    neighbours: Vec<u32>,
}

struct Looking<'a> {
    device: &'a Device,
    config: &'a RunConfig,
    data: &'a Dataset,
    options: &'a AttentionOptions<'a>,
}

impl Looking<'_> {
    /// For each round, a view of each picture.
    fn rounds(
        &self,
        rounds: &[PathBuf],
        progress: &dyn Fn(usize),
    ) -> Result<Vec<Vec<View>>, ReportError> {
        if self.options.pictures.is_empty() {
            return Ok(rounds.iter().map(|_| vec![]).collect());
        }
        let (mut attention, mut seen) = (None, vec![]);
        for path in rounds {
            let checkpoint = Checkpoint::load(path)?;
            let attention = match &mut attention {
                Some(attention) => attention,
                None => attention.insert(self.attention(&checkpoint)?),
            };
            seen.push(self.round(attention, &checkpoint, path)?);
            progress(seen.len());
        }
        Ok(seen)
    }

    /// The network, whose weights come with each round.
    fn attention(&self, checkpoint: &Checkpoint) -> Result<Attention, ReportError> {
        let count = self.options.pictures.len();
        let graph = checkpoint.graph(self.data.train.pictures.height())?;
        let node = graph.find(self.options.layer)?;
        let options = NetworkOptions { keep: vec![node], ..NetworkOptions::new(count.min(BATCH)) };
        let network = self.device.network(&graph, &options)?;
        Ok(Attention::new(self.device, network, node, count)?)
    }

    fn round(
        &self,
        attention: &mut Attention,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<Vec<View>, ReportError> {
        let (rows, dim) = checkpoint.rows_of(self.device, &TrainingSet::of(self.data), path)?;
        attention.set_weights(|network| {
            network.initialise(self.config.seed)?;
            let restored = checkpoint.restore(network, false, path);
            restored.map_err(ReportError::from)
        })?;
        let positives = self.positives(checkpoint);
        let bank = MemoryBank::from_values(self.device, &rows, dim)?;
        let memory = Memory { bank: bank.buffer(), dim, temperature: self.options.temperature };
        let maps = attention.maps(&self.pixels(checkpoint), &positives, &memory)?;
        let view = |(i, map)| View {
            map,
            neighbours: positives.of(i)[1..].to_vec(), // the first is the picture itself
        };
        Ok(maps.into_iter().enumerate().map(view).collect())
    }

    /// The pictures as the network was given them.
    fn pixels(&self, checkpoint: &Checkpoint) -> Vec<f32> {
        let (mean, std) = (checkpoint.input.mean, checkpoint.input.std);
        let pictures = &self.data.train.pictures;
        let one = pictures.picture_len();
        let mut pixels = vec![0.0; self.options.pictures.len() * one];
        let mut scratch = vec![];
        for (i, pixels) in self.options.pictures.iter().zip(pixels.chunks_exact_mut(one)) {
            normalise(pictures.picture_in(*i, &mut scratch), mean, std, pixels);
        }
        pixels
    }

    /// What each picture was drawn to in the round.
    fn positives(&self, checkpoint: &Checkpoint) -> Positives {
        let found = checkpoint.neighbourhoods();
        let pictures = self.data.train.pictures.len();
        let found = found.unwrap_or_else(|| Neighbourhoods::single(pictures));
        let (all, chosen) = (found.positives(), self.options.pictures);
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
    let plain = |i: usize| picture(train.pictures.picture_in(i, &mut vec![]), height, width);
    let mut columns =
        vec![Column { shown: Tile { picture: plain(index), mark: Mark::Plain }, neighbour: None }];
    for view in views {
        let mark = judged(train, index, view);
        let nearest = view.neighbours.first().map(|n| *n as usize);
        let right = |n| if same_class(train, index, n) { Mark::Right } else { Mark::Wrong };
        let neighbour = nearest.map(|n| Tile {
            picture: plain(n),
            mark: if mark == Mark::Plain { mark } else { right(n) },
        });
        columns.push(Column {
            shown: Tile { picture: overlay(&plain(index), &view.map), mark },
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
