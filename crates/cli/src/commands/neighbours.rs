//! `anchorhood neighbours`: the pictures of an index, or of folders, that are most like a picture.

use std::path::{Path, PathBuf};

use anchorhood::{Index, SearchResult};
use anchorhood_data::{about_picture, name_of};
use anchorhood_index::IndexedFolder;
use anchorhood_report::{Sheet, Shown};
use clap::Parser;
use serde_json::json;

use crate::args::device;
use crate::args::model::MachineArgs;
use crate::args::pictures::{ModelFlag, queries};
use crate::commands::indexed::{JobArgs, open_or_make};
use crate::commands::listing::{ListingArgs, warn_of_gone};
use crate::terminal::failure::Failure;
use crate::terminal::output;

/// Pixels a side of a picture on the sheet.
const TILE: usize = 128;

#[derive(Debug, Parser)]
#[command(after_help = help!("neighbours"))]
pub struct NeighboursArgs {
    /// An index made by `anchorhood index`, or a folder of pictures.
    #[arg(value_name = "INDEX")]
    pub index: PathBuf,
    /// The pictures to compare with, or folders of them; they need not be in the index.
    #[arg(value_name = "QUERY", required = true)]
    pub queries: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// How many.
    #[arg(short, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    #[command(flatten)]
    pub listing: ListingArgs,
    /// Look at all pictures even in an index divided into clusters.
    #[arg(long)]
    pub exact: bool,
    /// Where an index's pictures are now, if the folder was moved; of several folders LABEL=FOLDER.
    #[arg(long)]
    pub folder: Vec<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

pub fn run(args: &NeighboursArgs) -> Result<(), Failure> {
    args.listing.check()?;
    let (place, job) = (std::slice::from_ref(&args.index), JobArgs::default());
    let index = open_or_make(place, &args.model, &args.folder, &job, &args.machine)?;
    index.needed_model()?;
    let queries = queries(&args.queries)?;
    if args.k as usize > index.len() {
        eprintln!(
            "warning: {} neighbours were asked for, and the index has {} pictures; these are all",
            args.k,
            index.len()
        );
    }
    let index = index.on(device::open(&args.machine.machine()?)?);
    let found = find_all(args, &index, &queries)?;
    if let Some(path) = &args.listing.sheet {
        draw(&index, &found)?.save(path)?;
    }
    for (query, hits) in &found {
        print(args, &index, query, hits, queries.len() > 1)?;
    }
    let recall = recall(args, &index);
    if recall < 1.0 && !args.listing.json {
        eprintln!(
            "searched by clusters, which finds {:.1}% of the true nearest; --exact looks at all",
            recall * 100.0
        );
    }
    Ok(())
}

/// A query, and the pictures most like it.
type Found<'a> = (&'a Path, Vec<SearchResult>);

/// The neighbours of each query. Of several, one that cannot be read is passed over.
fn find_all<'a>(
    args: &NeighboursArgs,
    index: &Index,
    queries: &'a [PathBuf],
) -> Result<Vec<Found<'a>>, Failure> {
    let (mut found, mut failed) = (vec![], None);
    let mut embedder = index.embedder()?;
    for query in queries {
        let vector = match embedder.embed_file(query) {
            Ok(vector) => vector,
            Err(error) => {
                if queries.len() > 1 {
                    eprintln!("warning: {error}");
                }
                failed = Some(error);
                continue;
            }
        };
        let hits = match args.exact {
            true => index.search_all(&vector, args.k as usize)?,
            false => index.search(&vector, args.k as usize)?,
        };
        found.push((query.as_path(), hits));
    }
    match failed {
        Some(error) if found.is_empty() => Err(error.into()),
        Some(_) | None => Ok(found),
    }
}

/// Each query framed, then its neighbours; of several, each in rows of its own.
fn draw(index: &Index, found: &[Found]) -> Result<Sheet, Failure> {
    let mut sheet = Sheet::new(TILE);
    if let [_, (_, hits), ..] = found {
        sheet = sheet.with_columns(hits.len() + 1);
    }
    for (query, hits) in found {
        sheet.push_file(query, None, true);
        let shown: Vec<_> = hits.iter().map(|h| Shown::with_bar(h.number, h.similarity)).collect();
        warn_of_gone(&sheet.push_shown(index.parts(), &shown));
    }
    Ok(sheet)
}

fn recall(args: &NeighboursArgs, index: &Index) -> f64 {
    if args.exact { 1.0 } else { index.parts().recall() }
}

fn print(
    args: &NeighboursArgs,
    index: &Index,
    query: &Path,
    hits: &[SearchResult],
    several: bool,
) -> Result<(), Failure> {
    if args.listing.json {
        return output::line(&object(args, index, query, hits).to_string());
    }
    if several {
        output::line(&format!("{}:", name_of(query.as_os_str())))?;
    }
    for hit in hits {
        let gone = match about_picture(&hit.path).is_some() {
            true => "",
            false => "  (the picture is gone)",
        };
        output::line(&format!("{hit}{gone}"))?;
    }
    Ok(())
}

fn object(
    args: &NeighboursArgs,
    index: &Index,
    query: &Path,
    hits: &[SearchResult],
) -> serde_json::Value {
    let neighbour =
        |h: &SearchResult| json!({ "path": h.name, "similarity": h.similarity, "label": h.label });
    let folders = index.parts().folders();
    let path = |f: &IndexedFolder| name_of(f.path.as_os_str());
    json!({
        "query": name_of(query.as_os_str()),
        "folder": match &folders[..] {
            [one] => json!(path(one)),
            several => several.iter().map(|f| (f.label.clone(), json!(path(f)))).collect(),
        },
        "recall": recall(args, index),
        "neighbours": hits.iter().map(neighbour).collect::<Vec<_>>(),
    })
}
