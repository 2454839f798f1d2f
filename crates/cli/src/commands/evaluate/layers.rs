//! `anchorhood evaluate` on layers: linear classifiers, and kNN where the memory cannot vote.

use std::time::Instant;

use anchorhood::data::Dataset;
use anchorhood::engine::{Device, Graph, NodeId};
use anchorhood::evaluate::{LinearOptions, LinearSet, Rows, Spread, extract_layer, weighted_knn};
use anchorhood::train::FeatureSource;
use clap::Args;
use serde_json::{Value, json};

use crate::args::EvaluateArgs;
use crate::args::device;
use crate::args::run_data;
use crate::args::subject::{Judged, Source, Subject, labelled};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

/// Flags of the protocols on layers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Layers")]
pub struct LayerArgs {
    /// Train a linear classifier on the values of a layer, instead of letting neighbours vote.
    #[arg(long)]
    pub linear: bool,
    /// Which layers: conv1 … conv5, fc, or `all` [default: conv5 with --linear].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub layer: Vec<String>,
    /// Repeat with so many seeds, and give mean ± standard deviation.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Average a layer's maps to at most so many values a picture.
    #[arg(long, value_name = "N", default_value_t = anchorhood::evaluate::MOST_VALUES)]
    pub values: usize,
    /// Epochs of a linear classifier.
    #[arg(long, value_name = "N", default_value_t = LinearOptions::default().epochs)]
    pub linear_epochs: usize,
    /// Pictures in a batch of a linear classifier.
    #[arg(long, value_name = "N", default_value_t = LinearOptions::default().batch)]
    pub linear_batch: usize,
    /// Learning rate of a linear classifier at the start; it falls to a tenth after 60% and 80% of the epochs.
    #[arg(long, value_name = "RATE", default_value_t = LinearOptions::default().rate)]
    pub linear_lr: f32,
    /// Weight decay of a linear classifier.
    #[arg(long, value_name = "DECAY", default_value_t = LinearOptions::default().decay)]
    pub linear_decay: f32,
}

impl LayerArgs {
    fn options(&self, seed: u64) -> LinearOptions {
        LinearOptions {
            epochs: self.linear_epochs,
            batch: self.linear_batch,
            rate: self.linear_lr,
            decay: self.linear_decay,
            seed,
            ..LinearOptions::default()
        }
    }
}

/// What came of one layer.
#[derive(Default)]
struct Figures {
    layer: String,
    values: usize,
    pictures: usize,
    /// Of each seed.
    top1: Vec<f64>,
    /// Of each seed; none where there are no more than five classes.
    top5: Vec<f64>,
    seconds: f64,
}

impl Figures {
    fn json(&self) -> Value {
        let spread = |values: &[f64]| {
            let object = |s: Spread| json!({"mean": s.mean, "std": s.std, "n": s.n});
            Spread::of(values).map_or(Value::Null, object)
        };
        json!({
            "layer": self.layer,
            "values": self.values,
            "pictures": self.pictures,
            "top1": spread(&self.top1),
            "top5": spread(&self.top5),
            "top1_of_each_seed": self.top1,
            "seconds": self.seconds,
        })
    }

    fn sentence(&self, protocol: &str) -> String {
        let top1 = Spread::of(&self.top1).map(|s| format!("top-1 {s}"));
        let top5 = Spread::of(&self.top5).map(|s| format!(", top-5 {s}"));
        format!(
            "{:<12} {protocol} {}{} ({} pictures, {} values, {:.1} s)",
            self.layer,
            top1.unwrap_or_default(),
            top5.unwrap_or_default(),
            grouped(self.pictures),
            grouped(self.values),
            self.seconds
        )
    }
}

/// Whether layers are asked for, or there is no memory that could vote.
pub fn wanted(args: &EvaluateArgs, subject: &Subject) -> bool {
    let trained = matches!(subject.source, Source::Checkpoint(_));
    args.layers.linear || !args.layers.layer.is_empty() || !trained
}

