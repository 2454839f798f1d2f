//! A run on disk: `config.toml`, `metrics.jsonl`, `checkpoints/`. Never overwritten, never shared by two trainings.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anchorhood_files::{AtomicFile, Disk, FileSystem, folder_of, read_text_at_most};

use crate::{Checkpoint, Event, MethodChoice, Position, RunConfig, TrainError, leftovers};

/// The folder of one run, held by this process.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    config: RunConfig,
    metrics: File,
    _lock: Option<File>,
}

impl RunDir {
    /// Makes a new run called `name` under `runs`, which remembers from where its pictures were seen. An existing run is left
    /// alone.
    pub fn create(runs: &Path, name: &str, config: &RunConfig) -> Result<RunDir, TrainError> {
        check_name(name)?;
        let mut config = config.clone();
        config.data.settle();
        fs::create_dir_all(runs).map_err(|e| TrainError::io(runs, e))?;
        let path = runs.join(name);
        let exists = || TrainError::RunExists {
            path: path.clone(),
            name: name.into(),
        };
        if path.symlink_metadata().is_ok() {
            return Err(exists());
        }
        leftovers::remove(runs);
        // Made aside and whole: a folder without its configuration could be neither resumed nor made again.
        let aside = leftovers::aside(runs, name);
        let _ = fs::remove_dir_all(&aside); // of a killed process with this one's number
        let whole = aside.join("run");
        let placed = furnish(&whole, &config).and_then(|()| match fs::rename(&whole, &path) {
            // Another process was quicker.
            Err(_) if path.symlink_metadata().is_ok() => Err(exists()),
            other => other.map_err(|e| TrainError::io(&path, e)),
        });
        let _ = fs::remove_dir_all(&aside);
        placed?;
        (Disk.sync_folder(runs)).map_err(|e| TrainError::io(runs, e))?;
        RunDir::hold(path, config)
    }

    /// Makes a new run named after the data set: `shapes-1`, `shapes-2`, …
    pub fn create_numbered(
        runs: &Path,
        data: &str,
        config: &RunConfig,
    ) -> Result<RunDir, TrainError> {
        let stem = name_from(data);
        for number in 1.. {
            match RunDir::create(runs, &format!("{stem}-{number}"), config) {
                Err(TrainError::RunExists { .. }) => continue,
                done => return done,
            }
        }
        unreachable!("there is always a greater number")
    }

    /// Takes hold of an existing run.
    pub fn open(path: &Path) -> Result<RunDir, TrainError> {
        let config = RunDir::config_of(path)?;
        RunDir::hold(path.into(), config)
    }

    /// The configuration of an existing run.
    pub fn config_of(path: &Path) -> Result<RunConfig, TrainError> {
        let file = path.join("config.toml");
        let text = match read_text_at_most(&file, RunConfig::MOST_BYTES) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(TrainError::NoSuchRun { path: path.into() });
            }
            other => other.map_err(|e| TrainError::io(&file, e))?,
        };
        let config = RunConfig::from_toml(&text, &file.display().to_string())?;
        config.check()?;
        Ok(config)
    }

    fn hold(path: PathBuf, config: RunConfig) -> Result<RunDir, TrainError> {
        let place = path.join(".lock");
        let lock = File::create(&place).map_err(|e| TrainError::io(&place, e))?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => return Err(TrainError::Busy { path }),
            // Some network file systems have no locks; a run there is guarded by its name alone.
            Err(TryLockError::Error(_)) => None,
        };
        let place = path.join("metrics.jsonl");
        let metrics = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&place)
            .map_err(|e| TrainError::io(&place, e))?;
        Ok(RunDir {
            path,
            config,
            metrics,
            _lock: lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's settings.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Lets a resumed run use another device or thread count; nothing else of its configuration changes.
    pub fn set_machine(&mut self, machine: crate::MachineConfig) {
        self.config.machine = machine;
    }

    /// Where a checkpoint lies: `last` or `round-3`.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        checkpoint_path(&self.path, name)
    }

    /// Saves a checkpoint under its name. A folder of checkpoints that somebody removed is made again; that of the run is not,
    /// since without its configuration it would be no run.
    pub(crate) fn save(&self, checkpoint: &Checkpoint, name: &str) -> Result<PathBuf, TrainError> {
        let path = self.checkpoint(name);
        let _ = fs::create_dir(folder_of(&path)); // it is there, or saving will say why not
        checkpoint.save(&path)?;
        Ok(path)
    }

    /// What to say of a run where something is no number any more, after so many steps.
    pub(crate) fn diverged(&self, what: &str, value: f64, position: Position) -> TrainError {
        let last = self.checkpoint("last");
        TrainError::Diverged {
            what: what.into(),
            value,
            position,
            rate: self.config.training.rate_at(position),
            temperature: match self.config.method.name {
                MethodChoice::And => Some(self.config.discovery.temperature),
                MethodChoice::Supervised => None,
            },
            checkpoint: last.exists().then_some(last),
        }
    }

    /// Refuses to keep what no run could go on from: a step whose loss is finite may still lead beyond all numbers.
    pub(crate) fn check_finite(
        &self,
        checkpoint: &Checkpoint,
        position: Position,
    ) -> Result<(), TrainError> {
        match checkpoint.not_finite() {
            Some((what, value)) => Err(self.diverged(&what, value.into(), position)),
            None => Ok(()),
        }
    }

    /// Forgets events after the first `bytes`: a resumed run tells them again.
    pub fn rewind_metrics(&mut self, bytes: u64) -> Result<(), TrainError> {
        let mut rewind = || {
            let length = self.metrics.metadata()?.len().min(bytes);
            self.metrics.set_len(length)?;
            self.metrics.seek(SeekFrom::Start(length))
        };
        rewind().map_err(|e| TrainError::io(&self.path.join("metrics.jsonl"), e))?;
        Ok(())
    }

    /// Keeps an event.
    pub fn keep(&mut self, event: &Event) -> Result<(), TrainError> {
        let mut line = serde_json::to_string(event).expect("events are plain values");
        line.push('\n');
        let written = self.metrics.write_all(line.as_bytes());
        written.map_err(|e| TrainError::io(&self.path.join("metrics.jsonl"), e))
    }

    /// Bytes of `metrics.jsonl` so far.
    pub fn metrics_bytes(&mut self) -> Result<u64, TrainError> {
        let position = self.metrics.stream_position();
        position.map_err(|e| TrainError::io(&self.path.join("metrics.jsonl"), e))
    }
}

