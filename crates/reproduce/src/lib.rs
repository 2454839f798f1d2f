//! What did the paper find, and what do we?
//!
//! Every table and figure of the paper is an [`Experiment`]: data that name the runs it takes, how
//! each is judged, and what the paper has in that place ([`experiments`]). A [`Scale`] says how
//! large it is run. A [`Lab`] trains what is missing, resumes what was interrupted, and reads back
//! what is finished; what comes of it are [`Results`], which carry their evidence and are written
//! as JSON and Markdown with plots.
//!
//! Runs are shared: they lie under one folder, named after their settings, so that the run that is
//! in four tables is trained once. Round 0 depends neither on the neighbourhoods nor on the number
//! of rounds, so that all runs that differ in these begin from one Instance run, with the same bits
//! as if each had trained it.
//!
//! A [`Comparison`] is the same for methods: each trained for as long as the others, and put beside
//! them as [`Standings`].

#![forbid(unsafe_code)]

mod compare;
mod error;
mod experiment;
mod experiments;
mod judge;
mod lab;
mod markdown;
mod open;
mod paper;
mod pictures;
mod place;
mod plan;
mod plot;
mod record;
mod results;
mod scale;
mod sets;
mod small_set;
mod starts;

pub use compare::{Allowance, Comparison, Contestant, Standings};
pub use error::ReproduceError;
pub use experiment::{Entry, Experiment, Plot, Protocol, Settings, Start, Subject, System};
pub use experiments::{experiments, find};
pub use lab::Lab;
pub use pictures::{Chosen, choose};
pub use place::{LabFolders, Told};
pub use plan::{Job, config_of, name_of};
pub use record::{DataRecord, FinishedRun, Judged, RoundRecord};
#[doc(hidden)] // what crates/fuzzing attacks
pub use record::{read as read_record, write as write_record};
pub use results::{Cell, JudgedRun, PictureRecord, Results};
pub use scale::Scale;
pub use small_set::SMALL_SET;
