//! Folders that are whole or not there: filled aside, then renamed.

use std::io;
use std::path::{Path, PathBuf};

use crate::{FileSystem, Hold, Kind, folder_of, leftovers};

/// A folder being filled aside. It takes its place by [`finish`](AtomicFolder::finish); dropped
/// before that, nothing is left of it. Whoever writes into it syncs what he writes.
#[derive(Debug)]
pub struct AtomicFolder<'a> {
    disk: &'a dyn FileSystem,
    place: PathBuf,
    aside: PathBuf,
    /// As long as somebody is at it, nobody takes it for what a killed process left.
    held: Option<Box<dyn Hold>>,
    finished: bool,
}

impl<'a> AtomicFolder<'a> {
    /// Begins a folder that will be at `place`. What a killed process left of it is removed.
    pub fn create(disk: &'a dyn FileSystem, place: &Path) -> io::Result<Self> {
        leftovers::remove(place, disk);
        let aside = leftovers::aside(place);
        disk.create_folder(&aside)?;
        Ok(AtomicFolder {
            disk,
            place: place.into(),
            held: disk.hold_folder(&aside)?,
            aside,
            finished: false,
        })
    }

    /// Where it is filled.
    pub fn path(&self) -> &Path {
        &self.aside
    }

    /// Puts it in its place; [`io::ErrorKind::AlreadyExists`] where there is something.
    pub fn finish(mut self) -> io::Result<()> {
        let taken = || io::Error::from(io::ErrorKind::AlreadyExists);
        self.disk.sync_folder(&self.aside)?;
        if self.disk.kind(&self.place)? != Kind::Nothing {
            return Err(taken());
        }
        match self.disk.rename(&self.aside, &self.place) {
            // Another process was quicker.
            Err(_) if self.disk.exists(&self.place) => Err(taken()),
            other => other,
        }?;
        self.finished = true;
        self.disk.sync_folder(folder_of(&self.place))
    }
}

impl Drop for AtomicFolder<'_> {
    fn drop(&mut self) {
        self.held = None;
        if !self.finished {
            let _ = self.disk.remove_folder(&self.aside); // the first error is the one to tell
        }
    }
}
