//! `anchorhood report`: one page about a run, to look at and to send.

use std::path::{Path, PathBuf};

use anchorhood::data::{Dataset, Split};
use anchorhood::engine::Device;
use anchorhood::evaluation::Rows;
use anchorhood::report::{ReportError, RunRecord, write_report};
use anchorhood::search::Model;
use anchorhood::train::{RunDir, checkpoint_path, model_path};
use clap::Parser;

use crate::args::resolve::find_run;
use crate::args::{device, run_data};
use crate::terminal::failure::Failure;
use crate::terminal::output;

/// More pictures than this are not embedded for a page.
const MOST_EMBEDDED: usize = 100_000;

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
    let opened = match run_data::open(&config, args.data.as_deref()) {
        Err(failure) if args.data.is_some() => return Err(failure),
        opened => opened.map_err(|failure| failure.message.unwrap_or_default()),
    };
    if let Err(why) = &opened {
        eprintln!("warning: no pictures can be shown, because {why}");
    }
    let open = || device::open_again(&config.machine);
    let path = write(&run, &opened, &open, args.overwrite)?;
    output::line(&path.display().to_string())
}

/// The report of a run that has just ended. The run is whole without it, so what goes wrong is a
/// warning.
pub fn after_training(run: &Path, data: &Dataset, device: &Device) {
    if let Err(why) = write(run, &Ok(data), &|| Ok(device.clone()), false) {
        eprintln!("warning: no report was written: {why}");
    }
}

/// Writes the page; a device is opened where something has to be computed for it.
fn write(
    run: &Path,
    data: &Result<impl std::borrow::Borrow<Dataset>, String>,
    open: &dyn Fn() -> Result<Device, Failure>,
    overwrite: bool,
) -> Result<PathBuf, ReportError> {
    let mut record = RunRecord::read(run)?;
    if let Some(left_out) = &record.left_out {
        eprintln!("warning: {}: {left_out}", run.display());
    }
    let pictures = match data {
        Ok(data) => Ok(&data.borrow().train),
        Err(why) => Err(why.clone()),
    };
    if let (None, Ok(train)) = (&record.embedding, &pictures)
        && checkpoint_path(run, "last").is_file()
        && train.pictures.len() <= MOST_EMBEDDED
    {
        match open().and_then(|device| embedded(run, train, &device)) {
            Ok(vectors) => record.embedding = Some(vectors),
            Err(Failure { message, .. }) => eprintln!(
                "warning: pictures are not shown beside those most like them: {}",
                message.unwrap_or_default()
            ),
        }
    }
    write_report(run, &record, pictures, overwrite)
}

/// What a run's model makes of its pictures now, where its method remembers none.
fn embedded(run: &Path, train: &Split, device: &Device) -> Result<Rows, Failure> {
    let model = Model::load(model_path(run))?;
    let vectors = model.embed(device, &train.pictures)?;
    Ok(Rows::new(vectors.values().to_vec(), vectors.dim()))
}
