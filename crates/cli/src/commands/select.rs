//! `anchorhood select`: diverse pictures of an index, to be labelled first.

use std::path::{Path, PathBuf};

use anchorhood::{Chosen, Index};
use anchorhood_report::Shown;
use anchorhood_storage::read_text_at_most;
use clap::Parser;
use serde_json::json;

use crate::args::model::io;
use crate::commands::indexed::{IndexedArgs, JobArgs, drawn};
use crate::commands::listing::{Listed, ListingArgs};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::grouped;

/// More than a line for each of ten million pictures.
const MOST_BYTES: u64 = 1 << 30;

#[derive(Debug, Parser)]
#[command(after_help = help!("select"))]
pub struct SelectArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// How many.
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Pictures that are labelled already, a path a line (of a CSV file the first column): they
    /// count as chosen.
    #[arg(long, value_name = "LIST")]
    pub already: Option<PathBuf>,
    #[command(flatten)]
    pub listing: ListingArgs,
}

pub fn run(args: &SelectArgs) -> Result<(), Failure> {
    args.listing.check()?;
    let index = args.pictures.open(&JobArgs::default())?;
    let already = match &args.already {
        Some(list) => chosen_already(list, &index)?,
        None => vec![],
    };
    let count = args.count as usize;
    let bar = Bar::new("choosing", false);
    let chosen = index.select(count, &already, &mut drawn(&bar))?;
    drop(bar);
    let listed = |one: &Chosen| Listed {
        shown: Shown::with_bar(one.index, one.similarity),
        object: json!({ "path": index.name(one.index), "similarity": one.similarity }),
        line: index.name(one.index).into(),
    };
    args.listing.show(&index, &chosen.iter().map(listed).collect::<Vec<_>>())?;
    sum_up(&index, &chosen, already.len(), count);
    Ok(())
}

/// The pictures that a list names: lines, or the first column of a CSV file.
fn chosen_already(list: &Path, index: &Index) -> Result<Vec<usize>, Failure> {
    let text = read_text_at_most(list, MOST_BYTES).map_err(io(list))?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut names = vec![];
    for (line, record) in reader.records().enumerate() {
        let record = record.map_err(|e| usage!("{}: {e}", list.display()))?;
        let name = record.get(0).unwrap_or_default();
        if !name.trim().is_empty() && (line, name.trim()) != (0, "path") {
            names.push(name.to_string());
        }
    }
    index.numbers(&names).map_err(|why| usage!("--already {}: {why}", list.display()))
}

fn sum_up(index: &Index, chosen: &[Chosen], already: usize, asked: usize) {
    if chosen.len() < asked {
        let all = grouped(index.len());
        eprintln!(
            "warning: {asked} pictures were asked for, and the index has {all}; these are all that \
             are left"
        );
    }
    let last = chosen.last().and_then(|one| one.similarity);
    let reach =
        last.map(|s| format!("; every other picture is at least {s:.2} similar to one of them"));
    let before = match already {
        0 => String::new(),
        already => format!(" beside {} that were", grouped(already)),
    };
    eprintln!(
        "{} of {} pictures chosen{before}{}",
        grouped(chosen.len()),
        grouped(index.len()),
        reach.unwrap_or_default()
    );
}
