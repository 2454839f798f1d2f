//! A run that is shown, perhaps while it trains: read once at the start, and again whenever it has saved a newer checkpoint.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anchorhood::data::Split;
use anchorhood::report::{Findings, RunRecord};
use anchorhood::search::Model;
use anchorhood::serve::{Renewer, Shelf};
use anchorhood::train::{RunConfig, checkpoint_path};

use crate::commands::serve::look::LookFrom;
use crate::commands::serve::model::Thinker;
use crate::terminal::failure::Failure;

/// How often the checkpoint is looked at; a run saves one at most every ten seconds.
const LOOK: Duration = Duration::from_secs(1);

/// A run and the pictures it is of.
#[derive(Clone)]
pub struct WatchedRun {
    folder: PathBuf,
    train: Split,
    temperature: f32,
    /// The checkpoint that was there when it was opened.
    seen: Option<Stamp>,
}

/// What tells one checkpoint from the next without reading it.
type Stamp = (SystemTime, u64);

/// A checkpoint, read.
pub struct Fresh {
    pub shelf: Shelf,
    pub rounds: Vec<Findings>,
    pub thinker: Thinker,
}

impl WatchedRun {
    /// A run by its folder, its training pictures and its settings.
    pub fn new(folder: PathBuf, train: Split, config: &RunConfig) -> WatchedRun {
        WatchedRun {
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

    /// Its last checkpoint.
    pub fn read(&self) -> Result<Fresh, Failure> {
        let model = Model::load(checkpoint_path(&self.folder, "last"))?;
        let mut record = RunRecord::read(&self.folder)?;
        let memory = record.embedding.take().unwrap_or_default();
        let shelf = Shelf::of_run(
            record.name,
            self.train.clone(),
            &memory.vectors,
            memory.dim,
            model.fingerprint().into(),
        )?;
        let look = LookFrom {
            pictures: self.train.pictures.clone(),
            memory: memory.vectors,
            temperature: self.temperature,
        };
        let found = record.rounds.last().cloned();
        Ok(Fresh {
            shelf,
            rounds: record.rounds,
            thinker: Thinker {
                model,
                look: Some((look, found)),
            },
        })
    }

    /// Shows every newer checkpoint until the other side of `end` is gone. One that cannot be read changes nothing.
    pub fn watch(mut self, renewer: &Renewer, newer: &Mutex<Option<Thinker>>, end: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LOOK) {
            let there = stamp(&self.folder);
            if there.is_none() || there == self.seen {
                continue;
            }
            self.seen = there;
            if let Err(failure) = self.renew(renewer, newer) {
                let why = failure.message.unwrap_or_default();
                eprintln!("warning: the newer checkpoint is not shown: {why}");
            }
        }
    }

    fn renew(&self, renewer: &Renewer, newer: &Mutex<Option<Thinker>>) -> Result<(), Failure> {
        let fresh = self.read()?;
        renewer.renew(fresh.shelf, fresh.rounds)?;
        *newer.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.thinker);
        Ok(())
    }
}

fn stamp(run: &Path) -> Option<Stamp> {
    let file = checkpoint_path(run, "last").metadata().ok()?;
    Some((file.modified().ok()?, file.len()))
}
