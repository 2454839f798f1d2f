//! `anchorhood model show`: all that a file says of the model in it.

use std::path::Path;

use anchorhood::Model;
use anchorhood::research::{Checkpoint, Graph, NetworkConfig, Role};
use anchorhood_index::{Checked, KNOWN_MODELS, KnownModel};
use anchorhood_storage::OpenContainer;
use serde_json::{Map, Value, json};

use super::ShowArgs;
use crate::args::model::load_model;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    let model = load_model(&args.runs, &args.model)?;
    let facts = facts(&model);
    if args.json {
        let object: Map<String, Value> = facts.into_iter().map(|(n, v)| (n.into(), v)).collect();
        return output::line(&Value::Object(object).to_string());
    }
    let wide = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = facts.iter();
    lines.try_for_each(|(name, value)| output::line(&format!("{name:<wide$}  {}", words(value))))
}

/// In the order in which they are read.
fn facts(model: &Model) -> Vec<(&'static str, Value)> {
    match (model.network(), model.graph()) {
        (Ok(network), Ok(graph)) => of_network(model, network, graph),
        _ => of_onnx(model),
    }
}

/// What is known of a model that another program's library runs.
fn of_onnx(model: &Model) -> Vec<(&'static str, Value)> {
    let input = model.input();
    vec![
        ("file", json!(model.path())),
        ("source", json!("another program's ONNX file")),
        ("found", json!(model.found_out())),
        ("size", json!(input.size)),
        ("mean", json!(input.mean.map(short))),
        ("std", json!(input.std.map(short))),
        ("fingerprint", json!(model.fingerprint())),
    ]
}

fn of_network(model: &Model, network: &NetworkConfig, graph: &Graph) -> Vec<(&'static str, Value)> {
    let input = model.input();
    let last = graph.node(graph.output_node());
    let judged = graph.node(last.inputs.first().copied().unwrap_or(graph.output_node()));
    let trained = graph.parameters().iter().filter(|p| p.role == Role::Weight);
    let weights: usize = trained.map(|p| p.len()).sum();
    let checked = match model.checked() {
        Checked::Verified => "yes",
        Checked::CannotBeChecked => "no: the file carries no checksum of its own",
    };
    let facts = [
        ("file", json!(model.path())),
        ("source", json!(source(model))),
        ("network", json!(network.architecture.name)),
        ("width", json!(network.width)),
        ("stem", json!(network.stem.to_string())),
        ("size", json!(input.size)),
        ("mean", json!(input.mean.map(short))),
        ("std", json!(input.std.map(short))),
        ("layer", json!(judged.name)),
        ("features", json!(last.shape.len())),
        ("parameters", json!(weights)),
        ("fingerprint", json!(model.fingerprint())),
        ("checked", json!(checked)),
    ];
    let own = Checkpoint::load(model.path()).ok().into_iter();
    facts.into_iter().chain(own.flat_map(|c| of_run(&c))).collect()
}

/// The shortest number that is this one in 32 bits.
fn short(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// How it was trained, where that was here.
fn of_run(checkpoint: &Checkpoint) -> Vec<(&'static str, Value)> {
    let (config, at) = (&checkpoint.config, checkpoint.standing.position);
    let training = &config.training;
    let standing = match at.round > training.rounds {
        true => "trained to the end".into(),
        false => format!("up to {at}"),
    };
    let mut facts = vec![
        ("method", json!(checkpoint.method)),
        ("data", json!(config.data.set)),
        ("pictures", json!(checkpoint.standing.pictures)),
        ("rounds", json!(training.rounds + 1)),
        ("epochs", json!(training.epochs)),
        ("batch", json!(training.batch)),
        ("learning_rate", json!(training.learning_rate)),
        ("seed", json!(config.seed)),
        ("standing", json!(standing)),
    ];
    facts.extend(training.from.as_ref().map(|from| ("from", json!(from))));
    facts
}

/// Whose weights they are.
fn source(model: &Model) -> String {
    if model.path() == Path::new(Model::BASE) {
        return "inside this program, learnt without labels (docs/reference/base-model.md)".into();
    }
    let name = model.path().file_name();
    let known = KNOWN_MODELS.iter().find(|k| name.is_some_and(|n| n == &*k.file()));
    match known {
        Some(known) => format!("{} ({})", known.about, KnownModel::LICENCE),
        None if Checkpoint::load(model.path()).is_ok() => "a checkpoint of this program".into(),
        None if OpenContainer::is_ours(model.path()) => "a model file of this program".into(),
        None => "another program's weights".into(),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Null => "–".into(),
        Value::Number(_) | Value::Bool(_) | Value::Object(_) => value.to_string(),
    }
}
