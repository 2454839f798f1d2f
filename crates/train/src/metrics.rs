//! `metrics.jsonl`: what a run tells, one event a line.
//!
//! A checkpoint records how long the file was, so it is synced before the checkpoint is written:
//! what a run goes on from is never ahead of what it told. Where a line is half there all the same,
//! it and what follows are forgotten.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anchorhood_storage::{AppendFile, FileSystem};
use serde::de::IgnoredAny;

use crate::{Event, TrainError};

/// The events of a run, kept.
#[derive(Debug)]
pub(crate) struct Metrics(AppendFile);

impl Metrics {
    /// Opens the file, or begins it.
    pub(crate) fn open(disk: Arc<dyn FileSystem>, path: &Path) -> Result<Metrics, TrainError> {
        let file = AppendFile::open(disk, path);
        file.map(Metrics).map_err(|e| TrainError::io(path, e))
    }

    /// Forgets events after the first `bytes`, which a resumed run tells again; says how many of
    /// those bytes were not there, or not as they were written.
    pub(crate) fn rewind(&mut self, bytes: u64) -> Result<u64, TrainError> {
        let mut rewind = || {
            let whole = match bytes {
                0 => 0,
                bytes => whole_lines(&self.0.read()?, bytes),
            };
            self.0.truncate(whole)?;
            Ok(bytes - whole)
        };
        rewind().map_err(|e| self.error(e))
    }

    /// Keeps an event.
    pub(crate) fn keep(&mut self, event: &Event) -> Result<(), TrainError> {
        let mut line = serde_json::to_string(event).expect("events are plain values");
        line.push('\n');
        let kept = self.0.append(line.as_bytes());
        kept.map_err(|e| self.error(e))
    }

    /// Makes what was kept survive a power cut; says how many bytes it is.
    pub(crate) fn sync(&mut self) -> Result<u64, TrainError> {
        self.0.sync().map_err(|e| self.error(e))?;
        Ok(self.0.length())
    }

    fn error(&self, error: io::Error) -> TrainError {
        TrainError::io(self.0.path(), error)
    }
}

/// How many of the first bytes are whole lines of JSON.
fn whole_lines(text: &[u8], bytes: u64) -> u64 {
    let told = &text[..text.len().min(bytes as usize)];
    let lines = told.split_inclusive(|b| *b == b'\n');
    let whole =
        |line: &&[u8]| line.ends_with(b"\n") && serde_json::from_slice::<IgnoredAny>(line).is_ok();
    lines.take_while(whole).map(|line| line.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::Forgetful;

    fn event(round: usize) -> Event {
        Event::RoundStarted { round, rounds: 2 }
    }

    fn told(disk: &Forgetful, path: &Path) -> Vec<Event> {
        let text = String::from_utf8(disk.read(path).unwrap()).unwrap();
        let lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
        lines.collect()
    }

    #[test]
    fn it_is_rewound_to_a_checkpoint() {
        let (disk, path) = (Forgetful::new(), Path::new("/metrics.jsonl"));
        let mut metrics = Metrics::open(disk.shared(), path).unwrap();
        metrics.keep(&event(0)).unwrap();
        let bytes = metrics.sync().unwrap();
        metrics.keep(&event(1)).unwrap();
        assert_eq!(metrics.rewind(bytes).unwrap(), 0);
        metrics.keep(&event(2)).unwrap();
        assert_eq!(told(&disk, path), [event(0), event(2)]);
    }

    /// Whatever became of the end of the file, what is kept next begins a line.
    #[test]
    fn it_is_cut_at_the_last_whole_line() {
        let (disk, path) = (Forgetful::new(), Path::new("/metrics.jsonl"));
        let mut metrics = Metrics::open(disk.shared(), path).unwrap();
        metrics.keep(&event(0)).unwrap();
        let first = metrics.sync().unwrap();
        metrics.keep(&event(1)).unwrap();
        let bytes = metrics.sync().unwrap();
        drop(metrics);
        let whole = disk.read(path).unwrap();
        let mut zeros = whole.clone();
        zeros[first as usize + 3..].fill(0);
        for damaged in [&whole[..bytes as usize - 5], &whole[..first as usize], &zeros] {
            disk.truncate(path, 0).unwrap();
            disk.append(path).unwrap().write_all(damaged).unwrap();
            let mut metrics = Metrics::open(disk.shared(), path).unwrap();
            assert_eq!(metrics.rewind(bytes).unwrap(), bytes - first);
            metrics.keep(&event(2)).unwrap();
            assert_eq!(told(&disk, path), [event(0), event(2)]);
        }
    }
}