/// Runs the command on layers.
pub fn run(args: &EvaluateArgs, subject: &Subject) -> Result<(), Failure> {
    let config = &subject.config;
    if args.layers.seeds == 0 || args.layers.values == 0 {
        return Err(Failure::usage("--seeds and --values must be at least 1"));
    }
    let options = args.layers.options(config.seed).check();
    options.map_err(|e| Failure::usage(e.to_string()))?;
    if args.features == Some(FeatureSource::Memory) {
        return Err(Failure::usage(
            "--features memory: the memory holds no layers; leave it out",
        ));
    }
    let data = run_data::open(config, args.data.as_deref())?;
    let (height, width) = (data.train.pictures.height(), data.train.pictures.width());
    if height != width {
        return Err(Failure::usage(format!(
            "{}: its pictures are {height}×{width}, and networks take squares; give --size",
            data.name
        )));
    }
    let graph = subject.graph(height)?;
    let work = Layers {
        args,
        subject,
        data: &data,
        judged: labelled(&data)?,
        layers: &chosen(args, subject, &graph)?,
        graph: &graph,
    };
    let device = device::open(&config.machine)?;
    let (note, figures) = work.on(&device)?;
    let protocol = if args.layers.linear { "linear" } else { "kNN" };
    if args.json {
        let object = json!({
            "subject": subject.path.display().to_string(),
            "network": config.network.architecture.name(),
            "width": config.network.width,
            "data": data.name,
            "protocol": protocol,
            "layers": figures.iter().map(Figures::json).collect::<Vec<_>>(),
            "training_pictures": data.train.pictures.len(),
            "settings": settings(args, subject),
            "note": note,
            "seed": config.seed,
            "device": device.describe(),
            "version": anchorhood::train::VERSION,
        });
        return output::line(&object.to_string());
    }
    output::line(&format!("{}; judged on {}", subject.describe(), data.name))?;
    if let Some(note) = note {
        output::line(&note)?;
    }
    (figures.iter()).try_for_each(|f| output::line(&f.sentence(protocol)))
}

fn settings(args: &EvaluateArgs, subject: &Subject) -> Value {
    let l = &args.layers;
    let e = &subject.config.evaluation;
    match l.linear {
        true => json!({
            "epochs": l.linear_epochs,
            "batch": l.linear_batch,
            "learning_rate": l.linear_lr,
            "weight_decay": l.linear_decay,
        }),
        false => json!({"k": e.k, "temperature": e.temperature}),
    }
}

/// The layers asked for, by name.
fn chosen(
    args: &EvaluateArgs,
    subject: &Subject,
    graph: &Graph,
) -> Result<Vec<(String, NodeId)>, Failure> {
    let known = || graph.taps().iter().map(|(name, _)| name.as_str());
    let find = |name: &String| match graph.find(name) {
        Ok(id) => Ok((name.clone(), id)),
        Err(_) => Err(Failure::usage(format!(
            "--layer {name}: there is no such layer; there is {}, and `all`",
            known().collect::<Vec<_>>().join(", ")
        ))),
    };
    match &args.layers.layer[..] {
        [] if args.layers.linear => Ok(vec![find(&"conv5".into())?]),
        [] => {
            // A last layer that was not in the file says nothing: what it would have been given says more.
            let fc = graph.find("fc")?;
            let id = match subject.lacks_fc(graph) {
                true => graph.node(fc).inputs[0],
                false => graph.output_node(),
            };
            Ok(vec![(graph.node(id).name.clone(), id)])
        }
        [all] if all == "all" => Ok(graph.taps().to_vec()),
        names => names.iter().map(find).collect(),
    }
}

struct Layers<'a> {
    args: &'a EvaluateArgs,
    subject: &'a Subject,
    data: &'a Dataset,
    judged: Judged<'a>,
    layers: &'a [(String, NodeId)],
    graph: &'a Graph,
}

/// Rows as a protocol takes them.
enum Prepared {
    Linear(LinearSet),
    Votes([Rows; 2]),
}

