//! Folders in which runs are made before they appear, and what is left of them by processes that were killed meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Making a run takes milliseconds. A process that lives no more on this machine may live on another that shares the folder.
const A_WHILE: Duration = Duration::from_secs(60);
/// Where nobody says which processes live, or a number is taken again.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where this process makes the run `name`.
pub(crate) fn aside(runs: &Path, name: &str) -> PathBuf {
    runs.join(format!(".{name}-{}.partial", std::process::id()))
}

/// Removes what nobody will ever finish. What cannot be looked at or removed is left: it harms no run.
pub(crate) fn remove(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(maker);
        let folder = entry.metadata().ok().filter(|m| m.is_dir());
        let (Some(maker), Some(folder)) = (maker, folder) else {
            continue;
        };
        let enough = match lives(maker) {
            Some(false) => A_WHILE,
            _ => A_DAY,
        };
        let age = folder.modified().ok().and_then(|m| m.elapsed().ok());
        if age.is_some_and(|age| age > enough) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that makes a run in a folder of this name.
fn maker(name: &str) -> Option<u32> {
    let (run, process) = name.strip_suffix(".partial")?.rsplit_once('-')?;
    let ours = run.len() > 1 && run.starts_with('.');
    process.parse().ok().filter(|_| ours)
}

/// Whether a process lives, where the system says so in a folder.
fn lives(process: u32) -> Option<bool> {
    let all = Path::new("/proc");
    let told = all.join("self").exists();
    told.then(|| all.join(process.to_string()).exists())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Preset, RunDir};
    use std::fs::File;
    use std::time::SystemTime;

    fn left(runs: &Path, name: &str, age: Duration) -> PathBuf {
        let folder = runs.join(name);
        fs::create_dir_all(folder.join("run").join("checkpoints")).unwrap();
        let then = SystemTime::now() - age;
        File::open(&folder).unwrap().set_modified(then).unwrap();
        folder
    }

    #[test]
    fn what_the_dead_left_goes_when_a_run_is_made() {
        let runs = tempfile::tempdir().unwrap();
        let runs = runs.path();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (dead, alive) = (child.id(), std::process::id());
        let old = A_WHILE + Duration::from_secs(5);
        let gone = [
            left(runs, &format!(".a-{dead}.partial"), old),
            left(runs, &format!(".b-2-{dead}.partial"), old),
            left(runs, &format!(".c-{alive}.partial"), A_DAY + old),
        ];
        let stay = [
            left(runs, &format!(".a-{alive}.partial"), old),
            left(runs, &format!(".d-{dead}.partial"), Duration::ZERO),
            left(runs, &format!("a-{dead}.partial"), old),
            left(runs, &format!(".a-{dead}"), old),
            left(runs, ".notes.partial", old),
        ];
        let config = Preset::Quick.config("shapes");
        RunDir::create(runs, "new", &config).unwrap();
        assert!(gone.iter().all(|folder| !folder.exists()), "{gone:?}");
        assert!(stay.iter().all(|folder| folder.exists()), "{stay:?}");
    }
}
