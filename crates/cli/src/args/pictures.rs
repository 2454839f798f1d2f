//! Images and model, given in one way for all commands: folders, and `--model` (default `base`).

use std::path::{Path, PathBuf};

use anchorhood::LabelsChoice;
use anchorhood::find_run;
use anchorhood::{Model, PictureIndex};
use anchorhood_data::find_pictures;
use anchorhood_train::{model_path, refitted_path};
use clap::Args;

use crate::args::model::load_model;
use crate::terminal::failure::Failure;

/// Files of models, which are no lists of images.
const MODEL_ENDINGS: [&str; 5] = ["onnx", "safetensors", "pth", "pt", "bin"];

/// Which model.
#[derive(Debug, Args)]
pub struct ModelFlag {
    /// The model: `base` (inside the program), a run's name or folder, a checkpoint or model file,
    /// or an ONNX model [default: base; of an index, the one that made it].
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
}

impl ModelFlag {
    /// Refuses a model that was given where a folder belongs.
    pub fn check_folders(&self, folders: &[PathBuf]) -> Result<(), Failure> {
        let is_model = |word: &&PathBuf| {
            let named = word.to_str().is_some_and(|word| self.is_model(word));
            let run = named && (!word.exists() || word.join("config.toml").is_file());
            run || has_ending(word, &MODEL_ENDINGS)
        };
        match folders.iter().find(is_model) {
            None => Ok(()),
            Some(word) => Err(usage!(
                "`{word}` is a model, not a folder of pictures; name it by `--model {word}`",
                word = word.display()
            )),
        }
    }

    fn is_model(&self, word: &str) -> bool {
        word == Model::BASE || find_run(&self.runs, word).is_ok()
    }

    /// The model that was named, else `base`.
    pub fn load(&self) -> Result<Model, Failure> {
        load_model(&self.runs, self.model.as_deref().unwrap_or(Model::BASE))
    }

    /// The model that was named, else the one that made an index, where it can be found.
    pub fn load_for(&self, index: &PictureIndex) -> Result<Option<Model>, Failure> {
        match &self.model {
            Some(named) => {
                let model = load_model(&self.runs, named)?;
                index.check_model(&model)?;
                Ok(Some(model))
            }
            None => Ok(maker(&self.runs, index)),
        }
    }
}

/// Whether a file is an archive of pictures, or a list of them.
fn holds_pictures(path: &Path) -> bool {
    has_ending(path, &["tar", "txt"])
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default();
    endings.iter().any(|e| ending.eq_ignore_ascii_case(e))
}

/// Whether a word means pictures to look through, and not an index of them.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || (path.is_file() && holds_pictures(path))
}

/// The model that made an index: the one inside the program, the one it names, or that of one of
/// the runs.
fn maker(runs: &Path, index: &PictureIndex) -> Option<Model> {
    let fits = |model: &Model| index.parts().model == model.fingerprint();
    let load = |path: PathBuf| {
        let there = path.is_file().then(|| Model::load(&path).ok());
        there.flatten().filter(fits)
    };
    let named = || index.parts().model_path.as_ref().map(PathBuf::from);
    let runs = || {
        let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
        folders.flat_map(|folder| [refitted_path, model_path].map(|of| of(&folder.path())))
    };
    let base = Model::base().ok().filter(fits);
    base.or_else(|| named().and_then(load)).or_else(|| runs().find_map(load))
}

/// Pictures to ask about: files, and all that are in folders.
pub fn queries(words: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = vec![];
    for word in words {
        if is_folder(word) {
            let found = find_pictures(word, LabelsChoice::None.into())?;
            all.extend(found.files().into_iter().map(|file| file.path));
        } else if word.exists() {
            all.push(word.clone());
        } else {
            let word = word.display();
            return Err(usage!("{word}: there is no such picture"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_refused_where_a_folder_belongs() {
        let place = tempfile::tempdir().unwrap();
        let flag = ModelFlag { model: None, runs: place.path().join("runs") };
        std::fs::create_dir_all(flag.runs.join("mine")).unwrap();
        std::fs::write(flag.runs.join("mine/config.toml"), "").unwrap();
        let refused = |word: &Path| {
            let folders = [place.path().to_owned(), word.to_owned()];
            flag.check_folders(&folders).is_err_and(|f| f.code == 2)
        };
        for model in ["mine", "base", "weights.PTH", "m.onnx"] {
            assert!(refused(Path::new(model)), "{model}");
        }
        assert!(refused(&flag.runs.join("mine")));
        for folder in [place.path(), Path::new("missing"), &place.path().join("l.txt")] {
            assert!(!refused(folder), "{folder:?}");
        }
    }
}
