//! `anchorhood evaluate`: a checkpoint judged again, its floors beside it.

pub mod layers;
mod vectors;

use std::path::{Path, PathBuf};

use anchorhood::research::{EncoderSource, FeatureSource, TrainingSet, ValidateOn, judge, vote};
use anchorhood::{Model, open_images_of};
use anchorhood_index::onnx::is_onnx;
use anchorhood_train::{embedding_path, model_path};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::args::device;
use crate::args::encoder;
use crate::terminal::draw;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    let file = Path::new(&args.run);
    if args.run == Model::BASE || is_onnx(file) || Model::is_alone(file) {
        return vectors::run(args);
    }
    let subject = encoder::resolve(args)?;
    let checkpoint = match &subject.source {
        EncoderSource::Checkpoint(checkpoint) if !layers::wanted(args, &subject) => checkpoint,
        _ => return layers::run(args, &subject),
    };
    let (path, config) = (&subject.path, &subject.config);
    let data = open_images_of(config, args.data.as_deref())?;
    if args.data.is_some() && config.evaluation.features == FeatureSource::Memory {
        // Its own pictures may have moved; of others the memory knows nothing.
        let same = checkpoint.check_memory(&TrainingSet::of(&data), path);
        same.map_err(|e| usage!("--features memory: {e}, or judge with --features recomputed"))?;
    }
    let device = device::open(&config.machine)?;
    let found = judge(&device, checkpoint, path, config, &data)?;
    let as_used = match model_of(path) {
        Some(file) => {
            let model = Model::load(file)?;
            let voted = vote(&device, &model, &config.evaluation, &data)?;
            voted.map(|(accuracy, _)| (model.input().size, accuracy))
        }
        None => None,
    };
    if args.json {
        let object = json!({
            "checkpoint": path.display().to_string(),
            "data": data.name,
            "validate_on": config.data.validate_on.to_string(),
            "position": checkpoint.standing.position,
            "features": config.evaluation.features.name(),
            "raw_pixels": found.raw_pixels,
            "untrained": found.untrained,
            "trained": found.trained,
            "model": as_used.map(|(size, accuracy)| json!({ "size": size, "accuracy": accuracy })),
            "seed": config.seed,
            "version": anchorhood::VERSION,
        });
        return output::line(&object.to_string());
    }
    let features = match config.evaluation.features {
        FeatureSource::Memory => "memory",
        FeatureSource::Recomputed => "recomputed features",
    };
    let on = match config.data.validate_on {
        ValidateOn::Test => data.name,
        ValidateOn::Train(_) => format!("training pictures of {} held out", data.name),
    };
    output::line(&format!("{}; judged on {on} with {features}", subject.describe(),))?;
    output::line(&format!("raw pixels         {}", draw::accuracy(&found.raw_pixels)))?;
    output::line(&format!("untrained network  {}", draw::accuracy(&found.untrained)))?;
    output::line(&format!("this checkpoint    {}", draw::accuracy(&found.trained)))?;
    match as_used {
        Some((size, accuracy)) => output::line(&format!(
            "{:<18} {}",
            format!("given {size}×{size}"),
            draw::accuracy(&accuracy)
        )),
        None => Ok(()),
    }
}

/// What a run's checkpoint is used by where that is another file, for pictures of another size.
fn model_of(checkpoint: &Path) -> Option<PathBuf> {
    let run = checkpoint.parent()?.parent()?;
    let used = embedding_path(run);
    (model_path(run) == checkpoint && used != checkpoint).then_some(used)
}
