//! Where CIFAR's files lie: unpacked in a folder, or inside a `.tar.gz`.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anchorhood_storage::{open_regular, read_at_most, take_at_most};
use flate2::read::GzDecoder;

use super::form::{FORMS, Form};
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

/// Whether `path` is an archive by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.ends_with(".tar.gz") || name.ends_with(".tgz")
}

/// The form of CIFAR in an archive.
pub(super) fn form_in(path: &Path) -> Result<Option<&'static Form>, DataError> {
    let mut found = None;
    each_file(path, |form, _, _| {
        found = Some(form);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Reads the files of the first wanted form in an archive; other members are passed over.
fn unpack(path: &Path, wanted: &impl Fn(&Form) -> bool) -> Result<Option<Source>, DataError> {
    let mut found: Option<&'static Form> = None;
    let mut files = HashMap::new();
    each_file(path, |form, file, entry| {
        let goes_with = found.is_none_or(|found| found.folder == form.folder);
        if wanted(form) && goes_with {
            found = Some(form);
            let bytes = take_at_most(&mut *entry, MOST_FILE_BYTES)?;
            if (bytes.len() as u64) < entry.size() {
                return Err(std::io::Error::other(format!("it ends inside {file}")));
            }
            files.insert(file, bytes);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found.map(|form| Source { form, place: path.into(), unpacked: Some(files) }))
}

/// Calls `visit` with each file of CIFAR in an archive until it has seen enough.
fn each_file(
    path: &Path,
    mut visit: impl FnMut(
        &'static Form,
        String,
        &mut tar::Entry<Archive>,
    ) -> std::io::Result<ControlFlow<()>>,
) -> Result<(), DataError> {
    let bad = |e: std::io::Error| {
        DataError::bad(path, format!("the archive cannot be read: {e}; fetch it again"))
    };
    let file = open_regular(path).map_err(|e| DataError::io(path, e))?;
    let limited = GzDecoder::new(BufReader::new(file)).take(MOST_ARCHIVE_BYTES);
    let mut archive = tar::Archive::new(limited);
    for entry in archive.entries().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        let member = entry.path().map_err(bad)?.into_owned();
        let name = |p: Option<&std::ffi::OsStr>| p.map(|n| n.to_string_lossy().into_owned());
        let (Some(file), Some(folder)) =
            (name(member.file_name()), name(member.parent().and_then(Path::file_name)))
        else {
            continue;
        };
        let form = FORMS.iter().find(|form| form.folder == folder && form.knows(&file));
        let Some(form) = form.filter(|_| entry.header().entry_type().is_file()) else {
            continue;
        };
        if visit(form, file, &mut entry).map_err(bad)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The unpacked bytes of an archive.
type Archive = std::io::Take<GzDecoder<BufReader<std::fs::File>>>;
