//! `anchorhood report`: one page about a run, to look at and to send.

use std::path::{Path, PathBuf};

use anchorhood::data::{self, Dataset};
use anchorhood::report::{ReportError, RunRecord, read_metrics, write_report, write_tensorboard};
use anchorhood::train::RunDir;
use clap::Parser;

use crate::failure::Failure;
use crate::output;
use crate::resolve::find_run;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood report shapes-1                    writes runs/shapes-1/report.html
  anchorhood report mine --data ~/elsewhere     if the pictures have moved
  anchorhood report mine --tensorboard && tensorboard --logdir runs
  anchorhood attention mine --pictures 1,5,9 -o runs/mine/attention && anchorhood report mine

The page holds everything it shows: curves, rounds, entropies, neighbourhoods as pictures, a map of the embeddings, and the
strips under the run's folder attention/. It needs no network, and pictures on it are small copies. The charts also lie
in the run's folder charts/, as SVG.")]
pub struct ReportArgs {
    /// A run's name or folder; it may still be training.
    pub run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Where the data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// Also write the run's figures for TensorBoard, into its folder tensorboard/.
    #[arg(long)]
    pub tensorboard: bool,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let run = find_run(&args.runs, &args.run)?;
    let mut config = RunDir::config_of(&run)?;
    if let Some(set) = &args.data {
        config.data.set = set.clone();
    }
    let opened = data::open(&config.data.set, &config.data.load_options(config.seed));
    if let (Some(_), Err(e)) = (&args.data, &opened) {
        return Err(Failure::usage(format!("--data: {e}")));
    }
    let opened = opened.map_err(|e| format!("the data set cannot be opened: {e}"));
    if let Err(why) = &opened {
        eprintln!("warning: the report will show no pictures, because {why}");
    }
    let path = write(&run, &opened)?;
    if args.tensorboard {
        let events = tensorboard(&run)?;
        output::line(&events.display().to_string())?;
    }
    output::line(&path.display().to_string())
}

/// The report of a run that has just ended. The run is whole without it, so what goes wrong is a warning.
pub fn after_training(run: &Path, data: &Dataset, for_tensorboard: bool) {
    if let Err(why) = write(run, &Ok(data)) {
        eprintln!("warning: no report was written: {why}");
    }
    if for_tensorboard && let Err(Failure { message, .. }) = tensorboard(run) {
        let why = message.unwrap_or_default();
        eprintln!("warning: nothing was written for TensorBoard: {why}");
    }
}

/// One file whatever the number of reports: TensorBoard would show two as one run, with every figure twice.
fn tensorboard(run: &Path) -> Result<PathBuf, Failure> {
    let metrics = run.join("metrics.jsonl");
    let events = read_metrics(&metrics)?;
    let folder = run.join("tensorboard");
    std::fs::create_dir_all(&folder).map_err(crate::model::io(&folder))?;
    let path = folder.join("events.out.tfevents.0.anchorhood");
    let began = std::fs::metadata(run.join("config.toml")).and_then(|m| m.modified());
    let began = began.map_err(crate::model::io(run))?;
    let began = began
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    write_tensorboard(&events, began.as_secs_f64(), &path)?;
    Ok(path)
}

fn write(
    run: &Path,
    data: &Result<impl std::borrow::Borrow<Dataset>, String>,
) -> Result<PathBuf, ReportError> {
    let record = RunRecord::read(run)?;
    let pictures = match data {
        Ok(data) => Ok(&data.borrow().train),
        Err(why) => Err(why.clone()),
    };
    write_report(run, &record, pictures)
}
