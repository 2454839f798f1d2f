//! What the user has decided about pairs of images.

use anchorhood_index::{CopySearch, Decisions, decide_not_duplicates};
use anchorhood_storage::Disk;

use super::DuplicatesArgs;
use crate::terminal::failure::Failure;

/// The user's decisions, with those that are said now.
pub fn decisions(args: &DuplicatesArgs, search: &CopySearch) -> Result<Decisions, Failure> {
    let Some(path) = args.decisions.clone().or_else(Decisions::file_of_user) else {
        return match args.not.is_empty() {
            true => Ok(Decisions::default()),
            false => Err(Failure::usage(
                "--not: neither XDG_DATA_HOME nor HOME says where to remember it; name a file by --decisions",
            )),
        };
    };
    for pair in args.not.chunks_exact(2) {
        let decided = search.decided(search.number(&pair[0])?, search.number(&pair[1])?)?;
        let new = decide_not_duplicates(&Disk::shared(), &path, decided)?;
        let already = if new { "" } else { " already" };
        eprintln!(
            "{} and {} are no duplicates: remembered{already} in {}",
            pair[0],
            pair[1],
            path.display()
        );
    }
    Ok(Decisions::load(&Disk, &path)?)
}
