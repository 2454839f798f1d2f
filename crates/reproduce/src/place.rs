//! Where runs and results are kept, where data sets lie, and what is told on the way.

use std::path::{Path, PathBuf};

use anchorhood_data::Dataset;
use anchorhood_train::Event;

use crate::Scale;

/// What happens, for someone to draw.
#[derive(Debug)]
pub enum Told<'a> {
    /// Something that is good to know, in words.
    Note(&'a str),
    /// A run is trained, or goes on.
    Training(&'a str),
    /// A run of a comparison has come to its end, and its folder is free.
    Trained {
        /// Its folder.
        run: &'a Path,
        /// The pictures that it learnt from and was judged on.
        data: &'a Dataset,
    },
    /// Something happened in it.
    Event(&'a Event),
    /// A long computation is so far.
    Step {
        /// What it is.
        what: &'a str,
        /// How much is done.
        done: usize,
        /// Of how much.
        total: usize,
    },
}

/// Where things are and go.
#[derive(Clone, Debug)]
pub struct LabFolders {
    /// Runs and results are kept here, those of each scale apart.
    pub output: PathBuf,
    /// Where data sets lie, unless they are looked for as `train` does.
    pub data: Option<PathBuf>,
    /// How large.
    pub scale: Scale,
}

impl LabFolders {
    /// The folder of the scale's runs.
    pub fn runs(&self) -> PathBuf {
        self.output.join(self.scale.name()).join("runs")
    }

    /// The folder of an experiment's results.
    pub fn results(&self, experiment: &str) -> PathBuf {
        self.output.join(self.scale.name()).join(experiment)
    }
}
