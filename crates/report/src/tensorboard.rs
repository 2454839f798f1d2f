//! A run as TensorBoard shows it, while it trains and after. Steps are epochs, counted over all rounds.
//!
//! TensorBoard follows a file that only ever grows, so figures are appended as they come. A resumed run tells anew what it
//! had told since its last checkpoint: the file then says that it begins again from there, and TensorBoard forgets the rest.

mod records;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anchorhood_files::{AppendFile, AtomicFile, Disk};
use anchorhood_train::{Event, PretextShare, Subject};

use crate::ReportError;
use crate::metrics::seconds;
use records::Record;

/// Makes the file hold every figure of these events; `begun` is when the run began, in seconds since 1970. One that does
/// already is left alone, also when it knows more: the run may be training, and its program writing there.
pub fn write_tensorboard(events: &[Event], begun: f64, path: &Path) -> Result<(), ReportError> {
    let told = told(events, begun);
    let bytes = std::fs::read(path).unwrap_or_default();
    let (held, whole) = records::read(&bytes);
    match missing(&told, &standing(&held)) {
        Some(missing) if missing.is_empty() && !held.is_empty() => Ok(()),
        Some(missing) if whole == bytes.len() && !held.is_empty() => {
            append(&mut opened(path)?, &missing).map_err(ReportError::io(path))
        }
        _ => write_anew(&told, begun, path),
    }
}

/// The file of a run that is training.
#[derive(Debug)]
pub struct TensorBoard {
    file: AppendFile,
    steps: Steps,
}

impl TensorBoard {
    /// Opens the file of a run that begins or goes on. `events` are what it has told so far; what the file knows beyond them
    /// is about to be told again.
    pub fn open(path: &Path, events: &[Event], begun: f64) -> Result<TensorBoard, ReportError> {
        let told = told(events, begun);
        let bytes = std::fs::read(path).unwrap_or_default();
        let (held, whole) = records::read(&bytes);
        let standing = standing(&held);
        let missing = missing(&told, &standing).filter(|_| !held.is_empty());
        let file = match missing {
            None => {
                write_anew(&told, begun, path)?;
                opened(path)?
            }
            Some(missing) => {
                let mut file = opened(path)?;
                let next = told.iter().map(|r| r.step + 1).max().unwrap_or(0);
                let ahead = standing.keys().any(|(_, step)| *step >= next);
                let again = ahead.then(|| Record::restart(now(), next));
                let added: Vec<Record> = again.into_iter().chain(missing).collect();
                file.truncate(whole as u64)
                    .and_then(|()| append(&mut file, &added))
                    .map_err(ReportError::io(path))?;
                file
            }
        };
        let mut steps = Steps::default();
        events.iter().for_each(|e| steps.see(e));
        Ok(TensorBoard { file, steps })
    }

    /// Adds an event's figures, if it has some.
    pub fn event(&mut self, event: &Event) -> Result<(), ReportError> {
        self.steps.see(event);
        let Some((step, figures)) = self.steps.figures(event) else {
            return Ok(());
        };
        let record = Record::figures(now(), step, &figures);
        let added = append(&mut self.file, &[record]);
        added.map_err(ReportError::io(self.file.path()))
    }
}

/// How many figures the records of a file hold, and how many of its bytes are whole records: `crates/fuzzing` attacks it.
#[doc(hidden)]
pub fn read_records(bytes: &[u8]) -> (usize, usize) {
    let (records, whole) = records::read(bytes);
    (standing(&records).len(), whole)
}

/// A figure that holds: by tag and step.
type Standing = BTreeMap<(String, i64), u32>;

fn values(record: &Record) -> impl Iterator<Item = ((String, i64), u32)> {
    let values = record.summary.iter().flat_map(|s| &s.value);
    values.map(|v| {
        let bits = v.simple_value.unwrap_or(0.0).to_bits();
        ((v.tag.clone(), record.step), bits)
    })
}

/// What TensorBoard shows of these records.
fn standing(records: &[Record]) -> Standing {
    let mut standing = Standing::new();
    for record in records {
        if record.is_restart() {
            standing.retain(|(_, step), _| *step < record.step);
        }
        standing.extend(values(record));
    }
    standing
}

