//! How does a person see a run? Its event log read back, a table of its rounds, curves over its
//! epochs, and one page with all of it.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let run = Path::new("runs/shapes-1");
//! let record = anchorhood_report::RunRecord::read(run)?;
//! println!("{}", anchorhood_report::Summary::of(&record.events).table());
//! anchorhood_report::write_report(run, &record, Err("they were not opened".into()), false)?;
//! # Ok::<(), anchorhood_report::ReportError>(())
//! ```

#![forbid(unsafe_code)]

mod attention;
mod before_after;
pub mod chart;
mod charts;
mod gallery;
mod html;
mod lead;
pub mod lettering;
mod metrics;
mod record;
mod sheet;
mod sprite;
mod summary;
mod table;
mod tensorboard;
mod verdict;
mod words;

pub use attention::{AttentionOptions, AttentionStrip, attention_strips, finished_rounds};
pub use charts::{curve_svg, pretext_svg, write_curve};
pub use html::{MAP_SCRIPT, STYLE, TrainingPictures, chart_figures, report_html, write_report};
pub use metrics::{EventLog, LeftOut, ReportError, accuracy_over_seconds, read_metrics};
pub use record::{RoundNeighbourhoods, RunRecord, Strip};
pub use sheet::{Sheet, Shown, Tile};
pub use summary::{RoundSummary, Summary};
pub use table::{aligned, markdown};
pub use tensorboard::TensorBoard;
pub use verdict::{Begun, Measure, Verdict};
pub use words::{counted, duration, grouped};
