//! `metrics.jsonl` read back: one event a line. Lines that are none are left out and counted: a
//! damaged line does not take the figures of all others with it.

use std::fmt;
use std::path::{Path, PathBuf};

use anchorhood_storage::read_at_most;
use anchorhood_train::{Evaluated, Event, LabelFreeEvaluated, Subject};

/// No run has as many epochs, nor rounds: its settings refuse them. What a chart is drawn over has
/// an end by it.
pub(crate) const MOST_EPOCHS: usize = anchorhood_train::RunConfig::MOST_EPOCHS;

/// Some million events.
const MOST_BYTES: u64 = 1 << 30;

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(Box<anchorhood_train::CheckpointError>),
    /// A page is there, and the pictures for another are not.
    #[error(
        "{}: the page is kept, since one made now would be without pictures: {why}",
        .path.display()
    )]
    PageKept {
        /// The page.
        path: PathBuf,
        /// Why there are no pictures.
        why: String,
    },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// Something else that cannot be: a sentence.
    #[error("{0}")]
    Failed(String),
}

impl From<anchorhood_train::CheckpointError> for ReportError {
    fn from(error: anchorhood_train::CheckpointError) -> Self {
        ReportError::Checkpoint(Box::new(error))
    }
}

impl ReportError {
    pub(crate) fn drawing(why: impl fmt::Display) -> ReportError {
        ReportError::Failed(format!("the curve cannot be drawn: {why}"))
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
        let path = path.to_path_buf();
        move |source| ReportError::Io { path, source }
    }
}

/// What a run told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// The events, in order.
    pub events: Vec<Event>,
    /// What else was in the file.
    pub left_out: Option<LeftOut>,
}

/// Lines that are no events; there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub lines: usize,
    /// The first of them, from 1.
    pub first: usize,
    /// What is wrong with the first.
    pub reason: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let are = match self.lines {
            1 => "line of metrics.jsonl is no event and was",
            _ => "lines of metrics.jsonl are no events and were",
        };
        let (lines, first, reason) = (self.lines, self.first, &self.reason);
        write!(f, "{lines} {are} left out (line {first}: {reason})")
    }
}

/// The events of a run. A last line without its end, as a killed run leaves it, is not counted
/// among those that are none.
pub fn read_metrics(path: &Path) -> Result<EventLog, ReportError> {
    let text = read_at_most(path, MOST_BYTES).map_err(ReportError::io(path))?;
    let text = String::from_utf8_lossy(&text);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate().filter(|(_, l)| !l.is_empty());
    let mut log = EventLog::default();
    for (i, line) in lines {
        match event(line) {
            Ok(event) => log.events.push(event),
            Err(reason) => {
                let first = LeftOut { lines: 0, first: i + 1, reason };
                log.left_out.get_or_insert(first).lines += 1;
            }
        }
    }
    Ok(log)
}

/// The event of a line; the error is a clause.
fn event(line: &str) -> Result<Event, String> {
    let event: Event = serde_json::from_str(line).map_err(|e| e.to_string())?;
    match numbers(&event).into_iter().max() {
        Some(most) if most > MOST_EPOCHS => Err(format!(
            "it tells of round or epoch {most}, and no run has more than {MOST_EPOCHS}"
        )),
        _ if !shares(&event).iter().all(|s| (0.0..=1.0).contains(s)) => {
            Err("it tells of a share that is not between 0 and 1".into())
        }
        Some(_) | None => Ok(event),
    }
}

/// Figures of an event that are shares of something.
fn shares(event: &Event) -> Vec<f64> {
    match event {
        Event::Evaluated(e) => vec![e.accuracy.top1],
        Event::LabelFree(e) => vec![e.figures.found, e.figures.agreement, e.figures.score],
        Event::Discovered(d) => d.consistency.and_then(|c| c.share()).into_iter().collect(),
        Event::Pretext(p) => {
            let chances = p.figures.iter().filter_map(|f| f.chance);
            p.figures.iter().map(|f| f.share).chain(chances).collect()
        }
        Event::RunEnded(e) => e.last.iter().chain(&e.best).map(|a| a.top1).collect(),
        _ => vec![],
    }
}

/// How long what an event tells of took: discovery, an epoch, an evaluation.
pub(crate) fn seconds(event: &Event) -> f64 {
    match event {
        Event::Discovered(d) => d.seconds,
        Event::EpochEnded(e) => e.seconds,
        Event::Evaluated(e) => e.seconds,
        Event::LabelFree(e) => e.seconds,
        _ => 0.0,
    }
}

