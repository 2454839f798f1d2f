//! Where a model may be exported to: not into a run, which would be another one then.

use std::fs::read_dir;
use std::path::{Path, PathBuf};

use anchorhood_storage::{resolve, same_file};

use crate::ExportError;

/// Checks that each of some files has a place of its own, is not the model itself, and lies in no
/// run, whatever spelling or links lead there.
pub fn check_places(files: &[PathBuf], model: &Path) -> Result<(), ExportError> {
    let run = std::path::absolute(model).map_err(ExportError::io(model))?;
    let run = run.ancestors().find(|folder| is_run(folder));
    let parts = run.map(parts_of).unwrap_or_default();
    let mut seen = vec![];
    for file in files {
        let refused = |why| Err(ExportError::Place { path: file.clone(), why });
        let place = resolve(file).map_err(ExportError::io(file))?;
        if seen.contains(&place) {
            return refused("two results cannot be one file; give each a name of its own");
        }
        if same_file(file, model).unwrap_or(false) {
            return refused("is the checkpoint itself, which the run needs; choose another name");
        }
        let linked = parts.iter().any(|part| place.starts_with(part));
        if linked || place.ancestors().any(is_run) {
            return refused("is part of a run, which export leaves as it is; choose another place");
        }
        seen.push(place);
    }
    Ok(())
}

/// Whether a folder is a run's.
fn is_run(folder: &Path) -> bool {
    let there = |name: &str| folder.join(name).exists();
    there("config.toml") && (there("checkpoints") || there("metrics.jsonl"))
}

/// What a run consists of: its folder, and whatever lies elsewhere and is linked to from there.
fn parts_of(run: &Path) -> Vec<PathBuf> {
    let folders = [run.to_owned(), run.join("checkpoints")];
    let entries = folders.iter().flat_map(read_dir).flatten();
    let entries = entries.flatten().map(|entry| entry.path());
    let all = std::iter::once(run.to_owned()).chain(entries);
    all.filter_map(|part| resolve(&part).ok()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn neither_the_model_nor_its_run_is_written() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("run/checkpoints")).unwrap();
        fs::write(path("run/config.toml"), "").unwrap();
        let model = path("run/checkpoints/last.safetensors");
        fs::write(&model, "").unwrap();
        symlink("run", path("link")).unwrap();
        fs::hard_link(&model, path("hard")).unwrap();
        let check = |names: &[&str]| {
            check_places(&names.iter().map(|name| path(name)).collect::<Vec<_>>(), &model)
        };
        check(&["a.onnx", "b.onnx"]).unwrap();
        for refused in [&["run/a.onnx"][..], &["link/new/a"], &["hard"], &["a", "./a"]] {
            let error = check(refused).unwrap_err();
            assert!(matches!(error, ExportError::Place { .. }), "{refused:?}: {error}");
        }
    }
}
