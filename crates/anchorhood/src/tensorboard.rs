//! A run's folder `tensorboard/`: an event file for each start of the run, written while it trains.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anchorhood_report::{ReportError, TensorBoard, read_metrics};
use anchorhood_storage::{Disk, FileSystem};
use anchorhood_train::Event;

/// Writes figures as a run tells them.
pub(crate) struct Follower {
    run: PathBuf,
    wanted: bool,
    board: Option<TensorBoard>,
}

impl Follower {
    /// Follows a run if that was asked for, now or when it began.
    pub fn new(run: &Path, asked: bool) -> Self {
        Follower { run: run.into(), wanted: asked || folder(run).exists(), board: None }
    }

    /// Takes an event. Training is whole without TensorBoard, so what goes wrong is a warning,
    /// once.
    pub fn event(&mut self, event: &Event) -> Option<String> {
        if !self.wanted {
            return None;
        }
        let done = match (event, &mut self.board) {
            // By now what the run will tell again is gone from its metrics.
            (Event::RunStarted(_), _) => self.open().map(|board| self.board = Some(board)),
            (_, Some(board)) => board.event(event),
            (_, None) => Ok(()),
        };
        let why = done.err()?;
        self.wanted = false;
        Some(format!("nothing more is written for TensorBoard: {why}"))
    }

    fn open(&self) -> Result<TensorBoard, ReportError> {
        let log = read_metrics(&self.run.join("metrics.jsonl"))?;
        let folder = folder(&self.run);
        let prepared = Disk.create_folders(&folder).and_then(|()| began(&self.run));
        let began = prepared.map_err(|source| ReportError::Io { path: folder.clone(), source })?;
        TensorBoard::create(&folder, &log.events, began)
    }
}

fn folder(run: &Path) -> PathBuf {
    run.join("tensorboard")
}

/// When the run began, in seconds since 1970.
fn began(run: &Path) -> std::io::Result<f64> {
    let began = std::fs::metadata(run.join("config.toml"))?.modified()?;
    let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(began.as_secs_f64())
}
