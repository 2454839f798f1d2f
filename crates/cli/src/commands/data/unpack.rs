//! A tar, compressed or not, into a folder: beside it first, then each entry renamed into place.
//!
//! Only files and folders below the place are made. An archive that names another place, or brings links, is refused.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use anchorhood::data::Archive;
use flate2::read::GzDecoder;

use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;

/// Unpacks the archive at `from` into `folder`. What it creates last says that it is whole.
pub fn unpack(from: &Path, folder: &Path, archive: &Archive) -> Result<(), Failure> {
    let aside = folder.join(format!(".{}.unpacking", archive.file));
    let failed = |what: &Path, e: io::Error| Failure::failed(format!("{}: {e}", what.display()));
    remove(&aside).map_err(|e| failed(&aside, e))?;
    let unpacked = unpack_aside(from, &aside).and_then(|()| into_place(&aside, folder, archive));
    let cleared = remove(&aside);
    unpacked.map_err(|e| failed(from, e))?;
    cleared.map_err(|e| failed(&aside, e))
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn unpack_aside(from: &Path, aside: &Path) -> io::Result<()> {
    let file = File::open(from)?;
    let length = file.metadata()?.len();
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let bar = Bar::of_bytes(format!("unpacking {name}"));
    let counted = Counted {
        inner: BufReader::new(file),
        done: 0,
        report: |done: u64| bar.at(done as usize, length as usize),
    };
    fs::create_dir_all(aside)?;
    match name.ends_with("gz") {
        true => entries(GzDecoder::new(counted), aside),
        false => entries(counted, aside),
    }
}

fn entries(input: impl Read, aside: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(input);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(to) = place(&entry.path()?, aside)? else {
            continue;
        };
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            fs::create_dir_all(&to)?;
        } else if kind.is_file() {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            let written = io::copy(&mut entry, &mut File::create(&to)?)?;
            if written != entry.size() {
                let why = format!("it ends inside {}", to.display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        } else if !kind.is_pax_global_extensions() {
            let name = entry.path()?.display().to_string();
            return Err(io::Error::other(format!(
                "{name} is neither a file nor a folder; not unpacked"
            )));
        }
    }
    Ok(())
}

/// Where an entry goes; nowhere for the archive's own root.
fn place(name: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    let mut to = aside.to_owned();
    let mut any = false;
    for part in name.components() {
        match part {
            Component::Normal(part) => {
                to.push(part);
                any = true;
            }
            Component::CurDir => {}
            _ => {
                let why = format!(
                    "it names {}, which leads out of the folder; not unpacked",
                    name.display()
                );
                return Err(io::Error::other(why));
            }
        }
    }
    Ok(any.then_some(to))
}

/// Renames every entry into the folder, that which marks the end last.
fn into_place(aside: &Path, folder: &Path, archive: &Archive) -> io::Result<()> {
    let mark = archive.creates.unwrap_or_default();
    if !aside.join(mark).exists() {
        return Err(io::Error::other(format!(
            "expected {mark} in it; this is another archive"
        )));
    }
    let names = fs::read_dir(aside)?.map(|entry| entry.map(|e| e.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| name == mark);
    for name in names {
        let to = folder.join(&name);
        if to.is_dir() {
            return Err(io::Error::other(format!(
                "{} is there already; move it away",
                to.display()
            )));
        }
        fs::rename(aside.join(&name), to)?;
    }
    Ok(())
}

/// Tells how much was read.
struct Counted<R, F> {
    inner: R,
    done: u64,
    report: F,
}

impl<R: Read, F: Fn(u64)> Read for Counted<R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.done += n as u64;
        (self.report)(self.done);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out() {
        let aside = Path::new("a");
        let at = |name: &str| place(Path::new(name), aside);
        assert_eq!(at("./b/c").unwrap(), Some(PathBuf::from("a/b/c")));
        assert_eq!(at("./").unwrap(), None);
        for name in ["../x", "/etc/x", "b/../../x"] {
            assert!(at(name).is_err(), "{name}");
        }
    }
}
