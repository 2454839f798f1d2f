//! A run as TensorBoard shows it while it trains. Steps are epochs, counted over all rounds.
//!
//! Each start of a run writes a file of its own, as PyTorch's `SummaryWriter` does: a restart
//! record, which makes TensorBoard drop what earlier files said, the figures so far, then each as
//! it comes.
//!
//! Kept by hand: of TensorBoard's format two kinds of messages are written; crates for it bring a
//! general one for Protocol Buffers along.

mod records;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anchorhood_storage::{AppendFile, Disk};
use anchorhood_train::{Event, Subject};

use crate::ReportError;
use crate::metrics::seconds;
use records::Record;

/// The event file of a run that is training.
#[derive(Debug)]
pub struct TensorBoard {
    file: AppendFile,
    steps: Steps,
}

impl TensorBoard {
    /// Creates an event file in `folder`, which is there. `events` are those of the run so far;
    /// `begun` is when the run began, in seconds since 1970.
    pub fn create(folder: &Path, events: &[Event], begun: f64) -> Result<TensorBoard, ReportError> {
        let path = new_path(folder);
        let file = AppendFile::open(Disk::shared(), &path).map_err(ReportError::io(&path))?;
        let mut board = TensorBoard { file, steps: Steps::default() };
        let mut records = vec![Record::version(begun), Record::restart(now(), 0)];
        // How long things took says when they happened.
        let mut now = begun;
        for event in events {
            if let Some((step, figures)) = board.steps.figures(event) {
                now += seconds(event);
                records.push(Record::figures(now, step, &figures));
            }
        }
        board.append(&records)?;
        Ok(board)
    }

    /// Adds an event's figures, if it has some.
    pub fn event(&mut self, event: &Event) -> Result<(), ReportError> {
        match self.steps.figures(event) {
            Some((step, figures)) => self.append(&[Record::figures(now(), step, &figures)]),
            None => Ok(()),
        }
    }

    /// One write for each record, so that a reader meets half a record at most.
    fn append(&mut self, records: &[Record]) -> Result<(), ReportError> {
        let added = records.iter().try_for_each(|r| self.file.append(&r.bytes()));
        added.map_err(ReportError::io(self.file.path()))
    }
}

/// A name that no file has. TensorBoard reads files in the order of their names.
fn new_path(folder: &Path) -> PathBuf {
    let named = |second: u64| folder.join(format!("events.out.tfevents.{second}.anchorhood"));
    let mut paths = (now() as u64..).map(named);
    paths.find(|path| !path.exists()).unwrap_or_default()
}

/// Tags and values.
type Figures = Vec<(String, f32)>;

/// Counts epochs over rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// Epochs in a round, once that is known.
    epochs: usize,
}

impl Steps {
    fn step(self, round: usize, epochs_done: usize) -> i64 {
        (round * self.epochs + epochs_done) as i64
    }

    /// The step of an evaluation, and the name of a floor.
    fn evaluated(self, subject: Subject) -> Option<(i64, Option<&'static str>)> {
        match subject {
            Subject::RawPixels => Some((0, Some("raw_pixels"))),
            Subject::Untrained => Some((0, Some("untrained"))),
            Subject::Before => Some((0, Some("before"))),
            Subject::Trained { round, epoch } => Some((self.step(round, epoch + 1), None)),
            Subject::Model { .. } => None,
        }
    }

