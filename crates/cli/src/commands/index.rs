//! `anchorhood index`: the vectors of a folder of pictures, ready to be searched.

use std::path::{Path, PathBuf};

use anchorhood::FolderOptions;
use clap::Parser;

use crate::args::device;
use crate::args::model::{MachineArgs, check_output};
use crate::args::pictures::ModelFlag;
use crate::commands::indexed::{JobArgs, LabelsArgs, embed, told};
use crate::terminal::failure::Failure;
use crate::terminal::output::{grouped, line};

#[derive(Debug, Parser)]
#[command(after_help = help!("index"))]
pub struct IndexArgs {
    /// Folders of pictures, .tar archives of them, or texts that list files.
    #[arg(value_name = "FOLDER", required = true)]
    pub folders: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// The index to write, or to bring up to date [default: the first folder's name and .index,
    /// here].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make it from nothing, whatever is there.
    #[arg(long)]
    pub overwrite: bool,
    /// Keep small copies of the pictures in the index, so many pixels a side [default with the flag
    /// alone: 96].
    #[arg(long, value_name = "PIXELS", num_args = 0..=1, default_missing_value = "96",
          value_parser = clap::value_parser!(u16).range(8..=512))]
    pub thumbnails: Option<u16>,
    /// Divide the index into clusters whatever its size: searches look at the nearest alone.
    #[arg(long)]
    pub approximate: bool,
    #[command(flatten)]
    pub labels: LabelsArgs,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
}

pub fn run(args: &IndexArgs) -> Result<(), Failure> {
    args.model.check_folders(&args.folders)?;
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| beside(&args.folders[0]));
    check_output(&output, true)?;
    let updated = output.exists() && !args.overwrite;
    let model = args.model.load()?;
    let machine = args.machine.machine()?;
    let options = FolderOptions {
        thumbnails: args.thumbnails.map(usize::from),
        labels: args.labels.labels,
        overwrite: args.overwrite,
        approximate: args.approximate,
        ..args.job.options(machine.thread_count())
    };
    let (device, quiet) = (device::open(&machine)?, args.job.quiet);
    let index =
        embed(&args.folders, &model, &device, options, quiet, |folders| folders.index(&output))?;
    let changes = index.changes().filter(|_| updated);
    line(&format!(
        "{}: {} pictures, vectors of {}{}{}",
        output.display(),
        grouped(index.len()),
        index.dim(),
        match &index.parts().parts().lists {
            Some((lists, recall)) => format!(
                ", {} clusters; a search finds {:.1}% of the true ten nearest",
                grouped(lists.len()),
                recall * 100.0
            ),
            None => String::new(),
        },
        changes.map_or(String::new(), |changes| format!(": {}", told(&changes)))
    ))
}

/// `pictures.index` of `~/pictures`, in the current folder.
fn beside(folder: &Path) -> PathBuf {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let mut name = whole.file_name().unwrap_or("pictures".as_ref()).to_owned();
    name.push(".index");
    name.into()
}
