//! A run that is shown, perhaps while it trains: read once at the start, and again whenever it has
//! saved a newer checkpoint.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anchorhood_data::Split;
use anchorhood_engine::Device;
use anchorhood_index::Model;
use anchorhood_report::{RoundNeighbourhoods, RunRecord};
use anchorhood_train::{RunConfig, checkpoint_path, model_path};

use crate::attention::LookFrom;
use crate::model::ServedModel;
use crate::{Catalog, Renewer, ServeError};

/// How often the checkpoint is looked at; a run saves one at most every ten seconds.
const LOOK: Duration = Duration::from_secs(1);

/// A run and the pictures it is of.
#[derive(Clone)]
pub(crate) struct WatchedRun {
    /// Where features are computed that no memory holds.
    device: Device,
    folder: PathBuf,
    train: Split,
    temperature: f32,
    /// The checkpoint that was there when it was opened.
    seen: Option<Stamp>,
}

/// What tells one checkpoint from the next without reading it.
type Stamp = (SystemTime, u64);

/// A checkpoint, read.
pub(crate) struct Fresh {
    pub shelf: Catalog,
    pub rounds: Vec<RoundNeighbourhoods>,
    pub model: ServedModel,
}

impl WatchedRun {
    /// A run by its folder, its training pictures and its settings.
    pub fn new(device: &Device, folder: PathBuf, train: Split, config: &RunConfig) -> WatchedRun {
        WatchedRun {
            device: device.clone(),
            seen: stamp(&folder),
            folder,
            train,
            temperature: config.discovery.temperature as f32,
        }
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its model, as far as it is.
    pub fn read(&self) -> Result<Fresh, ServeError> {
        let model = Model::load(model_path(&self.folder))?;
        let mut record = RunRecord::read(&self.folder)?;
        // A run whose method remembers none: what its model makes of the pictures now.
        let memory = match record.embedding.take() {
            Some(memory) => memory,
            None => model.embed(&self.device, &self.train.pictures)?,
        };
        let shelf = Catalog::of_run(
            record.name,
            self.train.clone(),
            &memory.values,
            memory.dim,
            model.fingerprint().into(),
        )?;
        let look = LookFrom {
            dim: memory.dim,
            pictures: self.train.pictures.clone(),
            memory: memory.values,
            temperature: self.temperature,
        };
        let found = record.rounds.last().map(|r| r.found.clone());
        Ok(Fresh {
            shelf,
            rounds: record.rounds,
            model: ServedModel { model, look: Some((look, found)) },
        })
    }

    /// Shows every newer checkpoint until the other side of `end` is gone. One that cannot be read
    /// changes nothing.
    pub fn watch(
        mut self,
        renewer: &Renewer,
        newer: &Mutex<Option<ServedModel>>,
        end: &Receiver<()>,
        warn: &(dyn Fn(&str) + Sync),
    ) {
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LOOK) {
            let there = stamp(&self.folder);
            if there.is_none() || there == self.seen {
                continue;
            }
            self.seen = there;
            if let Err(why) = self.renew(renewer, newer) {
                warn(&format!("the newer checkpoint is not shown: {why}"));
            }
        }
    }

    fn renew(
        &self,
        renewer: &Renewer,
        newer: &Mutex<Option<ServedModel>>,
    ) -> Result<(), ServeError> {
        let fresh = self.read()?;
        renewer.renew(fresh.shelf, fresh.rounds)?;
        *newer.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.model);
        Ok(())
    }
}

fn stamp(run: &Path) -> Option<Stamp> {
    let file = checkpoint_path(run, "last").metadata().ok()?;
    Some((file.modified().ok()?, file.len()))
}