    /// The step of an event's figures, and the figures.
    fn figures(&mut self, event: &Event) -> Option<(i64, Figures)> {
        match event {
            Event::RunStarted(s) => self.epochs = s.epochs,
            Event::EpochEnded(e) => self.epochs = e.epochs,
            _ => {}
        }
        let (step, group, figures) = match event {
            Event::Pretext(p) => {
                let figures = p.figures.iter().map(|f| (f.name.replace(' ', "_"), f.share));
                (self.step(p.round, p.epoch + 1), "pretext/", figures.collect())
            }
            Event::EpochEnded(e) => {
                let speed = ("pictures_per_second", e.pictures_per_second);
                let figures = named(&[("loss", e.loss), ("learning_rate", e.rate), speed]);
                (self.step(e.round, e.epoch + 1), "", figures)
            }
            Event::Discovered(d) => {
                let mut figures =
                    named(&[("anchors", d.anchors as f64), ("entropy", d.mean_entropy)]);
                let share = d.consistency.and_then(|c| c.share());
                figures.extend(share.map(|s| ("consistency".into(), s)));
                (self.step(d.round, 0), "", figures)
            }
            Event::Evaluated(e) => {
                let (step, floor) = self.evaluated(e.subject)?;
                (step, "knn/", named(&[(floor.unwrap_or("top1"), e.accuracy.top1)]))
            }
            Event::LabelFree(e) => {
                let ((step, floor), f) = (self.evaluated(e.subject)?, &e.figures);
                let all = [
                    (floor.unwrap_or("score"), f.score),
                    ("found", f.found),
                    ("agreement", f.agreement),
                    ("effective_rank", f.effective_rank),
                    ("uniformity", f.uniformity),
                ];
                let shown = if floor.is_some() { 1 } else { all.len() };
                (step, "label_free/", named(&all[..shown]))
            }
            _ => return None,
        };
        let tagged = figures.into_iter().map(|(name, v)| (format!("{group}{name}"), v as f32));
        Some((step, tagged.collect()))
    }
}

fn named(figures: &[(&str, f64)]) -> Vec<(String, f64)> {
    figures.iter().map(|(name, v)| (name.to_string(), *v)).collect()
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;

    /// The records that a file must hold for these events, times aside.
    fn records(events: &[Event]) -> Vec<(i64, Vec<(String, u32)>)> {
        let mut steps = Steps::default();
        let bits = |(tag, v): (String, f32)| (tag, v.to_bits());
        let figures = events.iter().filter_map(|event| steps.figures(event));
        figures.map(|(step, all)| (step, all.into_iter().map(bits).collect())).collect()
    }

    fn written(folder: &Path) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|p| std::fs::read(p).unwrap()).collect()
    }

    /// A file without the times of its records.
    fn timeless(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut messages = vec![];
        while let [a, b, c, d, e, f, g, h, ..] = *rest {
            let length = u64::from_le_bytes([a, b, c, d, e, f, g, h]) as usize;
            // Field 1 of each message is its time: a key and eight bytes.
            messages.push(rest[12 + 9..12 + length].to_vec());
            rest = &rest[12 + length + 4..];
        }
        messages
    }

    #[test]
    fn steps_count_epochs_over_rounds() {
        let all = records(&example(true));
        let steps = |tag: &str| -> Vec<i64> {
            let has = |figures: &[(String, u32)]| figures.iter().any(|(t, _)| t == tag);
            let of = all.iter().filter(|(_, figures)| has(figures));
            of.map(|(step, _)| *step).collect()
        };
        assert_eq!(steps("loss"), [1, 2, 3, 4]);
        assert_eq!(steps("knn/top1"), [1, 2, 3, 4]);
        assert_eq!(steps("anchors"), [2]);
    }

    #[test]
    fn every_start_writes_a_file_of_its_own_that_holds_all_figures() {
        let events = example(true);
        let folder = tempfile::tempdir().unwrap();
        let mut live = TensorBoard::create(folder.path(), &[], 1000.0).unwrap();
        events.iter().for_each(|e| live.event(e).unwrap());
        let whole = written(folder.path()).remove(0);
        // A version, a restart, and a record for each event that has figures.
        assert_eq!(timeless(&whole).len(), 2 + records(&events).len());
        for saved in [0, 5, events.len()] {
            let mut board = TensorBoard::create(folder.path(), &events[..saved], 1000.0).unwrap();
            events[saved..].iter().for_each(|e| board.event(e).unwrap());
            let files = written(folder.path());
            assert_eq!(timeless(files.last().unwrap()), timeless(&whole), "{saved}");
            assert_eq!(files[0], whole, "earlier files are left alone");
        }
        assert_eq!(written(folder.path()).len(), 4);
    }
}
