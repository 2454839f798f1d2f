//! Pictures that a command names: a line each, and a contact sheet of them.

use std::path::{Path, PathBuf};

use anchorhood::search::{PictureIndex, Sheet, Shown};
use clap::Args;

use crate::args::model::check_output;
use crate::terminal::failure::Failure;

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

    /// Draws the sheet where one is wanted.
    pub fn draw(&self, index: &PictureIndex, shown: &[Shown]) -> Result<(), Failure> {
        match &self.sheet {
            Some(path) => draw(path, 112, index, shown),
            None => Ok(()),
        }
    }
}

/// Draws pictures of an index, so many pixels a side.
pub fn draw(
    path: &Path,
    tile: usize,
    index: &PictureIndex,
    shown: &[Shown],
) -> Result<(), Failure> {
    let mut sheet = Sheet::new(tile);
    warn_of_gone(&sheet.push_shown(index, shown));
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
