//! Where CIFAR's files lie: unpacked in a folder, or inside a `.tar.gz`.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anchorhood_storage::{open_regular, read_at_most, take_at_most};
use flate2::read::GzDecoder;

use super::kind::{FORMS, Form};
use crate::DataError;

/// More than any file of CIFAR (CIFAR-100's python file has 155 MB).
const MOST_FILE_BYTES: u64 = 256 << 20;
/// More than any archive of CIFAR unpacks to.
const MOST_ARCHIVE_BYTES: u64 = 1 << 30;

/// A set of CIFAR files, and how they are written.
pub(super) struct Source {
    pub form: &'static Form,
    /// The folder or the archive, for messages.
    pub place: PathBuf,
    /// The files of an archive; a folder's stay on disk until they are asked for.
    unpacked: Option<HashMap<String, Vec<u8>>>,
}

impl Source {
    /// CIFAR in the folder `path`, in its official sub-folder, or in its official archive there; or
    /// the archive `path`.
    pub fn find(path: &Path, wanted: impl Fn(&Form) -> bool) -> Result<Option<Source>, DataError> {
        if path.is_file() {
            return if is_archive(path) { unpack(path, &wanted) } else { Ok(None) };
        }
        if let Some(found) = Self::find_folder(path, &wanted) {
            return Ok(Some(found));
        }
        for form in FORMS.iter().filter(|form| wanted(form)) {
            let archive = path.join(form.archive);
            if archive.is_file() {
                return unpack(&archive, &wanted);
            }
        }
        Ok(None)
    }

    /// Unpacked CIFAR in the folder `path` or in its official sub-folder.
    pub fn find_folder(path: &Path, wanted: impl Fn(&Form) -> bool) -> Option<Source> {
        for form in FORMS.iter().filter(|form| wanted(form)) {
            for folder in [path.to_owned(), path.join(form.folder)] {
                if form.marks.iter().all(|file| folder.join(file).is_file()) {
                    return Some(Source { form, place: folder, unpacked: None });
                }
            }
        }
        None
    }

    /// A file's path as messages name it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.place.join(file)
    }

    /// The bytes of `file`. Refuses a length other than `expected` before reading.
    pub fn read(&mut self, file: &str, expected: Option<u64>) -> Result<Vec<u8>, DataError> {
        let path = self.path(file);
        let check = |actual: u64| match expected {
            Some(expected) if expected != actual => {
                let found = format!("expected {expected} bytes, found {actual}");
                let reason = "the file is damaged or incomplete, fetch it again";
                Err(DataError::bad(&path, format!("{found}; {reason}")))
            }
            _ => Ok(()),
        };
        let missing = || DataError::missing(&self.place, file);
        if let Some(files) = &mut self.unpacked {
            let bytes = files.remove(file).ok_or_else(missing)?;
            check(bytes.len() as u64)?;
            return Ok(bytes);
        }
        if !path.is_file() {
            return Err(missing());
        }
        let io = |e| DataError::io(&path, e);
        check(path.metadata().map_err(io)?.len())?;
        read_at_most(&path, MOST_FILE_BYTES).map_err(io)
    }
}

pub(super) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.ends_with(".tar.gz") || name.ends_with(".tgz")
}

/// Reads the files of the first wanted form in an archive; other members are passed over.
fn unpack(path: &Path, wanted: &impl Fn(&Form) -> bool) -> Result<Option<Source>, DataError> {
    let bad = |e: std::io::Error| {
        DataError::bad(path, format!("the archive cannot be read: {e}; fetch it again"))
    };
    let file = open_regular(path).map_err(|e| DataError::io(path, e))?;
    let limited = GzDecoder::new(std::io::BufReader::new(file)).take(MOST_ARCHIVE_BYTES);
    let mut archive = tar::Archive::new(limited);
    let mut found: Option<&'static Form> = None;
    let mut files = HashMap::new();
    for entry in archive.entries().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        let member = entry.path().map_err(bad)?.into_owned();
        let name = |p: Option<&std::ffi::OsStr>| p.map(|n| n.to_string_lossy().into_owned());
        let (Some(file), Some(folder)) =
            (name(member.file_name()), name(member.parent().and_then(Path::file_name)))
        else {
            continue;
        };
        let form = FORMS.iter().find(|f| f.folder == folder && wanted(f));
        let Some(form) = form.filter(|f| found.is_none_or(|found| found.folder == f.folder)) else {
            continue;
        };
        if entry.header().entry_type().is_file() && form.knows(&file) {
            found = Some(form);
            let bytes = take_at_most(&mut entry, MOST_FILE_BYTES).map_err(bad)?;
            if (bytes.len() as u64) < entry.size() {
                return Err(bad(std::io::Error::other(format!("it ends inside {file}"))));
            }
            files.insert(file, bytes);
        }
    }
    Ok(found.map(|form| Source { form, place: path.into(), unpacked: Some(files) }))
}
