//! Names for files and folders that are not whole yet, and what killed processes left under such
//! names.
//!
//! `model.safetensors` is written as `.model.safetensors.4711-0.partial`: the process and a count,
//! so that no two writers ever share one. A writer holds its file or folder as long as it lives.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{FileSystem, Kind, folder_of};

/// Between making a file and locking it a writer has no lock yet.
const A_WHILE: Duration = Duration::from_secs(60);
/// Where there are no locks: a process that lives no more on this machine may live on another that
/// shares the folder.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// So that a name near the longest still has room for process and count.
const LONGEST: usize = 50;
const END: &str = ".partial";

/// A name beside `path`, hence on the same disk, that no other writer has.
pub(crate) fn aside(path: &Path) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    path.with_file_name(format!("{}{process}-{count}{END}", begin(path)))
}

fn begin(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let short: String = name.chars().take(LONGEST).collect();
    format!(".{short}.")
}

/// Removes what nobody will ever finish of `path`. What cannot be looked at or removed is left: it
/// harms nothing.
pub(crate) fn remove(path: &Path, disk: &dyn FileSystem) {
    let begin = begin(path);
    for left in disk.list(folder_of(path)).unwrap_or_default() {
        let name = left.file_name().and_then(|n| n.to_str());
        let Some(process) = name.and_then(|name| maker(name, &begin)) else {
            continue;
        };
        let enough = match (disk.is_held(&left), lives(process)) {
            (Some(true), _) => continue,
            (Some(false), Some(false)) => Duration::ZERO,
            (Some(false), _) => A_WHILE,
            (None, _) => A_DAY,
        };
        if disk.age(&left).is_ok_and(|age| age >= enough) {
            let _ = match disk.kind(&left) {
                Ok(Kind::Folder) => disk.remove_folder(&left),
                _ => disk.remove(&left),
            };
        }
    }
}

/// The process that writes a file under this name.
fn maker(name: &str, begin: &str) -> Option<u32> {
    let middle = name.strip_prefix(begin)?.strip_suffix(END)?;
    middle.split_once('-')?.0.parse().ok()
}

/// Whether a process lives, where the system says so in a folder.
fn lives(process: u32) -> Option<bool> {
    let all = Path::new("/proc");
    let told = all.join("self").exists();
    told.then(|| all.join(process.to_string()).exists())
}
