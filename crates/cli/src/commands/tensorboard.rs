//! A run's folder `tensorboard/`: followed while the run trains, or brought up to date afterwards.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anchorhood::files::{Disk, FileSystem};
use anchorhood::report::{ReportError, TensorBoard, read_metrics, write_tensorboard};
use anchorhood::train::Event;

use crate::args::model::io;
use crate::terminal::failure::Failure;

/// One file whatever the number of reports: TensorBoard would show two as one run, with every figure twice.
fn file(run: &Path) -> PathBuf {
    run.join("tensorboard")
        .join("events.out.tfevents.0.anchorhood")
}

/// Makes the file hold all that the run has told so far.
pub fn complete(run: &Path) -> Result<PathBuf, Failure> {
    let log = read_metrics(&run.join("metrics.jsonl"))?;
    let (path, began) = prepare(run).map_err(io(run))?;
    write_tensorboard(&log.events, began, &path)?;
    Ok(path)
}

/// Writes figures as a run tells them.
pub struct Follower {
    run: PathBuf,
    wanted: bool,
    board: Option<TensorBoard>,
}

impl Follower {
    /// Follows a run if that was asked for, now or when it began.
    pub fn new(run: &Path, asked: bool) -> Self {
        Follower {
            run: run.into(),
            wanted: asked || file(run).exists(),
            board: None,
        }
    }

    /// Takes an event. Training is whole without TensorBoard, so what goes wrong is a warning, once.
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
        let (path, began) = prepare(&self.run).map_err(|source| ReportError::Io {
            path: self.run.join("tensorboard"),
            source,
        })?;
        TensorBoard::open(&path, &log.events, began)
    }
}

/// The file in its folder, and when the run began, in seconds since 1970.
fn prepare(run: &Path) -> std::io::Result<(PathBuf, f64)> {
    Disk.create_folders(&run.join("tensorboard"))?;
    let began = std::fs::metadata(run.join("config.toml"))?.modified()?;
    let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((file(run), began.as_secs_f64()))
}