/// What is told and not yet shown; nothing if something else is shown in its place.
fn missing(told: &[Record], standing: &Standing) -> Option<Vec<Record>> {
    let mut missing = vec![];
    for record in told {
        let shown: Vec<bool> = values(record)
            .filter_map(|(key, value)| Some(*standing.get(&key)? == value))
            .collect();
        match (shown.is_empty(), shown.iter().all(|same| *same)) {
            (true, _) => missing.push(record.clone()),
            (false, true) => {}
            (false, false) => return None,
        }
    }
    Some(missing)
}

/// The figures of past events. How long things took says when they happened.
fn told(events: &[Event], begun: f64) -> Vec<Record> {
    let (mut steps, mut now) = (Steps::default(), begun);
    let mut records = vec![];
    for event in events {
        steps.see(event);
        if let Some((step, figures)) = steps.figures(event) {
            now += seconds(event);
            records.push(Record::figures(now, step, &figures));
        }
    }
    records
}

/// Tags and values.
type Figures = Vec<(Cow<'static, str>, f32)>;

/// Counts epochs over rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// Epochs in a round, once that is known.
    epochs: usize,
}

impl Steps {
    fn see(&mut self, event: &Event) {
        match event {
            Event::RunStarted(s) => self.epochs = s.epochs,
            Event::EpochEnded(e) => self.epochs = e.epochs,
            _ => {}
        }
    }

    fn step(self, round: usize, epochs_done: usize) -> i64 {
        (round * self.epochs + epochs_done) as i64
    }

    /// The step of an event's figures, and the figures.
    fn figures(self, event: &Event) -> Option<(i64, Figures)> {
        let (step, figures) = match event {
            Event::Pretext(p) => {
                let figure = |f: &PretextShare| {
                    let tag = format!("pretext/{}", f.name.replace(' ', "_"));
                    (tag.into(), f.share as f32)
                };
                let step = self.step(p.round, p.epoch + 1);
                return Some((step, p.figures.iter().map(figure).collect()));
            }
            Event::EpochEnded(e) => {
                let mut figures = vec![("loss", e.loss), ("learning_rate", e.rate)];
                figures.push(("pictures_per_second", e.pictures_per_second));
                (self.step(e.round, e.epoch + 1), figures)
            }
            Event::Discovered(d) => {
                let mut figures = vec![("anchors", d.anchors as f64), ("entropy", d.mean_entropy)];
                let share = d.consistency.and_then(|c| c.share());
                figures.extend(share.map(|s| ("consistency", s)));
                (self.step(d.round, 0), figures)
            }
            Event::Evaluated(e) => {
                let (tag, step) = match e.subject {
                    Subject::RawPixels => ("knn/raw_pixels", 0),
                    Subject::Untrained => ("knn/untrained", 0),
                    Subject::Before => ("knn/before", 0),
                    Subject::Trained { round, epoch } => ("knn/top1", self.step(round, epoch + 1)),
                    Subject::Model { .. } => return None,
                };
                (step, vec![(tag, e.accuracy.top1)])
            }
            Event::LabelFree(e) => match e.subject {
                Subject::RawPixels => (0, vec![("label_free/raw_pixels", e.score)]),
                Subject::Untrained => (0, vec![("label_free/untrained", e.score)]),
                Subject::Before => (0, vec![("label_free/before", e.score)]),
                Subject::Trained { round, epoch } => {
                    let mut figures = vec![("label_free/score", e.score)];
                    figures.push(("label_free/found", e.found));
                    figures.push(("label_free/agreement", e.agreement));
                    figures.push(("label_free/effective_rank", e.effective_rank));
                    figures.push(("label_free/uniformity", e.uniformity));
                    (self.step(round, epoch + 1), figures)
                }
                Subject::Model { .. } => return None,
            },
            _ => return None,
        };
        let figures = figures.into_iter().map(|(tag, v)| (tag.into(), v as f32));
        Some((step, figures.collect()))
    }
}

fn write_anew(told: &[Record], begun: f64, path: &Path) -> Result<(), ReportError> {
    let first = Record::version(begun).bytes();
    let rest = told.iter().flat_map(Record::bytes);
    let bytes: Vec<u8> = first.into_iter().chain(rest).collect();
    AtomicFile::write(path, &bytes).map_err(ReportError::io(path))
}

