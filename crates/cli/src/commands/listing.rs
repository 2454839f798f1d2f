//! Pictures that a command names: a line each, and a contact sheet of them.

use std::path::{Path, PathBuf};

use anchorhood::Index;
use anchorhood_report::{Sheet, Shown};
use clap::Args;
use serde_json::Value;

use crate::args::model::check_output;
use crate::terminal::failure::Failure;
use crate::terminal::output::either;

/// Flags of commands that name pictures.
#[derive(Debug, Args)]
pub struct ListingArgs {
    /// A JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Also draw them as a contact sheet.
    #[arg(long, value_name = "FILE.png")]
    pub sheet: Option<PathBuf>,
    /// Replace the sheet if there is one.
    #[arg(long)]
    pub overwrite: bool,
}

impl ListingArgs {
    /// The sheet must not be there yet, unless that was said.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.sheet {
            Some(sheet) => check_output(sheet, self.overwrite),
            None => Ok(()),
        }
    }

    /// Draws the sheet where one is wanted, and writes a line for each picture.
    pub fn show(&self, index: &Index, listed: &[Listed]) -> Result<(), Failure> {
        if let Some(path) = &self.sheet {
            draw(path, 112, index, listed.iter().map(|one| one.shown.clone()))?;
        }
        print(listed, self.json)
    }
}

/// A picture that is named.
pub struct Listed {
    /// On a sheet.
    pub shown: Shown,
    /// To programs.
    pub object: Value,
    /// To people.
    pub line: String,
}

/// Writes a line for each picture.
pub fn print(listed: &[Listed], json: bool) -> Result<(), Failure> {
    listed.iter().try_for_each(|one| either(json, || one.object.clone(), || one.line.clone()))
}

/// The bytes of a CSV file.
pub fn csv_of<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<Vec<u8>, Failure> {
    let failed = |e: csv::Error| Failure::failed(e.to_string());
    let mut csv = csv::Writer::from_writer(vec![]);
    csv.write_record(header).map_err(failed)?;
    for row in rows {
        csv.write_record(row).map_err(failed)?;
    }
    csv.into_inner().map_err(|e| Failure::failed(e.to_string()))
}

/// Draws pictures of an index, so many pixels a side.
pub fn draw(
    path: &Path,
    tile: usize,
    index: &Index,
    shown: impl Iterator<Item = Shown>,
) -> Result<(), Failure> {
    let mut sheet = Sheet::new(tile);
    warn_of_gone(&sheet.push_shown(index.parts(), &shown.collect::<Vec<_>>()));
    Ok(sheet.save(path)?)
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
