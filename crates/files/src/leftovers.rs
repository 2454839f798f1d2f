//! Names for files that are not whole yet, and what killed processes left under such names.
//!
//! `model.safetensors` is written as `.model.safetensors.4711-0.partial`: the process and a count, so that no two writers
//! ever share one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{FileSystem, folder_of};

/// A process that lives no more on this machine may live on another that shares the folder.
const A_WHILE: Duration = Duration::from_secs(60);
/// Where nobody says which processes live, or a number is taken again.
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

/// Removes what nobody will ever finish of `path`. What cannot be looked at or removed is left: it harms nothing.
pub(crate) fn remove(path: &Path, disk: &dyn FileSystem) {
    let begin = begin(path);
    for left in disk.list(folder_of(path)).unwrap_or_default() {
        let name = left.file_name().and_then(|n| n.to_str());
        let Some(process) = name.and_then(|name| maker(name, &begin)) else {
            continue;
        };
        let enough = match lives(process) {
            Some(false) => A_WHILE,
            _ => A_DAY,
        };
        if disk.age(&left).is_ok_and(|age| age > enough) {
            let _ = disk.remove(&left);
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