fn opened(path: &Path) -> Result<AppendFile, ReportError> {
    let file = AppendFile::open(Disk::shared(), path);
    file.map_err(ReportError::io(path))
}

/// By one call each, so that a reader meets half a record at the very most.
fn append(file: &mut AppendFile, records: &[Record]) -> std::io::Result<()> {
    records.iter().try_for_each(|r| file.append(&r.bytes()))
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;
    use std::path::PathBuf;

    /// Tags and steps as TensorBoard would show them, in the file's order.
    fn shown(path: &Path) -> Standing {
        let bytes = std::fs::read(path).unwrap();
        let (held, whole) = records::read(&bytes);
        assert_eq!(whole, bytes.len());
        standing(&held)
    }

    fn steps(shown: &Standing, tag: &str) -> Vec<i64> {
        let of = shown.keys().filter(|(t, _)| t == tag);
        of.map(|(_, step)| *step).collect()
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.out.tfevents.0.test");
        (folder, path)
    }

    #[test]
    fn every_figure_is_there_after_the_fact_and_live() {
        let (_a, after) = place();
        write_tensorboard(&example(true), 1000.0, &after).unwrap();
        let (_b, live) = place();
        let mut board = TensorBoard::open(&live, &[], 1000.0).unwrap();
        for (i, event) in example(true).iter().enumerate() {
            board.event(event).unwrap();
            // A reader meets whole records at any time.
            let so_far = told(&example(true)[..=i], 0.0);
            assert_eq!(shown(&live), standing(&so_far));
        }
        assert_eq!(shown(&live), shown(&after));
        assert_eq!(steps(&shown(&live), "loss"), [1, 2, 3, 4]);
        assert_eq!(steps(&shown(&live), "knn/top1"), [1, 2, 3, 4]);
        assert_eq!(steps(&shown(&live), "anchors"), [2]);
    }

    #[test]
    fn a_resumed_run_begins_again_where_it_was_saved() {
        let events = example(true);
        let mut whole = shown_of(&events);
        for saved in 0..events.len() {
            let (_folder, path) = place();
            let mut board = TensorBoard::open(&path, &[], 1000.0).unwrap();
            events.iter().for_each(|e| board.event(e).unwrap());
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.extend_from_slice(b"half a rec"); // killed
            std::fs::write(&path, &bytes).unwrap();
            let mut board = TensorBoard::open(&path, &events[..saved], 1000.0).unwrap();
            let begun_again = std::fs::read(&path).unwrap();
            assert!(
                begun_again.starts_with(&bytes[..bytes.len() - 10]),
                "it only grows"
            );
            for event in &events[saved..] {
                let mut event = event.clone();
                if let Event::EpochEnded(e) = &mut event {
                    e.pictures_per_second = 7.0; // another machine
                }
                board.event(&event).unwrap();
            }
            let mut now = shown(&path);
            for figures in [&mut now, &mut whole] {
                figures.retain(|(tag, _), _| tag != "pictures_per_second");
            }
            assert_eq!(now, whole, "saved after {saved} events");
        }
    }

    fn shown_of(events: &[Event]) -> Standing {
        standing(&told(events, 0.0))
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_wrong_replaced() {
        let events = example(true);
        let (_folder, path) = place();
        write_tensorboard(&events[..6], 1000.0, &path).unwrap();
        let before = std::fs::read(&path).unwrap();
        write_tensorboard(&events, 1000.0, &path).unwrap();
        let after = std::fs::read(&path).unwrap();
        assert!(after.starts_with(&before) && after.len() > before.len());
        // Fewer events than the file knows: somebody is ahead of us.
        write_tensorboard(&events[..6], 1000.0, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), after);
        // Another run's figures, half a record, no record at all.
        let mut other = events.clone();
        if let Some(Event::EpochEnded(e)) =
            other.iter_mut().find(|e| matches!(e, Event::EpochEnded(_)))
        {
            e.loss = 99.0;
        }
        write_tensorboard(&other, 1000.0, &path).unwrap();
        assert_eq!(shown(&path), shown_of(&other));
        for bad in [&before[..before.len() - 1], b"", b"not a record"] {
            std::fs::write(&path, bad).unwrap();
            write_tensorboard(&events, 1000.0, &path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), after);
        }
    }
}
