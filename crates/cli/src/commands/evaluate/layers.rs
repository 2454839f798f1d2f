//! `anchorhood evaluate` on layers: linear classifiers, and kNN where the memory cannot vote.

use anchorhood::open_images_of;
use anchorhood::research::{
    Encoder, EncoderSource, FeatureSource, Graph, LayerFigures, LayerOptions, LayerProgress,
    LayerProtocol, LinearOptions, NodeId, Spread, judge_layers, labelled_for,
};
use clap::Args;
use serde_json::{Value, json};

use crate::args::EvaluateArgs;
use crate::args::device;
use crate::terminal::bar::Bars;
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
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Epochs of a linear classifier.
    #[arg(long, value_name = "N", default_value_t = LinearOptions::default().epochs)]
    pub linear_epochs: usize,
    /// Learning rate of a linear classifier at the start; it falls to a tenth after 60% and 80% of
    /// the epochs.
    #[arg(long, value_name = "RATE", default_value_t = LinearOptions::default().rate)]
    pub linear_lr: f32,
}

impl LayerArgs {
    fn options(&self) -> LinearOptions {
        LinearOptions {
            epochs: self.linear_epochs,
            rate: self.linear_lr,
            ..LinearOptions::default()
        }
    }
}

fn as_json(figures: &LayerFigures) -> Value {
    json!({
        "layer": figures.layer,
        "values": figures.values,
        "pictures": figures.pictures,
        "top1": Spread::of(&figures.top1),
        "top5": Spread::of(&figures.top5),
        "top1_of_each_seed": figures.top1,
        "seconds": figures.seconds,
    })
}

fn sentence(figures: &LayerFigures, protocol: &str) -> String {
    let top1 = Spread::of(&figures.top1).map(|s| format!("top-1 {s}"));
    let top5 = Spread::of(&figures.top5).map(|s| format!(", top-5 {s}"));
    format!(
        "{:<12} {protocol} {}{} ({} pictures, {} values, {:.1} s)",
        figures.layer,
        top1.unwrap_or_default(),
        top5.unwrap_or_default(),
        grouped(figures.pictures),
        grouped(figures.values),
        figures.seconds
    )
}

/// Whether layers are asked for, or there is no memory that could vote.
pub fn wanted(args: &EvaluateArgs, subject: &Encoder) -> bool {
    let trained = matches!(subject.source, EncoderSource::Checkpoint(_));
    args.layers.linear || !args.layers.layer.is_empty() || !trained
}

/// Runs the command on layers.
pub fn run(args: &EvaluateArgs, subject: &Encoder) -> Result<(), Failure> {
    let config = &subject.config;
    let options = args.layers.options().check();
    options.map_err(|e| Failure::usage(e.to_string()))?;
    if args.features == Some(FeatureSource::Memory) {
        return Err(Failure::usage("--features memory: the memory holds no layers; leave it out"));
    }
    let data = open_images_of(config, args.data.as_deref())?;
    let (height, width) = (data.train.pictures.height(), data.train.pictures.width());
    if height != width {
        return Err(usage!(
            "{}: its pictures are {height}×{width}, and networks take squares; give --size",
            data.name
        ));
    }
    let graph = subject.graph(height)?;
    labelled_for(subject, &data)?; // found out before a device is asked for
    let layers = chosen(args, subject, &graph)?;
    let options = LayerOptions {
        protocol: match args.layers.linear {
            true => LayerProtocol::Linear(args.layers.options()),
            false => LayerProtocol::Knn,
        },
        seeds: args.layers.seeds,
    };
    let device = device::open(&config.machine)?;
    let bars = Bars::new(args.json);
    let tell = |progress: LayerProgress| match progress {
        LayerProgress::Extracting { layer, done, total, .. } => {
            bars.at(&format!("extracting {layer}"), done, total, "")
        }
        LayerProgress::Probing { layer, seed, epoch, epochs, loss, .. } => {
            let what = format!("linear classifier on {layer}, seed {seed}");
            bars.at(&what, epoch, epochs, &format!("loss {loss:.4}"));
        }
    };
    let judged = judge_layers(&device, subject, &graph, &layers, &options, &data, &tell);
    drop(bars);
    let (figures, note) = judged?;
    let protocol = if args.layers.linear { "linear" } else { "kNN" };
    if args.json {
        let object = json!({
            "subject": subject.path.display().to_string(),
            "network": config.network.architecture.name,
            "width": config.network.width,
            "data": data.name,
            "protocol": protocol,
            "layers": figures.iter().map(as_json).collect::<Vec<_>>(),
            "training_pictures": data.train.pictures.len(),
            "settings": settings(args, subject),
            "note": note,
            "seed": config.seed,
            "device": device.describe(),
            "version": anchorhood::VERSION,
        });
        return output::line(&object.to_string());
    }
    output::line(&format!("{}; judged on {}", subject.describe(), data.name))?;
    if let Some(note) = note {
        output::line(&note)?;
    }
    (figures.iter()).try_for_each(|f| output::line(&sentence(f, protocol)))
}

fn settings(args: &EvaluateArgs, subject: &Encoder) -> Value {
    let linear = args.layers.options();
    let e = &subject.config.evaluation;
    match args.layers.linear {
        true => json!({
            "epochs": linear.epochs,
            "batch": linear.batch,
            "learning_rate": linear.rate,
            "weight_decay": linear.decay,
        }),
        false => json!({"k": e.k, "temperature": e.temperature}),
    }
}

/// The layers asked for, by name.
fn chosen(
    args: &EvaluateArgs,
    subject: &Encoder,
    graph: &Graph,
) -> Result<Vec<(String, NodeId)>, Failure> {
    let known = || graph.taps().iter().map(|(name, _)| name.as_str());
    let find = |name: &String| match graph.find(name) {
        Ok(id) => Ok((name.clone(), id)),
        Err(_) => Err(usage!(
            "--layer {name}: there is no such layer; there is {}, and `all`",
            known().collect::<Vec<_>>().join(", ")
        )),
    };
    match &args.layers.layer[..] {
        [] if args.layers.linear => Ok(vec![find(&"conv5".into())?]),
        [] => {
            let id = subject.embedding_layer(graph)?;
            Ok(vec![(graph.node(id).name.clone(), id)])
        }
        [all] if all == "all" => Ok(graph.taps().to_vec()),
        names => names.iter().map(find).collect(),
    }
}
