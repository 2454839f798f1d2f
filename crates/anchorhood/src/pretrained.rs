//! Which model does a run begin from? What `--from` names is found as every other model is, and has
//! the say about network, size and normalisation.

use std::path::{Path, absolute};

use anchorhood_index::Model;
use anchorhood_train::{Event, Pretrained, RunConfig};

use crate::error::usage;
use crate::{Error, OnEvent, load_model};

/// The model that a configuration begins from, if it begins from one.
pub(crate) fn of(
    config: &RunConfig,
    runs: &Path,
    on_event: OnEvent,
) -> Result<Option<Pretrained>, Error> {
    let from = config.training.from.as_deref();
    from.map(|from| load(from, runs, on_event)).transpose()
}

/// The same for a run that goes on: needed where it has no checkpoint yet, and looked at otherwise.
pub(crate) fn of_resumed(
    run: &Path,
    config: &RunConfig,
    runs: &Path,
    on_event: OnEvent,
) -> Result<Option<Pretrained>, Error> {
    let begun = anchorhood_train::model_path(run).is_file();
    match of(config, runs, on_event) {
        Ok(Some(model)) if begun => {
            if config.training.from_fingerprint.as_deref() != Some(&model.fingerprint) {
                on_event(&Event::warning(format!(
                    "{} is not the model any more that this run began from; the run goes on from \
                     its own checkpoint",
                    model.name
                )));
            }
            Ok(None)
        }
        // It may be gone by now: what was learnt from it is in the checkpoint.
        Err(_) if begun => Ok(None),
        other => other,
    }
}

/// Whether what is asked for, by whatever name or path, is the model that a run began from.
pub(crate) fn is_the_same(asked: &RunConfig, run: &RunConfig, runs: &Path) -> bool {
    let (from, theirs) = (&asked.training.from, &run.training);
    if *from == theirs.from {
        return true;
    }
    // Where it is gone, its name is all there is to compare.
    let model = of(asked, runs, &mut |_| {}).ok().flatten();
    model.is_some_and(|model| theirs.from_fingerprint == Some(model.fingerprint))
}

fn load(from: &str, runs: &Path, on_event: OnEvent) -> Result<Pretrained, Error> {
    if Path::new(from).extension().is_some_and(|e| e == "onnx") {
        return Err(usage!(
            "--from {from}: ONNX models are used as they are (`--model {from}`); training goes on \
             from a run or checkpoint of this program, \
             or from torchvision's or timm's ResNet weights"
        ));
    }
    let model = load_model(runs, from, on_event)?;
    let name = whereabouts(&model, from);
    Ok(model.pretrained(name)?)
}

/// A file by its whole path, so that the run finds it from any folder; a name as it is.
fn whereabouts(model: &Model, typed: &str) -> String {
    let path = model.path();
    match absolute(path) {
        Ok(whole) if path.is_file() => whole.display().to_string(),
        _ => typed.into(),
    }
}
