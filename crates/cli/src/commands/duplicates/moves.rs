//! The copies moved aside, and put back.

use std::path::{Path, PathBuf};

use anchorhood::Duplicates;
use anchorhood_data::name_of;
use anchorhood_index::{
    CopySearch, RecordKey, SearchError, SetAside, UNDO_FILE, set_aside, undo, would_set_aside,
};
use anchorhood_storage::{Disk, data_folder};
use serde_json::json;

use super::DuplicatesArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{counted, either, grouped};

/// Moves all but the kept one of each group into a folder, or says what would be moved.
pub fn move_others(
    args: &DuplicatesArgs,
    search: &CopySearch,
    found: &Duplicates,
    folder: &Path,
) -> Result<(), Failure> {
    let (disk, sources) = (Disk::shared(), search.folders());
    let images = search.to_move(&found.groups);
    if images.is_empty() {
        return Ok(());
    }
    if args.dry_run {
        let would = would_set_aside(&disk, &images, &sources, folder, known_key()?.as_ref())?;
        print_moves(&would.moved, args.listing.json)?;
        eprintln!(
            "{} pictures would be moved to {}; nothing was moved",
            grouped(would.moved.len()),
            folder.display()
        );
        return left_behind(&would);
    }
    let key = RecordKey::of_user()?;
    let bar = Bar::new("moving", false);
    let total = images.len();
    let moved = set_aside(&disk, &images, &sources, folder, &key, &mut |done| bar.at(done, total));
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

/// The key by which a record would be signed, where it is there already; an error where there can
/// be none.
pub fn known_key() -> Result<Option<RecordKey>, Failure> {
    match data_folder() {
        Some(_) => Ok(RecordKey::of_user_if_there()?),
        None => Ok(Some(RecordKey::of_user()?)),
    }
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
    let key = RecordKey::of_user_if_there()?;
    let done = undo(&Disk, record, key.as_ref(), trust);
    if let Err(SearchError::UnconfirmedRecord { moves, .. }) = &done {
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
