//! `anchorhood evaluate` on a model without a run, as `base` and an ONNX file are: its vectors
//! vote, with raw pixels beside them.

use anchorhood::data::{Dataset, Pictures};
use anchorhood::engine::Device;
use anchorhood::evaluate::Rows;
use anchorhood::search::Model;
use anchorhood::train::{
    Accuracy, EvaluationConfig, FeatureSource, Labelled, RunConfig, TrainError,
};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::args::device;
use crate::args::encoder;
use crate::args::model::load_model;
use crate::args::run_data;
use crate::terminal::draw;
use crate::terminal::failure::Failure;
use crate::terminal::output;

/// Runs the command.
pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    refuse_what_needs_layers(args)?;
    let Some(set) = &args.data else {
        return Err(Failure::usage(format!(
            "{}: say which pictures to judge on with --data, for example --data cifar10",
            args.run
        )));
    };
    let model = load_model(&args.runs, &args.run)?;
    let mut config = encoder::paper_settings(set);
    config.data.size = Some(model.input().size);
    encoder::overlay(args, &mut config)?;
    let data = run_data::open(&config, Some(set))?;
    let device = device::open(&config.machine)?;
    let judged = judge(&device, &model, &config, &data)?;
    if args.json {
        let object = json!({
            "subject": model.path().display().to_string(),
            "fingerprint": model.fingerprint(),
            "data": data.name,
            "raw_pixels": judged.raw_pixels,
            "model": judged.model,
            "values": judged.values,
            "training_pictures": data.train.pictures.len(),
            "seed": config.seed,
            "device": device.describe(),
            "version": anchorhood::train::VERSION,
        });
        return output::line(&object.to_string());
    }
    let place = model.path().display();
    output::line(&format!("{place}: vectors of {}; judged on {}", judged.values, data.name))?;
    output::line(&format!("raw pixels  {}", draw::accuracy(&judged.raw_pixels)))?;
    output::line(&format!("this model  {}", draw::accuracy(&judged.model)))
}

fn refuse_what_needs_layers(args: &EvaluateArgs) -> Result<(), Failure> {
    let (layers, encoder) = (&args.layers, &args.encoder);
    let given = [
        ("--linear", layers.linear),
        ("--layer", !layers.layer.is_empty()),
        ("--network", encoder.network.is_some()),
        ("--width", encoder.width.is_some()),
        ("--size", encoder.size.is_some()),
        ("--normalise", encoder.normalise.is_some()),
        ("--features", args.features == Some(FeatureSource::Memory)),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: a model without a run has its own network and pixels, and is judged by its vectors; leave {flag} out"
        ))),
        None => Ok(()),
    }
}

/// How the votes went: of raw pixels, and of the model's vectors.
struct Judged {
    raw_pixels: Accuracy,
    model: Accuracy,
    /// Length of a vector.
    values: usize,
}

fn judge(
    device: &Device,
    model: &Model,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Judged, Failure> {
    let none = || TrainError::NoLabels { data: data.name.clone() };
    let how = &config.evaluation;
    let raw_pixels = Labelled::of(data, how, device).ok_or_else(none)?.raw_pixels()?;
    let (model, values) = vote(device, model, how, data)?.ok_or_else(none)?;
    Ok(Judged { raw_pixels, model, values })
}

/// How good a model's vectors are, of pictures that it is given in its own size, and how long they
/// are; nothing without labels.
pub fn vote(
    device: &Device,
    model: &Model,
    how: &EvaluationConfig,
    data: &Dataset,
) -> Result<Option<(Accuracy, usize)>, Failure> {
    let (Some(examiner), Some(test)) = (Labelled::of(data, how, device), &data.test) else {
        return Ok(None);
    };
    let rows = |pictures: &Pictures| -> Result<Rows, Failure> {
        let vectors = model.embed(device, pictures)?;
        Ok(Rows { dim: vectors.dim(), channels: vectors.dim(), values: vectors.values().to_vec() })
    };
    let (train, test) = (rows(&data.train.pictures)?, rows(&test.pictures)?);
    let values = train.dim;
    Ok(Some((examiner.vectors(train, test)?, values)))
}
