//! A run that is on disk: its settings, what happened in it, its model.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anchorhood_engine::Device;
use anchorhood_index::Model;
use anchorhood_report::{
    AttentionOptions, AttentionStrip, ReportError, Summary, attention_strips, finished_rounds,
    read_metrics,
};
use anchorhood_train::{Event, Outcome, Position, RunConfig, RunDir, RunEnded, embedding_path};

use crate::device::open_device_again;
use crate::error::usage;
use crate::run_report::write_run_report;
use crate::{Error, OnEvent, open_images_of};

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

    /// Writes the one page about it, and gives its file. Its images are where `data` says, or where
    /// they were; without them the page shows none, and does not replace one that may, unless that
    /// is said (`overwrite`).
    pub fn write_report(
        &self,
        data: Option<&str>,
        overwrite: bool,
        on_event: OnEvent,
    ) -> Result<PathBuf, Error> {
        let images = match open_images_of(&self.config, data) {
            Err(error) if data.is_some() => return Err(error),
            images => images.map_err(|error| error.with_advice()),
        };
        if let Err(why) = &images {
            let why = format!("no pictures can be shown, because {why}");
            on_event(&Event::warning(why));
        }
        let machine = &self.config.machine;
        let said = Mutex::new(vec![]);
        let open = || {
            let keep = &mut |event: &Event| {
                said.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
            };
            open_device_again(machine, keep)
        };
        let written = write_run_report(&self.path, &images, &open, overwrite, on_event);
        said.into_inner().unwrap_or_else(PoisonError::into_inner).iter().for_each(on_event);
        written
    }

    /// Where its network looked in each round, as a strip for each of some training images, by
    /// their numbers; weighed at the places of a layer (`conv5` where none is named). `progress`
    /// hears how many of how many rounds are done.
    pub fn attention(
        &self,
        images: &[usize],
        layer: Option<&str>,
        data: Option<&str>,
        device: &Device,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Vec<AttentionStrip>, Error> {
        let rounds = finished_rounds(&self.path, &self.config);
        if rounds.is_empty() {
            return Err(usage!(
                "{}: no round of this run is finished yet; each leaves a checkpoint at its end",
                self.path.display()
            ));
        }
        let data = open_images_of(&self.config, data)?;
        let n = data.train.pictures.len();
        if let Some(i) = images.iter().find(|i| **i >= n) {
            return Err(usage!(
                "--pictures {i}: {} has the training pictures 0 to {}",
                data.name,
                n - 1
            ));
        }
        let options = AttentionOptions {
            pictures: images,
            layer: layer.unwrap_or("conv5"),
            temperature: self.config.discovery.temperature as f32,
        };
        let progress = |done| progress(done, rounds.len());
        let strips = attention_strips(device, &rounds, &self.config, &data, &options, &progress);
        strips.map_err(|e| match e {
            ReportError::Engine(e @ anchorhood_engine::Error::UnknownLayer { .. }) => {
                usage!("--layer: {e}")
            }
            other => other.into(),
        })
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