impl Layers<'_> {
    /// What there is to say of the network, and the figures of each layer.
    fn on(&self, device: &Device) -> Result<(Option<String>, Vec<Figures>), Failure> {
        let (mut note, mut figures) = (None, vec![]);
        for (name, node) in self.layers {
            figures.push(self.layer(device, name, *node, &mut note)?);
        }
        Ok((note, figures))
    }

    fn layer(
        &self,
        device: &Device,
        name: &str,
        node: NodeId,
        note: &mut Option<String>,
    ) -> Result<Figures, Failure> {
        let started = Instant::now();
        // Another seed draws another network where nobody trained it; a vote over one network has nothing to draw.
        let untrained = matches!(self.subject.source, Source::Untrained);
        let seeds = match self.args.layers.linear || untrained {
            true => self.args.layers.seeds,
            false => 1,
        };
        let mut figures = Figures {
            layer: name.into(),
            ..Figures::default()
        };
        let first = self.subject.config.seed;
        let mut prepared = None;
        for seed in first..first.saturating_add(seeds) {
            let ready = match prepared.take().filter(|_| !untrained) {
                Some(ready) => ready,
                None => self.prepare(device, name, node, seed, note, &mut figures.values)?,
            };
            let (top1, top5) = match &ready {
                Prepared::Linear(set) => self.classify(name, set, seed)?,
                Prepared::Votes(rows) => self.vote(device, rows)?,
            };
            figures.top1.push(top1);
            figures.top5.extend(top5);
            prepared = Some(ready);
        }
        figures.pictures = self.judged.test.len();
        figures.seconds = started.elapsed().as_secs_f64();
        Ok(figures)
    }

    fn prepare(
        &self,
        device: &Device,
        name: &str,
        node: NodeId,
        seed: u64,
        note: &mut Option<String>,
        values: &mut usize,
    ) -> Result<Prepared, Failure> {
        let made = self.subject.network(device, self.graph, vec![node], seed)?;
        let (mut network, said) = made;
        *note = note.take().or(said);
        let (mean, std) = self.subject.normalisation(self.data);
        let judged = &self.judged;
        let (train, test) = (judged.train.len(), judged.test.len());
        let bar = Bar::new(format!("extracting {name}"), self.args.json);
        let most = self.args.layers.values;
        let mut rows = |of, before: usize| {
            let tell = |done| bar.at(before + done, judged.train.len() + test);
            device.within(|| extract_layer(&mut network, node, of, mean, std, most, &tell))
        };
        let [mut train, mut test] = [rows(judged.train, 0)?, rows(judged.test, train)?];
        *values = train.dim;
        if self.args.layers.linear {
            let (truth, test_truth) = (judged.train_labels, judged.test_labels);
            let set = LinearSet::new(device, train, truth, test, test_truth)?;
            return Ok(Prepared::Linear(set));
        }
        train.to_unit_length();
        test.to_unit_length();
        Ok(Prepared::Votes([train, test]))
    }

    fn classify(
        &self,
        name: &str,
        set: &LinearSet,
        seed: u64,
    ) -> Result<(f64, Option<f64>), Failure> {
        let options = self.args.layers.options(seed);
        let what = format!("linear classifier on {name}, seed {seed}");
        let bar = Bar::new(what, self.args.json);
        let all = options.epochs;
        let tell = |epoch, loss: f64| bar.with(epoch, all, &format!("loss {loss:.4}"));
        let result = set.classify(&options, &tell)?;
        Ok((result.top1, result.top5))
    }

    fn vote(
        &self,
        device: &Device,
        [train, test]: &[Rows; 2],
    ) -> Result<(f64, Option<f64>), Failure> {
        let options = self.subject.config.evaluation.knn();
        let result = weighted_knn(
            device,
            &options,
            &device.upload(&train.values)?,
            train.dim,
            self.judged.train_labels,
            &device.upload(&test.values)?,
            self.judged.test_labels,
        )?;
        Ok((result.top1, result.top5))
    }
}
