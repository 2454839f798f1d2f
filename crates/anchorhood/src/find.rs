//! Which run, and which model, does a word mean?

use std::path::{Path, PathBuf};

use anchorhood_index::{Checked, KnownModel, Model, fetched_model, models_folder};
use anchorhood_train::{Event, embedding_path, model_path};

use crate::error::usage;
use crate::{Error, OnEvent};

/// Reads the model that a word means (`base`, a run's name or folder, a file, the name of a fetched
/// model), and tells what was found out about it, or where damage to it would go unnoticed.
pub fn load_model(runs: &Path, word: &str, on_event: OnEvent) -> Result<Model, Error> {
    if word == Model::BASE {
        return Ok(Model::base()?);
    }
    let model = Model::load(embedding_file(runs, word)?)?;
    let path = model.path().display();
    match (model.found_out(), model.checked()) {
        (Some(about), _) => on_event(&Event::note(format!("{path}: {about}"))),
        (None, Checked::Verified) => {}
        (None, Checked::CannotBeChecked) => on_event(&Event::warning(format!(
            "{path}: written by another program, without checksums: it cannot be checked for damage"
        ))),
    }
    Ok(model)
}

/// The file that is meant by a model: itself, or the checkpoint that is a run's model.
pub fn model_file(runs: &Path, model: &str) -> Result<PathBuf, Error> {
    file_of(runs, model, model_path)
}

/// The file that is meant by a model to embed pictures with: of a run the one for another size than
/// it learnt with, where it has one.
pub fn embedding_file(runs: &Path, model: &str) -> Result<PathBuf, Error> {
    file_of(runs, model, embedding_path)
}

fn file_of(runs: &Path, model: &str, of_run: fn(&Path) -> PathBuf) -> Result<PathBuf, Error> {
    let file = PathBuf::from(model);
    if file.is_file() {
        return Ok(file);
    }
    match find_run(runs, model) {
        Ok(run) => saved(&run, of_run(&run)),
        Err(no_run) => fetched(model)?.ok_or(no_run),
    }
}

/// The file of a model that was fetched by this name (`anchorhood model fetch`), if it was.
fn fetched(name: &str) -> Result<Option<PathBuf>, Error> {
    let file = models_folder().and_then(|folder| fetched_model(&folder, name));
    match (&file, KnownModel::named(name)) {
        (None, Some(_)) => Err(usage!(
            "{name} is not on this machine yet; get it with `anchorhood model fetch {name}`"
        )),
        (Some(_), _) | (None, None) => Ok(file),
    }
}

/// The checkpoint that is a run's model.
pub fn checkpoint_of(run: &Path) -> Result<PathBuf, Error> {
    saved(run, model_path(run))
}

fn saved(run: &Path, model: PathBuf) -> Result<PathBuf, Error> {
    match model.is_file() {
        true => Ok(model),
        false => Err(usage!(
            "{}: this run has no checkpoint yet; its first is saved after its first epoch",
            run.display()
        )),
    }
}

/// A run by its name under `runs`, or by its folder.
pub fn find_run(runs: &Path, name: &str) -> Result<PathBuf, Error> {
    let named = runs.join(name);
    let is_run = |p: &Path| p.join("config.toml").is_file();
    if is_run(&named) {
        return Ok(named);
    }
    let folder = PathBuf::from(name);
    if is_run(&folder) {
        return Ok(folder);
    }
    let known = names_in(runs);
    let known = match known.is_empty() {
        true => format!("there are no runs in {}", runs.display()),
        false => format!("{} has {}", runs.display(), known.join(", ")),
    };
    Err(usage!("there is no run called `{name}`; {known}"))
}

fn names_in(runs: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|e| e.path().join("config.toml").is_file())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The run in a folder that was written to last.
pub fn latest_run(runs: &Path) -> Result<PathBuf, Error> {
    let changed = |name: &String| {
        let metrics = runs.join(name).join("metrics.jsonl");
        metrics.metadata().and_then(|m| m.modified()).ok()
    };
    let latest = names_in(runs).into_iter().max_by_key(changed);
    latest.map(|name| runs.join(name)).ok_or_else(|| {
        usage!("there is no run to resume in {}; start one with `anchorhood train`", runs.display())
    })
}

/// Files of models, which are no lists of images.
const MODEL_ENDINGS: [&str; 5] = ["onnx", "safetensors", "pth", "pt", "bin"];

/// Whether a word means images to look through (a folder, an archive, a list of files), and not an
/// index of them.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || (path.is_file() && has_ending(path, &["tar", "txt"]))
}

/// Refuses a model that was given where a folder belongs.
pub fn check_folders(runs: &Path, folders: &[PathBuf]) -> Result<(), Error> {
    let is_model = |word: &&PathBuf| {
        let named = |word: &str| word == Model::BASE || find_run(runs, word).is_ok();
        let run = word.to_str().is_some_and(named);
        (run && (!word.exists() || word.join("config.toml").is_file()))
            || has_ending(word, &MODEL_ENDINGS)
    };
    match folders.iter().find(is_model) {
        None => Ok(()),
        Some(word) => Err(usage!(
            "`{word}` is a model, not a folder of pictures; name it by `--model {word}`",
            word = word.display()
        )),
    }
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default();
    endings.iter().any(|e| ending.eq_ignore_ascii_case(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_refused_where_a_folder_belongs() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        std::fs::create_dir_all(runs.join("mine")).unwrap();
        std::fs::write(runs.join("mine/config.toml"), "").unwrap();
        let refused = |word: &Path| {
            let error = check_folders(&runs, &[place.path().to_owned(), word.to_owned()]).err();
            error.is_some_and(|error| error.kind() == crate::ErrorKind::Usage)
        };
        for model in ["mine", "base", "weights.PTH", "m.onnx"] {
            assert!(refused(Path::new(model)), "{model}");
        }
        assert!(refused(&runs.join("mine")));
        for folder in [place.path(), Path::new("missing"), &place.path().join("l.txt")] {
            assert!(!refused(folder), "{folder:?}");
        }
    }
}
