//! `anchorhood cluster`: the pictures of an index in groups, each with a contact sheet.

use std::path::{Path, PathBuf};

use anchorhood::{Cluster, Clustering, GraphOptions, Index};
use anchorhood_report::{Sheet, Shown};
use anchorhood_storage::{AtomicFile, AtomicFolder, Disk, FileSystem, folder_of};
use clap::{Parser, ValueEnum};
use serde_json::json;

use crate::args::model::io;
use crate::commands::indexed::{IndexedArgs, JobArgs, drawn};
use crate::commands::listing::{csv_of, warn_of_gone};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{either, grouped};

#[derive(Debug, Parser)]
#[command(after_help = help!("cluster"))]
pub struct ClusterArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// The folder to write; it must not be there yet.
    #[arg(long, short, value_name = "FOLDER", default_value = "clusters")]
    pub output: PathBuf,
    /// How many clusters (kmeans).
    #[arg(short, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    /// How clusters are found.
    #[arg(long, value_enum, default_value_t = By::Kmeans)]
    pub method: By,
    /// Pictures are joined where they are at least so similar (graph).
    #[arg(long, default_value_t = 0.8, value_name = "SIMILARITY")]
    pub above: f32,
    /// Decides where kmeans begins.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Pictures on a sheet.
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub shown: usize,
    /// A JSON object for each cluster on stdout.
    #[arg(long)]
    pub json: bool,
}

/// How clusters are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// k clusters around centres.
    Kmeans,
    /// Connected groups of mutual neighbours.
    Graph,
}

pub fn run(args: &ClusterArgs) -> Result<(), Failure> {
    if args.output.exists() {
        return Err(usage!(
            "{}: exists already; choose another folder with -o",
            args.output.display()
        ));
    }
    let index = args.pictures.open_on_device(&JobArgs::default())?;
    let by = match args.method {
        By::Kmeans => Clustering::KMeans { clusters: args.k as usize, seed: args.seed },
        By::Graph => Clustering::Graph(GraphOptions { above: args.above, ..Default::default() }),
    };
    let bar = (args.method == By::Graph).then(|| Bar::new("comparing", false));
    let found = match &bar {
        Some(bar) => index.cluster(&by, &mut drawn(bar)),
        None => index.cluster(&by, &mut |_| {}),
    };
    drop(bar);
    let found = found?;
    if found.is_empty() {
        return Err(failed!(
            "no {} pictures are each other's neighbours at {} or above; lower --above",
            GraphOptions::default().least,
            args.above
        ));
    }
    let gone = write(args, &index, &found)?;
    warn_of_gone(&gone);
    print(args, &index, &found)
}

/// Writes the folder aside and puts it in its place when it is whole; gives the pictures that are
/// gone.
fn write(args: &ClusterArgs, index: &Index, groups: &[Cluster]) -> Result<Vec<String>, Failure> {
    let made = Disk.create_folders(folder_of(&args.output));
    let folder = made.and_then(|()| AtomicFolder::create(&Disk, &args.output));
    let folder = folder.map_err(io(&args.output))?;
    let gone = write_into(folder.path(), args, index, groups)?;
    folder.finish().map_err(io(&args.output))?;
    Ok(gone)
}

fn write_into(
    folder: &Path,
    args: &ClusterArgs,
    index: &Index,
    groups: &[Cluster],
) -> Result<Vec<String>, Failure> {
    let rows = (1..).zip(groups).flat_map(|(number, group)| {
        let row = move |(i, similarity): &(usize, f32)| {
            [index.name(*i).into(), format!("{number}"), similarity.to_string()]
        };
        group.iter().map(row)
    });
    let table = folder.join("clusters.csv");
    let csv = csv_of(["path", "cluster", "similarity"], rows)?;
    AtomicFile::write(&table, &csv).map_err(io(&table))?;
    let mut gone = vec![];
    let bar = Bar::new("drawing sheets", false);
    for (number, group) in groups.iter().enumerate() {
        let shown = group.iter().take(args.shown);
        let shown: Vec<Shown> = shown.map(|(i, s)| Shown::with_bar(*i, *s)).collect();
        let mut sheet = Sheet::new(96);
        gone.extend(sheet.push_shown(index.parts(), &shown));
        sheet.save(&folder.join(sheet_name(number)))?;
        bar.at(number + 1, groups.len());
    }
    Ok(gone)
}

fn sheet_name(number: usize) -> String {
    format!("cluster-{:03}.png", number + 1)
}

fn print(args: &ClusterArgs, index: &Index, groups: &[Cluster]) -> Result<(), Failure> {
    for (number, group) in groups.iter().enumerate() {
        let mean = group.iter().map(|(_, s)| f64::from(*s)).sum::<f64>() / group.len() as f64;
        let typical = index.name(group[0].0);
        let sheet = args.output.join(sheet_name(number));
        let (number, size) = (number + 1, group.len());
        let object = || {
            json!({
                "cluster": number, "pictures": size, "similarity": mean, "typical": typical,
                "sheet": sheet.display().to_string(),
            })
        };
        let count = grouped(size);
        let text = || format!("{number:>4}  {count:>8} pictures  similarity {mean:.3}  {typical}");
        either(args.json, object, text)?;
    }
    let inside: usize = groups.iter().map(Vec::len).sum();
    eprintln!(
        "{} of {} pictures in {} clusters; sheets and clusters.csv are in {}",
        grouped(inside),
        grouped(index.len()),
        grouped(groups.len()),
        args.output.display()
    );
    Ok(())
}
