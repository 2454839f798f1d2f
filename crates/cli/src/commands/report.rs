//! `anchorhood report`: one page about a run, to look at and to send.

use std::path::PathBuf;

use anchorhood::research::RunDir;
use anchorhood::{find_run, open_device_again, open_images_of, write_run_report};
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
    let run = find_run(&args.runs, &args.run)?;
    let config = RunDir::config_of(&run)?;
    let opened = match open_images_of(&config, args.data.as_deref()) {
        Err(error) if args.data.is_some() => return Err(error.into()),
        opened => opened.map_err(|error| error.with_advice()),
    };
    if let Err(why) = &opened {
        eprintln!("warning: no pictures can be shown, because {why}");
    }
    let open = || open_device_again(&config.machine, &mut terminal::tell);
    let path = write_run_report(&run, &opened, &open, args.overwrite, &mut terminal::tell)?;
    output::line(&path.display().to_string())
}