/// When a run's features were judged, in seconds of discovery, training and judging, and how good
/// they were. The untrained network comes first.
pub fn accuracy_over_seconds(events: &[Event]) -> Vec<(f64, f64)> {
    let (mut now, mut points) = (0.0, vec![]);
    for event in events {
        now += seconds(event);
        if let Event::Evaluated(e) = event
            && !matches!(e.subject, Subject::RawPixels | Subject::Model { .. })
        {
            points.push((now, e.accuracy.top1));
        }
    }
    points
}

/// Numbers of rounds and epochs in an event.
fn numbers(event: &Event) -> Vec<usize> {
    match event {
        Event::TimeFitted(t) => vec![t.rounds, t.epochs],
        Event::RunStarted(s) => vec![s.rounds, s.epochs],
        Event::RoundStarted { round, rounds } => vec![*round, *rounds],
        Event::Discovering { round, .. } => vec![*round],
        Event::Discovered(d) => vec![d.round],
        Event::Progress(p) => vec![p.round, p.epoch],
        Event::EpochEnded(e) => vec![e.round, e.epoch, e.epochs],
        Event::Evaluated(Evaluated { subject, .. })
        | Event::LabelFree(LabelFreeEvaluated { subject, .. }) => match *subject {
            Subject::RawPixels | Subject::Untrained | Subject::Before | Subject::Model { .. } => {
                vec![]
            }
            Subject::Trained { round, epoch } => vec![round, epoch],
        },
        Event::Pretext(p) => vec![p.round, p.epoch],
        Event::StoppedEarly(s) => vec![s.round, s.epoch],
        Event::CheckpointSaved { position: p, .. } => vec![p.round, p.epoch],
        Event::Loading { .. } | Event::Note { .. } | Event::Warning { .. } | Event::RunEnded(_) => {
            vec![]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;

    fn read(text: &str) -> EventLog {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        std::fs::write(&path, text).unwrap();
        read_metrics(&path).unwrap()
    }

    fn left_out(text: &str) -> String {
        read(text).left_out.unwrap().to_string()
    }

    const LINE: &str = r#"{"event":"round_started","round":0,"rounds":2}"#;
    const EVENT: Event = Event::RoundStarted { round: 0, rounds: 2 };

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_at_once() {
        use crate::RunRecord;
        use std::os::unix::fs::symlink;
        assert!(read_metrics(Path::new("/dev/zero")).is_err());
        let run = tempfile::tempdir().unwrap();
        symlink("/dev/zero", run.path().join("config.toml")).unwrap();
        assert!(RunRecord::read(run.path()).is_err());
        std::fs::remove_file(run.path().join("config.toml")).unwrap();
        std::fs::write(run.path().join("config.toml"), "").unwrap();
        std::fs::create_dir(run.path().join("attention")).unwrap();
        symlink("/dev/zero", run.path().join("attention/a.png")).unwrap();
        assert!(RunRecord::read(run.path()).unwrap().strips.is_empty());
    }

    #[test]
    fn seconds_are_those_of_all_that_happened() {
        let points = accuracy_over_seconds(&example(true));
        assert_eq!(points.len(), 1 + 4, "the untrained network, and every evaluation");
        assert!(points.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(points[0].1, 0.25);
        assert!(accuracy_over_seconds(&example(false)).is_empty());
    }

    #[test]
    fn a_cut_last_line_is_left_out() {
        let log = read(&format!("{LINE}\n{LINE}\n{}", &LINE[..20]));
        assert_eq!((log.events, log.left_out), (vec![EVENT; 2], None));
        assert_eq!(read(""), EventLog::default());
    }

    #[test]
    fn a_round_that_no_run_has_is_named() {
        let far = LINE.replace("\"round\":0", "\"round\":4294967295");
        let said = left_out(&format!("{LINE}\n{far}\n"));
        assert!(said.contains("line 2") && said.contains("4294967295"), "{said}");
    }

    #[test]
    fn a_share_that_is_none_is_named() {
        let judged = r#"{"event":"evaluated","of":"untrained","top1":1e300,"top5":null,"n":1,
            "k":1,"temperature":1.0,"seconds":1.0}"#;
        let judged = judged.replace('\n', "");
        let said = left_out(&format!("{judged}\n"));
        assert!(said.contains("line 1") && said.contains("share"), "{said}");
    }

    #[test]
    fn bad_lines_are_left_out_and_counted() {
        let text = format!("{LINE}\nnot json\n{LINE}\n{{}}\n\n");
        assert_eq!(read(&text).events, [EVENT, EVENT]);
        let said = left_out(&text);
        assert!(said.starts_with("2 lines of metrics.jsonl are"), "{said}");
        assert!(said.contains("line 2: "), "{said}");
        let said = left_out(&format!("{LINE}\nnot json\n"));
        assert!(said.starts_with("1 line of metrics.jsonl is"), "{said}");
    }
}
