//! `metrics.jsonl` read back: one event a line.

use std::path::{Path, PathBuf};

use anchorhood_train::Event;

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
            serde_json::from_str(line).map_err(|e| ReportError::Line {
                path: path.into(),
                line: i + 1,
                reason: e.to_string(),
            })
        })
        .collect()
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
    fn a_bad_line_is_named() {
        let error = read(&format!("{LINE}\nnot json\n{LINE}\n")).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