/// Makes a run's folder with what every run has from its beginning on.
fn furnish(path: &Path, config: &RunConfig) -> Result<(), TrainError> {
    let checkpoints = path.join("checkpoints");
    fs::create_dir_all(&checkpoints).map_err(|e| TrainError::io(&checkpoints, e))?;
    let file = path.join("config.toml");
    AtomicFile::write(&file, config.to_toml().as_bytes()).map_err(|e| TrainError::io(&file, e))
}

/// Where a checkpoint of a run lies.
pub fn checkpoint_path(run: &Path, name: &str) -> PathBuf {
    run.join("checkpoints").join(format!("{name}.safetensors"))
}

fn check_name(name: &str) -> Result<(), TrainError> {
    let plain = Path::new(name).components().count() == 1
        && !name.contains(['/', '\\', '\0'])
        && !name.starts_with('.');
    if plain {
        return Ok(());
    }
    Err(TrainError::RunName { name: name.into() })
}

/// A folder name from a data set's: letters, digits, dots and dashes.
fn name_from(data: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => c,
        _ => '-',
    };
    let name: String = data.chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => "run".into(),
        name => name.chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    fn config() -> RunConfig {
        Preset::Quick.config("shapes")
    }

    #[test]
    fn a_run_is_never_overwritten() {
        let runs = tempfile::tempdir().unwrap();
        drop(RunDir::create(runs.path(), "a", &config()).unwrap());
        let error = RunDir::create(runs.path(), "a", &config()).unwrap_err();
        assert!(matches!(&error, TrainError::RunExists { name, .. } if name == "a"));
        assert!(error.is_usage());
    }

    /// At no moment is there a folder of the run's name that is not a run, whatever is killed: it is made elsewhere first.
    #[test]
    fn a_run_appears_whole() {
        let runs = tempfile::tempdir().unwrap();
        let aside = leftovers::aside(runs.path(), "a");
        fs::write(&aside, "in the way").unwrap(); // nothing can be made aside
        RunDir::create(runs.path(), "a", &config()).unwrap_err();
        assert!(!runs.path().join("a").exists());
        fs::remove_file(&aside).unwrap();
        // What a killed process left does not matter.
        fs::create_dir_all(aside.join("run").join("checkpoints")).unwrap();
        drop(RunDir::create(runs.path(), "a", &config()).unwrap());
        assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_processes_do_not_share_a_run() {
        let runs = tempfile::tempdir().unwrap();
        let held = RunDir::create(runs.path(), "a", &config()).unwrap();
        let again = RunDir::open(held.path());
        assert!(matches!(again, Err(TrainError::Busy { .. })));
        let path = held.path().to_path_buf();
        drop(held);
        RunDir::open(&path).unwrap();
    }

    #[test]
    fn unnamed_runs_are_numbered() {
        let runs = tempfile::tempdir().unwrap();
        for expected in ["my-photos-1", "my-photos-2"] {
            let run = RunDir::create_numbered(runs.path(), "my photos", &config()).unwrap();
            assert_eq!(run.path().file_name().unwrap(), expected);
        }
        assert_eq!(name_from("…/?"), "run");
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        let runs = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", "/tmp/a", ".hidden"] {
            let error = RunDir::create(runs.path(), name, &config()).unwrap_err();
            assert!(error.is_usage(), "{name}");
        }
    }

    #[test]
    fn metrics_are_rewound_to_a_checkpoint() {
        let runs = tempfile::tempdir().unwrap();
        let mut run = RunDir::create(runs.path(), "a", &config()).unwrap();
        let event = |round| Event::RoundStarted { round, rounds: 2 };
        run.keep(&event(0)).unwrap();
        let bytes = run.metrics_bytes().unwrap();
        run.keep(&event(1)).unwrap();
        run.rewind_metrics(bytes).unwrap();
        run.keep(&event(2)).unwrap();
        let text = fs::read_to_string(run.path().join("metrics.jsonl")).unwrap();
        let rounds: Vec<Event> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(rounds, [event(0), event(2)]);
    }
}
