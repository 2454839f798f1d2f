//! `anchorhood evaluate` on a model without a run, as `base` and an ONNX file are: its vectors
//! vote, with raw pixels beside them.

use anchorhood::data::{Dataset, Pictures};
use anchorhood::engine::Device;
use anchorhood::evaluation::Rows;
use anchorhood::search::Model;
use anchorhood::train::{Accuracy, EvaluationConfig, FeatureSource, Labelled, TrainError};
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
        return Err(usage!(
            "{}: say which pictures to judge on with --data, for example --data cifar10",
            args.run
        ));
    };
    let model = load_model(&args.runs, &args.run)?;
    let mut config = encoder::paper_settings(set);
    config.data.size = Some(model.input().size);
    encoder::overlay(args, &mut config)?;
    let data = run_data::open(&config, Some(set))?;
    let device = device::open(&config.machine)?;
    let (how, none) = (&config.evaluation, || TrainError::NoLabels { data: data.name.clone() });
    let raw_pixels = Labelled::of(&data, how, &device).ok_or_else(none)?.raw_pixels()?;
    let (own, values) = vote(&device, &model, how, &data)?.ok_or_else(none)?;
    if args.json {
        let object = json!({
            "subject": model.path().display().to_string(),
            "fingerprint": model.fingerprint(),
            "data": data.name,
            "raw_pixels": raw_pixels,
            "model": own,
            "values": values,
            "training_pictures": data.train.pictures.len(),
            "seed": config.seed,
            "device": device.describe(),
            "version": anchorhood::train::VERSION,
        });
        return output::line(&object.to_string());
    }
    let place = model.path().display();
    output::line(&format!("{place}: vectors of {values}; judged on {}", data.name))?;
    output::line(&format!("raw pixels  {}", draw::accuracy(&raw_pixels)))?;
    output::line(&format!("this model  {}", draw::accuracy(&own)))
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
        Some((flag, _)) => Err(usage!(
            "{flag}: a model without a run has its own network and pixels, and is judged by its \
             vectors; leave {flag} out"
        )),
        None => Ok(()),
    }
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
