//! `anchorhood embed`: the vectors of a folder of pictures, as a table for other programs.

use std::path::PathBuf;

use anchorhood::FolderOptions;
use anchorhood_export::{TableFormat, npy_names_file};
use anchorhood_index::{Journal, Shard};
use clap::Parser;

use crate::args::device;
use crate::args::model::{MachineArgs, check_output};
use crate::args::pictures::ModelFlag;
use crate::commands::indexed::{JobArgs, LabelsArgs, embed};
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

#[derive(Debug, Parser)]
#[command(after_help = help!("embed"))]
pub struct EmbedArgs {
    /// Folders of pictures, .tar archives of them, or texts that list files.
    #[arg(value_name = "FOLDER", required = true)]
    pub folders: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// The table to write; its ending says how: .parquet, .npy, .csv or .jsonl.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the table if there is one.
    #[arg(long)]
    pub overwrite: bool,
    /// Embed part I of N, counted from 0, into a table whose name says so; one that is there is
    /// skipped, unless --overwrite.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub labels: LabelsArgs,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
}

pub fn run(args: &EmbedArgs) -> Result<(), Failure> {
    let format = TableFormat::of(&args.output).ok_or_else(|| {
        let endings = TableFormat::ALL.map(|f| f.to_string()).join(", ");
        usage!(
            "{}: its name must end in one of {endings}, which says how it is written",
            args.output.display()
        )
    })?;
    let output = args.shard.map(|shard| shard.path(&args.output));
    let output = output.unwrap_or_else(|| args.output.clone());
    if args.shard.is_some() && output.exists() && !args.overwrite {
        let output = output.display();
        return output::line(&format!(
            "{output}: exists already, skipped (--overwrite replaces it)"
        ));
    }
    check_output(&output, args.overwrite)?;
    // A job that goes on may have written it before it ended.
    let goes_on = Journal::place(&output).exists();
    if format == TableFormat::Npy && !goes_on {
        check_output(&npy_names_file(&output), args.overwrite)?;
    }
    args.model.check_folders(&args.folders)?;
    let model = args.model.load()?;
    let machine = args.machine.machine()?;
    let options = FolderOptions {
        labels: args.labels.labels,
        shard: args.shard,
        ..args.job.options(machine.thread_count())
    };
    let (device, quiet) = (device::open(&machine)?, args.job.quiet);
    let (rows, dim) =
        embed(&args.folders, &model, &device, options, quiet, |folders| folders.table(&output))?;
    let beside = match format {
        TableFormat::Npy => format!("; their paths are in {}", npy_names_file(&output).display()),
        _ => String::new(),
    };
    output::line(&format!("{}: {} vectors of {dim}{beside}", output.display(), grouped(rows)))
}
