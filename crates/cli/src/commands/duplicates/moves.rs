//! The copies moved aside, and put back.

use std::path::{Path, PathBuf};

use anchorhood::{FoundDuplicates, undo_moves};
use anchorhood_data::name_of;
use anchorhood_index::{SearchError, SetAside, UNDO_FILE};
use serde_json::json;

use super::DuplicatesArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{counted, either, grouped};

/// Moves all but the kept one of each group into a folder, or says what would be moved.
pub fn move_others(
    args: &DuplicatesArgs,
    found: &FoundDuplicates,
    folder: &Path,
) -> Result<(), Failure> {
    let total = found.copies();
    if total == 0 {
        return Ok(());
    }
    if args.dry_run {
        let would = found.would_move_to(folder)?;
        print_moves(&would.moved, args.listing.json)?;
        eprintln!(
            "{} pictures would be moved to {}; nothing was moved",
            grouped(would.moved.len()),
            folder.display()
        );
        return left_behind(&would);
    }
    let bar = Bar::new("moving", false);
    let moved = found.move_with_progress(folder, &mut |done| bar.at(done, total));
    drop(bar);
    let moved = moved?;
    if !moved.moved.is_empty() {
        eprintln!(
            "{} pictures were moved to {}; `anchorhood duplicates --undo {}` puts them back",
            grouped(moved.moved.len()),
            folder.display(),
            folder.join(UNDO_FILE).display()
        );
    }
    left_behind(&moved)
}

fn print_moves(moves: &[(PathBuf, PathBuf)], json: bool) -> Result<(), Failure> {
    for (from, to) in moves {
        let [from, to] = [from, to].map(|path| name_of(path.as_os_str()));
        let text = || format!("move  {from}\n   to {to}");
        either(json, || json!({ "from": from, "to": to }), text)?;
    }
    Ok(())
}

/// Names the images that are not moved.
fn left_behind(moved: &SetAside) -> Result<(), Failure> {
    for (path, why) in &moved.left {
        eprintln!("warning: {}: not moved: {why}", path.display());
    }
    match moved.left.len() {
        0 => Ok(()),
        left => Err(Failure::failed(format!(
            "{} could not be moved, and stay where they are",
            counted(left, "picture", "pictures")
        ))),
    }
}

/// Puts back what a record says was moved.
pub fn put_back(record: &Path, trust: bool) -> Result<(), Failure> {
    let done = undo_moves(record, trust);
    let why = done.as_ref().err().and_then(|error| error.inner().downcast_ref());
    if let Some(SearchError::UnconfirmedRecord { moves, .. }) = why {
        print_moves(moves, false)?;
    }
    let done = done?;
    for (path, why) in &done.left {
        eprintln!("warning: {}: not put back: {why}", path.display());
    }
    eprintln!(
        "{} pictures were put back, {} were in their place already",
        grouped(done.moved),
        grouped(done.there)
    );
    match done.left.len() {
        0 => Ok(()),
        left => Err(Failure::failed(format!(
            "{}: {} pictures could not be put back",
            record.display(),
            grouped(left)
        ))),
    }
}
