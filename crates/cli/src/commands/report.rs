//! `anchorhood report`: one page about a run, to look at and to send.

use std::path::PathBuf;

use anchorhood::{Run, find_run};
use clap::Parser;

use crate::terminal;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("report"))]
pub struct ReportArgs {
    /// A run's name or folder; it may still be training.
    pub run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Where the data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// Replace a page that is there even if the pictures are not at hand, which it may show.
    #[arg(long)]
    pub overwrite: bool,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let run = Run::open(find_run(&args.runs, &args.run)?)?;
    let path = run.write_report(args.data.as_deref(), args.overwrite, &mut terminal::tell)?;
    output::line(&path.display().to_string())
}
