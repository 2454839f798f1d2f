//! `anchorhood evaluate` on a model without a run, as `base` and an ONNX file are: its vectors
//! vote, with raw pixels beside them.

use anchorhood::open_images_of;
use anchorhood::research::{FeatureSource, Labelled, TrainError, paper_settings, vote};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::args::device;
use crate::args::encoder;
use crate::args::model::load_model;
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
    let mut config = paper_settings(set);
    config.data.size = Some(model.input().size);
    encoder::overlay(args, &mut config)?;
    let data = open_images_of(&config, Some(set))?;
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
            "version": anchorhood::VERSION,
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
