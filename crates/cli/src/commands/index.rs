//! `anchorhood index`: the vectors of a folder of pictures, ready to be searched.

use std::path::{Path, PathBuf};

use anchorhood::engine::Device;
use anchorhood::search::{FolderJob, Journal, PictureIndex};
use clap::Parser;

use crate::args::device;
use crate::args::model::{MachineArgs, ModelArgs, check_output};
use crate::commands::folder_job::{self, JobArgs, LabelsArgs};
use crate::terminal::failure::Failure;
use crate::terminal::output::grouped;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood index mine ~/pictures                                   writes pictures.index here
  anchorhood index mine ~/pictures -o my.index --thumbnails          with small copies in it
  anchorhood neighbours mine pictures.index query.jpg                … and then search it

Up to a million pictures a search looks at all of them; above, the index is divided into clusters
and a search looks at the nearest, and the share of true neighbours it finds is measured and told.")]
pub struct IndexArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The folder of pictures, a .tar of them, or a text that lists files.
    pub folder: PathBuf,
    /// The index to write [default: the folder's name and .index, here].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the index if there is one.
    #[arg(long)]
    pub overwrite: bool,
    /// Keep small copies of the pictures in the index, so many pixels a side [default with the flag alone: 96].
    #[arg(long, value_name = "PIXELS", num_args = 0..=1, default_missing_value = "96", value_parser = clap::value_parser!(u16).range(8..=512))]
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

/// Runs the command.
pub fn run(args: &IndexArgs) -> Result<(), Failure> {
    let output = args.output.clone().unwrap_or_else(|| beside(&args.folder));
    check_output(&output, args.overwrite)?;
    let model = args.model.load()?;
    let machine = args.machine.machine()?;
    let journal = Journal::place(&output);
    let threads = machine.thread_count();
    let job = FolderJob {
        thumbnail: args.thumbnails.map(usize::from),
        labels: args.labels.labels.into(),
        ..args.job.job(&model, &args.folder, journal, threads)
    };
    let index = make(args, &output, &job, &device::open(&machine)?)?;
    crate::terminal::output::line(&format!(
        "{}: {} pictures, vectors of {}{}",
        output.display(),
        grouped(index.len()),
        index.parts().dim,
        match &index.parts().lists {
            Some((lists, recall)) => format!(
                ", {} clusters; a search finds {:.1}% of the true ten nearest",
                grouped(lists.len()),
                recall * 100.0
            ),
            None => String::new(),
        }
    ))
}

/// `pictures.index` of `~/pictures`, in the current folder.
fn beside(folder: &Path) -> PathBuf {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let mut name = whole.file_name().unwrap_or("pictures".as_ref()).to_owned();
    name.push(".index");
    name.into()
}

fn make(
    args: &IndexArgs,
    output: &Path,
    job: &FolderJob,
    device: &Device,
) -> Result<PictureIndex, Failure> {
    let mut done = folder_job::run(job, device, args.job.quiet)?;
    let mut index = done.index(output, job)?;
    if args.approximate || index.is_large() {
        if !args.job.quiet {
            eprintln!("dividing {} vectors into clusters", grouped(index.len()));
        }
        index.divide(device, &mut |_| {})?;
    }
    index.save()?;
    done.journal.remove()?;
    Ok(index)
}
