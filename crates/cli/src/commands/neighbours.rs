//! `anchorhood neighbours`: the pictures of an index that are most like a picture.

use std::path::{Path, PathBuf};

use anchorhood::data::about_picture;
use anchorhood::search::{Hit, PictureIndex, Sheet};
use clap::Parser;
use serde_json::json;

use crate::args::device;
use crate::args::model::{MachineArgs, ModelArgs, check_output, warn_unchecked};
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood neighbours mine pictures.index query.jpg
  anchorhood neighbours mine pictures.index query.jpg -k 50 --sheet alike.png
  anchorhood neighbours mine pictures.index query.jpg --json | jq -r '.neighbours[].path'

A line is a similarity (1 is the same picture) and a path, most similar first.")]
pub struct NeighboursArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The index, made by `anchorhood index` with the same model.
    pub index: PathBuf,
    /// The picture to compare with; it need not be in the index.
    pub query: PathBuf,
    /// How many.
    #[arg(short, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
    /// Also draw a contact sheet: the query framed, then its neighbours.
    #[arg(long, value_name = "FILE.png")]
    pub sheet: Option<PathBuf>,
    /// Pixels a side of a picture on the sheet.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(16..=512))]
    pub tile: u16,
    /// Replace the sheet if there is one.
    #[arg(long)]
    pub overwrite: bool,
    /// Look at all pictures even in an index divided into clusters.
    #[arg(long)]
    pub exact: bool,
    /// Where the pictures are now, if the folder was moved.
    #[arg(long)]
    pub folder: Option<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Opens an index whose pictures may have been moved.
pub fn open_index(path: &Path, folder: Option<&Path>) -> Result<PictureIndex, Failure> {
    if !path.exists() {
        return Err(Failure::usage(format!(
            "{}: there is no such index; make one with `anchorhood index`",
            path.display()
        )));
    }
    let mut index = PictureIndex::load(path)?;
    warn_unchecked(index.checked(), path);
    if let Some(folder) = folder {
        index.moved_to(folder);
    }
    Ok(index)
}

/// Names pictures that were to be shown and are gone.
pub fn warn_of_gone(gone: &[String]) {
    for name in gone.iter().take(10) {
        eprintln!("warning: {name}: the picture is gone; its place on the sheet is empty");
    }
    if gone.len() > 10 {
        eprintln!("warning: and {} more", gone.len() - 10);
    }
}

/// Runs the command.
pub fn run(args: &NeighboursArgs) -> Result<(), Failure> {
    if let Some(sheet) = &args.sheet {
        check_output(sheet, args.overwrite)?;
    }
    let index = open_index(&args.index, args.folder.as_deref())?;
    let model = args.model.load()?;
    index.check_model(&model)?;
    if !args.query.exists() {
        let query = args.query.display();
        return Err(Failure::usage(format!("{query}: there is no such picture")));
    }
    let k = args.k as usize;
    if k > index.len() {
        eprintln!(
            "warning: {k} neighbours were asked for, and the index has {} pictures; these are all",
            index.len()
        );
    }
    let device = device::open(&args.machine.machine()?)?;
    let mut embedder = model.embedder(&device, 1, index.parts().layer.as_deref())?;
    let vector = embedder.embed_file(&args.query)?;
    let hits = match args.exact {
        true => index.nearest_exactly(&vector, k)?,
        false => index.nearest(&vector, k)?,
    };
    if let Some(path) = &args.sheet {
        let mut sheet = Sheet::new(args.tile.into());
        sheet.push_file(&args.query, None, true);
        let shown = hits.iter().map(|h| (h.index, Some(h.similarity)));
        let shown: Vec<_> = shown.collect();
        warn_of_gone(&sheet.push_indexed(&index, &shown));
        sheet.save(path)?;
    }
    print(args, &index, &hits)
}

fn print(args: &NeighboursArgs, index: &PictureIndex, hits: &[Hit]) -> Result<(), Failure> {
    let recall = match args.exact {
        true => 1.0,
        false => index.recall(),
    };
    if args.json {
        let neighbours: Vec<_> = hits
            .iter()
            .map(|h| {
                json!({
                    "path": index.name(h.index),
                    "similarity": h.similarity,
                    "label": index.parts().classes[h.index],
                })
            })
            .collect();
        let object = json!({
            "query": args.query.display().to_string(),
            "folder": index.parts().folder.display().to_string(),
            "recall": recall,
            "neighbours": neighbours,
        });
        return output::line(&object.to_string());
    }
    for hit in hits {
        let gone = match about_picture(&index.picture(hit.index)).is_some() {
            true => "",
            false => "  (the picture is gone)",
        };
        let name = index.name(hit.index);
        output::line(&format!("{:.4}  {name}{gone}", hit.similarity))?;
    }
    if recall < 1.0 {
        eprintln!(
            "searched by clusters, which finds {:.1}% of the true nearest; --exact looks at all",
            recall * 100.0
        );
    }
    Ok(())
}
