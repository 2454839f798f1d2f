//! Images and model, given in one way for all commands: folders, and `--model` (default `base`).

use std::path::PathBuf;

use anchorhood::{Images, LabelsChoice, Model};
use anchorhood_data::find_pictures;
use clap::Args;

use crate::args::model::load_model;
use crate::terminal::failure::Failure;

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
        Ok(Images::check_folders(&self.runs, folders)?)
    }

    /// The model that was named, else `base`.
    pub fn load(&self) -> Result<Model, Failure> {
        load_model(&self.runs, self.model.as_deref().unwrap_or(Model::BASE))
    }
}

/// Pictures to ask about: files, and all that are in folders.
pub fn queries(words: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = vec![];
    for word in words {
        if Images::are_in(word) {
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
