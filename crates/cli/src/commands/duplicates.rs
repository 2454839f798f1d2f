//! `anchorhood duplicates`: pictures of an index that are nearly the same.

use std::path::PathBuf;

use anchorhood::search::{Pair, PictureIndex, Sheet, duplicates, groups};
use clap::Parser;
use serde_json::json;

use crate::args::device;
use crate::args::model::{MachineArgs, check_output};
use crate::args::pictures::ModelFlag;
use crate::commands::folder_job::JobArgs;
use crate::commands::living_index::open_or_make;
use crate::commands::neighbours::warn_of_gone;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

/// Pictures in a row of the sheet: pairs side by side.
const COLUMNS: usize = 10;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood duplicates ~/pictures
  anchorhood duplicates pictures.index
  anchorhood duplicates pictures.index --above 0.999 --groups
  anchorhood duplicates pictures.index --sheet pairs.png    look before you delete anything
  anchorhood duplicates pictures.index --json | jq -r '.paths[1:][]'

A line is a similarity and two paths, most similar first. No pair above --above is missed.")]
pub struct DuplicatesArgs {
    /// Folders of pictures, or an index made by `anchorhood index`.
    #[arg(value_name = "FOLDER", required = true)]
    pub pictures: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// Pairs at least so similar, up to 1.
    #[arg(long, default_value_t = 0.98, value_name = "SIMILARITY")]
    pub above: f32,
    /// Whole groups of pictures that are nearly the same, a line each, instead of pairs.
    #[arg(long)]
    pub groups: bool,
    /// A JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Also draw the pairs (or groups) as a contact sheet.
    #[arg(long, value_name = "FILE.png")]
    pub sheet: Option<PathBuf>,
    /// Replace the sheet if there is one.
    #[arg(long)]
    pub overwrite: bool,
    /// Where an index's pictures are now, if the folder was moved; of several folders LABEL=FOLDER.
    #[arg(long)]
    pub folder: Vec<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: &DuplicatesArgs) -> Result<(), Failure> {
    if !(-1.0..=1.0).contains(&args.above) {
        return Err(Failure::usage(format!(
            "--above {}: a similarity is between -1 and 1; near-identical pictures are above 0.98",
            args.above
        )));
    }
    if let Some(sheet) = &args.sheet {
        check_output(sheet, args.overwrite)?;
    }
    let words = args.model.words(&args.pictures, 1)?;
    let job = JobArgs::default();
    let index = open_or_make(&words, &args.model, &args.folder, &job, &args.machine)?;
    let pairs = compare(args, &index)?;
    let grouped_pictures = groups(&pairs);
    if let Some(path) = &args.sheet {
        let shown: Vec<(usize, Option<f32>)> = match args.groups {
            true => grouped_pictures
                .iter()
                .flatten()
                .map(|i| (*i, None))
                .collect(),
            false => {
                let both = |p: &Pair| [p.first, p.second].map(|i| (i, Some(p.similarity)));
                pairs.iter().flat_map(both).collect()
            }
        };
        let mut sheet = Sheet::new(96).with_columns(COLUMNS);
        warn_of_gone(&sheet.push_indexed(&index, &shown));
        sheet.save(path)?;
    }
    match args.groups {
        true => print_groups(args, &index, &grouped_pictures)?,
        false => print_pairs(args, &index, &pairs)?,
    }
    eprintln!(
        "{} pairs in {} groups among {} pictures are at least {} similar",
        grouped(pairs.len()),
        grouped(grouped_pictures.len()),
        grouped(index.len()),
        args.above
    );
    Ok(())
}

fn print_pairs(args: &DuplicatesArgs, index: &PictureIndex, pairs: &[Pair]) -> Result<(), Failure> {
    for pair in pairs {
        let [first, second] = [pair.first, pair.second].map(|i| index.name(i));
        output::line(&match args.json {
            true => json!({ "similarity": pair.similarity, "paths": [first, second] }).to_string(),
            false => format!("{:.4}  {first}  {second}", pair.similarity),
        })?;
    }
    Ok(())
}

fn print_groups(
    args: &DuplicatesArgs,
    index: &PictureIndex,
    groups: &[Vec<usize>],
) -> Result<(), Failure> {
    for group in groups {
        let names: Vec<&str> = group.iter().map(|i| index.name(*i)).collect();
        output::line(&match args.json {
            true => json!({ "paths": names }).to_string(),
            false => names.join("  "),
        })?;
    }
    Ok(())
}

fn compare(args: &DuplicatesArgs, index: &PictureIndex) -> Result<Vec<Pair>, Failure> {
    let device = device::open(&args.machine.machine()?)?;
    let parts = index.parts();
    let bar = Bar::new("comparing", false);
    let tell = |done| bar.at(done, index.len());
    let pairs = duplicates(&device, index.vectors()?, parts.dim, args.above, &tell);
    drop(bar);
    Ok(pairs?)
}
