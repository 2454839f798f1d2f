//! Images that are one: found, moved aside, and put back.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anchorhood_index::curate::{DuplicateOptions, DuplicateStage, Duplicates};
use anchorhood_index::{
    CopySearch, Decisions, PutBack, RecordKey, SetAside, ToMove, decide_not_duplicates, set_aside,
    undo, would_set_aside,
};
use anchorhood_storage::{Disk, data_folder};

use crate::{Error, Index};

/// Looks for images that are one: among those of an index, or of these with those of another.
pub struct DuplicateSearch<'a> {
    search: CopySearch<'a>,
    index: &'a Index,
    decisions: Option<PathBuf>,
}

impl<'a> DuplicateSearch<'a> {
    /// Among the images of an index; with `against`, those of it that are also in that one, whose
    /// numbers come after this one's and which are kept.
    pub fn new(index: &'a Index, against: Option<&'a Index>) -> Result<Self, Error> {
        let search = CopySearch::new(index.parts(), against.map(Index::parts))?;
        Ok(DuplicateSearch { search, index, decisions: Decisions::file_of_user() })
    }

    /// With the file of the user's decisions; the one in the user's data folder where nobody says.
    pub fn decisions(self, file: impl Into<PathBuf>) -> Self {
        DuplicateSearch { decisions: Some(file.into()), ..self }
    }

    /// Remembers that two images, by name or path, are no duplicates whatever they look like. Gives
    /// the file that keeps it, and whether that is new.
    pub fn not_duplicates(&self, a: &str, b: &str) -> Result<(&Path, bool), Error> {
        let path = self.decisions.as_deref().ok_or_else(|| {
            Error::usage(
                "--not: neither XDG_DATA_HOME nor HOME says where to remember it; name a file by \
                 --decisions",
            )
        })?;
        let search = &self.search;
        let decided = search.decided(search.number(a)?, search.number(b)?)?;
        Ok((path, decide_not_duplicates(&Disk::shared(), path, decided)?))
    }

    /// Whether images could be moved to a folder, to be asked before all is compared.
    pub fn check_folder(&self, folder: &Path) -> Result<(), Error> {
        let folders = self.search.folders();
        would_set_aside(&Disk::shared(), &[], &folders, folder, known_key()?.as_ref())?;
        Ok(())
    }

    /// An image as it is shown.
    pub fn name(&self, number: usize) -> String {
        self.search.name(number)
    }

    /// The images, one after the other as they are numbered, and their indices.
    pub fn images(&self) -> &CopySearch<'a> {
        &self.search
    }

    /// Compares them; pixels decide. `progress` hears what is done, how much, and of how much.
    pub fn find(
        &self,
        options: &DuplicateOptions,
        progress: &(dyn Fn(DuplicateStage, usize, usize) + Sync),
    ) -> Result<FoundDuplicates, Error> {
        let decisions = match &self.decisions {
            Some(path) => Decisions::load(&Disk, path)?,
            None => Decisions::default(),
        };
        let device = self.index.device();
        let find = || self.search.find(device, options, &decisions, progress);
        let found = device.within(find)?;
        let (to_move, sources) = (self.search.to_move(&found.groups), self.search.folders());
        Ok(FoundDuplicates { found, to_move, sources })
    }
}

/// Groups of images that are one, with what is needed to move all but the kept one of each.
pub struct FoundDuplicates {
    found: Duplicates,
    to_move: Vec<ToMove>,
    sources: Vec<PathBuf>,
}

impl Deref for FoundDuplicates {
    type Target = Duplicates;

    fn deref(&self) -> &Duplicates {
        &self.found
    }
}

impl fmt::Debug for FoundDuplicates {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FoundDuplicates({} groups)", self.groups.len())
    }
}

impl FoundDuplicates {
    /// How many images would be moved.
    pub fn copies(&self) -> usize {
        self.to_move.len()
    }

    /// Moves all but the kept image of each group to a folder, made where there is none, with a
    /// record `undo.jsonl` of what was moved. Nothing is deleted or overwritten; a file that is not
    /// what was compared any more is left where it is.
    pub fn move_to(&self, folder: impl AsRef<Path>) -> Result<SetAside, Error> {
        self.move_with_progress(folder.as_ref(), &mut |_| {})
    }

    /// The same; `progress` hears how many are moved.
    pub fn move_with_progress(
        &self,
        folder: &Path,
        progress: &mut dyn FnMut(usize),
    ) -> Result<SetAside, Error> {
        let (disk, key) = (Disk::shared(), RecordKey::of_user()?);
        Ok(set_aside(&disk, &self.to_move, &self.sources, folder, &key, progress)?)
    }

    /// What would be moved where; nothing is.
    pub fn would_move_to(&self, folder: impl AsRef<Path>) -> Result<SetAside, Error> {
        let (disk, key) = (Disk::shared(), known_key()?);
        let folder = folder.as_ref();
        Ok(would_set_aside(&disk, &self.to_move, &self.sources, folder, key.as_ref())?)
    }
}

/// Puts back what a record `undo.jsonl` says was moved. One that nothing shows to be the user's is
/// an error, unless it is trusted: then no link is followed.
pub fn undo_moves(record: impl AsRef<Path>, trust: bool) -> Result<PutBack, Error> {
    let key = RecordKey::of_user_if_there()?;
    Ok(undo(&Disk, record.as_ref(), key.as_ref(), trust)?)
}

/// The key by which a record would be signed, where it is there already; an error where there can
/// be none.
fn known_key() -> Result<Option<RecordKey>, Error> {
    match data_folder() {
        Some(_) => Ok(RecordKey::of_user_if_there()?),
        None => Ok(Some(RecordKey::of_user()?)),
    }
}
