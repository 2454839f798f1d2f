//! How does a person see a run? Its event log read back, a table of its rounds, a curve over its epochs.
//!
//! ```no_run
//! let events = anchorhood_report::read_metrics("runs/shapes-1/metrics.jsonl".as_ref())?;
//! let summary = anchorhood_report::Summary::of(&events);
//! println!("{}", summary.table());
//! # Ok::<(), anchorhood_report::ReportError>(())
//! ```

mod curve;
mod metrics;
mod summary;
mod table;

pub use curve::{curve_svg, write_curve};
pub use metrics::{ReportError, read_metrics};
pub use summary::{Floor, RoundSummary, Summary};
