//! `metrics.jsonl` read back: one event a line.

use std::path::{Path, PathBuf};

use anchorhood_train::{Event, Subject};

/// No run has as many epochs, nor rounds: its settings refuse them. What a chart is drawn over has an end by it.
pub(crate) const MOST_EPOCHS: usize = 1 << 20;

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
    /// A line that is no event.
    #[error("{}: line {line} is not an event: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// What was met.
        reason: String,
    },
    /// A checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(Box<anchorhood_train::CheckpointError>),
    /// A picture that the run has not.
    #[error("there is no training picture {number} among {there}")]
    NoSuchPicture {
        /// Its number.
        number: usize,
        /// How many there are.
        there: usize,
    },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// The curve cannot be drawn.
    #[error("the curve cannot be drawn: {0}")]
    Drawing(String),
}

impl From<anchorhood_train::CheckpointError> for ReportError {
    fn from(error: anchorhood_train::CheckpointError) -> Self {
        ReportError::Checkpoint(Box::new(error))
    }
}

impl ReportError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
        let path = path.to_path_buf();
        move |source| ReportError::Io { path, source }
    }
}

/// The events of a run, in order. A last line without its end, as a killed run leaves it, is left out.
pub fn read_metrics(path: &Path) -> Result<Vec<Event>, ReportError> {
    let text = std::fs::read(path).map_err(|source| ReportError::Io {
        path: path.into(),
        source,
    })?;
    let text = String::from_utf8_lossy(&text);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate().filter(|(_, l)| !l.is_empty());
    lines
        .map(|(i, line)| {
            event(line).map_err(|reason| ReportError::Line {
                path: path.into(),
                line: i + 1,
                reason,
            })
        })
        .collect()
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
        Event::Discovered(d) => d.consistency.and_then(|c| c.share()).into_iter().collect(),
        Event::RunEnded(e) => e.last.iter().chain(&e.best).map(|a| a.top1).collect(),
        Event::RunStarted(_)
        | Event::Warning { .. }
        | Event::RoundStarted { .. }
        | Event::Discovering { .. }
        | Event::Progress(_)
        | Event::EpochEnded(_)
        | Event::CheckpointSaved { .. } => vec![],
    }
}

/// Numbers of rounds and epochs in an event.
fn numbers(event: &Event) -> Vec<usize> {
    match event {
        Event::RunStarted(s) => vec![s.rounds, s.epochs],
        Event::RoundStarted { round, rounds } => vec![*round, *rounds],
        Event::Discovering { round, .. } => vec![*round],
        Event::Discovered(d) => vec![d.round],
        Event::Progress(p) => vec![p.round, p.epoch],
        Event::EpochEnded(e) => vec![e.round, e.epoch, e.epochs],
        Event::Evaluated(e) => match e.subject {
            Subject::RawPixels | Subject::Untrained => vec![],
            Subject::Trained { round, epoch } => vec![round, epoch],
        },
        Event::CheckpointSaved { position: p, .. } => vec![p.round, p.epoch],
        Event::Warning { .. } | Event::RunEnded(_) => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Event>, ReportError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        std::fs::write(&path, text).unwrap();
        read_metrics(&path)
    }

    const LINE: &str = r#"{"event":"round_started","round":0,"rounds":2}"#;

    #[test]
    fn a_cut_last_line_is_left_out() {
        let events = read(&format!("{LINE}\n{LINE}\n{}", &LINE[..20])).unwrap();
        assert_eq!(
            events,
            vec![
                Event::RoundStarted {
                    round: 0,
                    rounds: 2
                };
                2
            ]
        );
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn a_round_that_no_run_has_is_named() {
        let far = LINE.replace("\"round\":0", "\"round\":4294967295");
        let error = read(&format!("{LINE}\n{far}\n")).unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains("4294967295"),
            "{error}"
        );
    }

    #[test]
    fn a_share_that_is_none_is_named() {
        let judged = r#"{"event":"evaluated","of":"untrained","top1":1e300,"top5":null,"n":1,"k":1,"temperature":1.0,"seconds":1.0}"#;
        let error = read(&format!("{judged}\n")).unwrap_err().to_string();
        assert!(
            error.contains("line 1") && error.contains("share"),
            "{error}"
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = read(&format!("{LINE}\nnot json\n{LINE}\n")).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
