//! A run that is on disk: its settings, what happened in it, its model.

use std::path::{Path, PathBuf};

use anchorhood_index::Model;
use anchorhood_report::{Summary, read_metrics};
use anchorhood_train::{Event, Outcome, Position, RunConfig, RunDir, RunEnded, embedding_path};

use crate::Error;

/// A run: a folder with `config.toml`, `metrics.jsonl`, checkpoints and a report.
#[derive(Clone, Debug)]
pub struct Run {
    path: PathBuf,
    config: RunConfig,
    outcome: Option<Outcome>,
}

impl Run {
    /// The run in a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Run, Error> {
        let path = path.as_ref().to_path_buf();
        let config = RunDir::config_of(&path)?;
        Ok(Run { path, config, outcome: None })
    }

    pub(crate) fn after(path: &Path, outcome: Outcome) -> Result<Run, Error> {
        Ok(Run { outcome: Some(outcome), ..Run::open(path)? })
    }

    /// One that another process keeps.
    pub(crate) fn of_another(path: PathBuf, config: RunConfig, outcome: Outcome) -> Run {
        Run { path, config, outcome: Some(outcome) }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its settings.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Where it was stopped; nothing where it came to its end, or was not trained just now.
    pub fn stopped_at(&self) -> Option<Position> {
        match self.outcome {
            Some(Outcome::Stopped(position)) => Some(position),
            Some(Outcome::Finished(_)) | None => None,
        }
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Result<Option<RunEnded>, Error> {
        if let Some(Outcome::Finished(ended)) = &self.outcome {
            return Ok(Some(*ended));
        }
        let ended = self.events()?.into_iter().rev().find_map(|event| match event {
            Event::RunEnded(ended) => Some(ended),
            _ => None,
        });
        Ok(ended)
    }

    /// Everything that happened and is kept, in order.
    pub fn events(&self) -> Result<Vec<Event>, Error> {
        Ok(read_metrics(&self.path.join("metrics.jsonl"))?.events)
    }

    /// What it came to: the table and the verdict that the command line prints.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(Summary::of(&self.events()?))
    }

    /// Its model, as it is used.
    pub fn model(&self) -> Result<Model, Error> {
        Ok(Model::load(self.model_path())?)
    }

    /// The file of its model.
    pub fn model_path(&self) -> PathBuf {
        embedding_path(&self.path)
    }
}
