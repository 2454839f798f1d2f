//! Where a picture's own bytes lie: in a file of the folder, or in an archive there. Whatever an index, a name or a link says, only
//! pictures that were indexed are opened.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anchorhood_data::{archived_picture, picture_named};
use anchorhood_search::IndexedFolder;

pub(crate) const GONE: &str = "the picture is gone";
/// A picture file larger than this is not sent whole.
const LARGEST_FILE: u64 = 64 << 20;

/// A picture's file, or its part of an archive.
#[derive(Debug)]
pub(crate) struct Original {
    /// As decoders take it: a path that may go on inside an archive.
    pub path: PathBuf,
    /// How many bytes.
    pub length: u64,
    /// When the file, or the archive, was written.
    pub written: Option<SystemTime>,
    file: PathBuf,
    start: u64,
}

impl Original {
    /// Picture `i` of those named so, in folders that are without links.
    pub fn find(folders: &[IndexedFolder], names: &[String], i: usize) -> Result<Original, String> {
        let own = |f| Some((f, IndexedFolder::within(f, &names[i])?));
        let (folder, within) = folders.iter().find_map(own).ok_or(GONE)?;
        let named = picture_named(&folder.path, within);
        let found = match named.canonicalize() {
            Ok(path) => Original::alone(folder, names, &named, path)?,
            Err(_) => Original::in_archive(&folder.path, named)?,
        };
        match found.length > LARGEST_FILE {
            true => Err("the picture's file is too large to be sent".into()),
            false => Ok(found),
        }
    }

    /// A file: the one that the name says, or where that is a link, that of another picture of the index.
    fn alone(
        folder: &IndexedFolder,
        names: &[String],
        named: &Path,
        path: PathBuf,
    ) -> Result<Original, String> {
        let Ok(inside) = path.strip_prefix(&folder.path) else {
            return Err("the picture lies outside the indexed folder".into());
        };
        let is = |name: &String| folder.within(name).is_some_and(|n| Path::new(n) == inside);
        if path != named && !names.iter().any(is) {
            return Err("the picture is a link to a file that is not in the index".into());
        }
        let about = path.metadata().map_err(|_| GONE)?;
        // Opening what is no file could wait for ever.
        if !about.is_file() {
            return Err(GONE.into());
        }
        Ok(Original {
            length: about.len(),
            written: about.modified().ok(),
            file: path.clone(),
            path,
            start: 0,
        })
    }

    fn in_archive(root: &Path, named: PathBuf) -> Result<Original, String> {
        let (archive, start, length) = archived_picture(&named).ok_or(GONE)?;
        let file = archive.canonicalize().map_err(|_| GONE)?;
        if !file.starts_with(root) {
            return Err("the picture lies outside the indexed folder".into());
        }
        if file != archive {
            return Err("the picture is in an archive that is a link".into());
        }
        let about = file.metadata().map_err(|_| GONE)?;
        Ok(Original {
            path: named,
            length,
            written: about.modified().ok(),
            file,
            start,
        })
    }

    /// Its bytes.
    pub fn open(&self) -> Result<Take<File>, String> {
        let mut file = File::open(&self.file).map_err(|_| GONE)?;
        self.rewind(&mut file)?;
        Ok(file.take(self.length))
    }

    /// Back to the first of its bytes.
    pub fn rewind(&self, file: &mut File) -> Result<(), String> {
        let sought = file.seek(SeekFrom::Start(self.start));
        sought.map(drop).map_err(|_| GONE.into())
    }
}
