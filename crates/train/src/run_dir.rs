//! A run on disk: `config.toml`, `metrics.jsonl`, `checkpoints/`. Never overwritten, never shared
//! by two trainings.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::Split;
use anchorhood_engine::Communicator;
use anchorhood_storage::{
    AtomicFile, AtomicFolder, Disk, FileSystem, Hold, folder_of, read_text_at_most_on,
};

use crate::metrics::Metrics;
use crate::together::of_first;
use crate::{Checkpoint, Event, Position, RunConfig, TrainError, seen_pictures};

/// The name of the checkpoint that verdicts without labels prefer.
pub(crate) const CHOSEN: &str = "chosen";

/// The folder of one run, held by this process. The folder itself is held, not a file in it:
/// whatever is deleted there, no second trainer gets in.
#[derive(Debug)]
pub struct RunDir {
    disk: Arc<dyn FileSystem>,
    path: PathBuf,
    config: RunConfig,
    /// What this process writes, and holds the folder by; another of several that train together
    /// writes, if not this one.
    writing: Option<(Metrics, Box<dyn Hold>)>,
}

impl RunDir {
    /// Makes a new run called `name` under `runs`, which remembers from where its pictures were
    /// seen. An existing run is left alone.
    pub fn create(runs: &Path, name: &str, config: &RunConfig) -> Result<RunDir, TrainError> {
        RunDir::create_on(Disk::shared(), runs, name, config)
    }

    /// The same on any disk.
    pub fn create_on(
        disk: Arc<dyn FileSystem>,
        runs: &Path,
        name: &str,
        config: &RunConfig,
    ) -> Result<RunDir, TrainError> {
        check_run_name(name)?;
        let mut config = config.clone();
        config.data.settle();
        let path = runs.join(name);
        let placed = disk.create_folders(runs);
        placed.map_err(|e| TrainError::io(runs, e))?;
        place(&*disk, &path, &config).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => {
                TrainError::RunExists { path: path.clone(), name: name.into() }
            }
            _ => TrainError::io(&path, e),
        })?;
        RunDir::hold(disk, path, config)
    }

    /// Makes a new run named after the data set: `shapes-1`, `shapes-2`, …
    pub fn create_numbered(
        runs: &Path,
        data: &str,
        config: &RunConfig,
    ) -> Result<RunDir, TrainError> {
        let stem = run_name_from(data);
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
        RunDir::open_on(Disk::shared(), path)
    }

    /// The same on any disk.
    pub fn open_on(disk: Arc<dyn FileSystem>, path: &Path) -> Result<RunDir, TrainError> {
        let config = config_on(&*disk, path)?;
        RunDir::hold(disk, path.into(), config)
    }

    /// The configuration of an existing run.
    pub fn config_of(path: &Path) -> Result<RunConfig, TrainError> {
        config_on(&Disk, path)
    }

    fn hold(
        disk: Arc<dyn FileSystem>,
        path: PathBuf,
        config: RunConfig,
    ) -> Result<RunDir, TrainError> {
        let held = disk.hold_folder(&path);
        let held = held.map_err(|e| TrainError::io(&path, e))?;
        let Some(held) = held else {
            return Err(TrainError::Busy { path });
        };
        let metrics = Metrics::open(disk.clone(), &path.join("metrics.jsonl"))?;
        Ok(RunDir { disk, path, config, writing: Some((metrics, held)) })
    }

    /// A run that another process writes, with which this one trains: checkpoints are read from its
    /// folder, if it has any yet, and nothing is written.
    pub fn follow(path: &Path, config: &RunConfig) -> RunDir {
        RunDir { disk: Disk::shared(), path: path.into(), config: config.clone(), writing: None }
    }

    /// Whether this process writes it.
    pub(crate) fn is_written_here(&self) -> bool {
        self.writing.is_some()
    }

    /// The disk that it lies on.
    pub(crate) fn disk(&self) -> &dyn FileSystem {
        &*self.disk
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's settings.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Lets a resumed run use another device or thread count; nothing else of its configuration
    /// changes.
    pub fn set_machine(&mut self, machine: crate::MachineConfig) {
        self.config.machine = machine;
    }

    /// Where a checkpoint lies: `last`, `chosen` or `round-3`.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        checkpoint_path(&self.path, name)
    }

    /// Begins a run where round 0 has ended elsewhere, on these pictures: training goes on from
    /// there.
    pub fn begin_after_round_0(
        &self,
        checkpoint: &Checkpoint,
        train: &Split,
    ) -> Result<(), TrainError> {
        seen_pictures::keep(self.disk(), &self.path, train)?;
        for name in ["round-0", "last"] {
            self.save(checkpoint, name, &Communicator::single())?;
        }
        Ok(())
    }

    /// Saves a checkpoint under its name. A folder of checkpoints that somebody removed is made
    /// again; that of the run is not, since without its configuration it would be no run. All
    /// processes that train it together save it together.
    pub(crate) fn save(
        &self,
        checkpoint: &Checkpoint,
        name: &str,
        together: &Communicator,
    ) -> Result<PathBuf, TrainError> {
        let path = self.checkpoint(name);
        let folder = folder_of(&path);
        let save = || {
            if self.is_written_here() {
                let _ = self.disk.create_folder(folder); // it is there, or saving will say why not
            }
            checkpoint.save_among(together, self.disk(), &path)
        };
        let saved = save();
        let removed = saved.is_err() && !self.disk.exists(folder); // while it was written to
        match of_first(together, removed.into())? {
            0 => saved?,
            _ => save()?,
        }
        Ok(path)
    }

    /// What to say of a run where something is no number any more, after so many steps.
    pub(crate) fn diverged(&self, what: &str, value: f64, position: Position) -> TrainError {
        let (last, method) = (self.checkpoint("last"), self.config.method.name);
        TrainError::Diverged {
            what: what.into(),
            value,
            position,
            rate: self.config.training.rate_at(position),
            temperature: (method.remembers() || method.discovers)
                .then_some(self.config.discovery.temperature),
            checkpoint: self.disk.exists(&last).then_some(last),
        }
    }

    /// Refuses to keep what no run could go on from: a step whose loss is finite may still lead
    /// beyond all numbers.
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

    /// Forgets events after the first `bytes`: a resumed run tells them again. Says how many of
    /// those bytes are lost.
    pub(crate) fn rewind_metrics(&mut self, bytes: u64) -> Result<u64, TrainError> {
        self.writing.as_mut().map_or(Ok(0), |(metrics, _)| metrics.rewind(bytes))
    }

    /// Keeps what is told of a run when its training is over.
    pub fn add(&mut self, event: &Event) -> Result<(), TrainError> {
        self.keep(event)?;
        self.sync_metrics().map(|_| ())
    }

    /// Keeps an event.
    pub(crate) fn keep(&mut self, event: &Event) -> Result<(), TrainError> {
        self.writing.as_mut().map_or(Ok(()), |(metrics, _)| metrics.keep(event))
    }

    /// Makes all events kept so far survive a power cut; says how many bytes of `metrics.jsonl`
    /// they are.
    pub(crate) fn sync_metrics(&mut self) -> Result<u64, TrainError> {
        self.writing.as_mut().map_or(Ok(0), |(metrics, _)| metrics.sync())
    }
}

/// Makes a run's folder with what every run has from its beginning on: aside and whole, since a
/// folder without its configuration could be neither resumed nor made again.
fn place(disk: &dyn FileSystem, path: &Path, config: &RunConfig) -> io::Result<()> {
    if disk.exists(path) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = AtomicFolder::create(disk, path)?;
    disk.create_folder(&folder.path().join("checkpoints"))?;
    let file = folder.path().join("config.toml");
    AtomicFile::write_on(disk, &file, config.to_toml().as_bytes())?;
    folder.finish()
}

fn config_on(disk: &dyn FileSystem, path: &Path) -> Result<RunConfig, TrainError> {
    let file = path.join("config.toml");
    let text = match read_text_at_most_on(disk, &file, RunConfig::MOST_BYTES) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(TrainError::NoSuchRun { path: path.into() });
        }
        other => other.map_err(|e| TrainError::io(&file, e))?,
    };
    let config = RunConfig::from_toml(&text, &file.display().to_string())?;
    config.check()?;
    Ok(config)
}

/// Where a checkpoint of a run lies.
pub fn checkpoint_path(run: &Path, name: &str) -> PathBuf {
    run.join("checkpoints").join(format!("{name}.safetensors"))
}

/// Where a run's model lies: the checkpoint that verdicts without labels preferred, where the run
/// keeps one, else the last.
pub fn model_path(run: &Path) -> PathBuf {
    let chosen = checkpoint_path(run, CHOSEN);
    if chosen.is_file() { chosen } else { checkpoint_path(run, "last") }
}

/// Where a run's model for pictures of another size than it learnt with lies (`data.embed_size`),
/// once training has ended.
pub fn refitted_path(run: &Path) -> PathBuf {
    run.join("model.safetensors")
}

/// Where the model lies that a run's user embeds pictures with: the one for another size, where
/// there is one, or [`model_path`].
pub fn embedding_path(run: &Path) -> PathBuf {
    let refitted = refitted_path(run);
    if refitted.is_file() { refitted } else { model_path(run) }
}

/// Refuses what cannot be the name of a run, or of a folder of runs.
pub fn check_run_name(name: &str) -> Result<(), TrainError> {
    let plain = Path::new(name).components().count() == 1
        && !name.contains(['/', '\\', '\0'])
        && !name.starts_with('.');
    if plain {
        return Ok(());
    }
    Err(TrainError::RunName { name: name.into() })
}

/// A run's name from a data set's: letters, digits and dashes.
pub fn run_name_from(data: &str) -> String {
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

    #[test]
    fn two_processes_do_not_share_a_run() {
        let runs = tempfile::tempdir().unwrap();
        let held = RunDir::create(runs.path(), "a", &config()).unwrap();
        let again = RunDir::open(held.path());
        assert!(matches!(again, Err(TrainError::Busy { .. })));
        // Nothing that could be deleted in it lets a second in.
        let path = held.path().to_path_buf();
        for entry in std::fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "config.toml" && entry.file_type().unwrap().is_file() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        let again = RunDir::open(&path);
        assert!(matches!(again, Err(TrainError::Busy { .. })));
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
        assert_eq!(run_name_from("…/?"), "run");
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        let runs = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", "/tmp/a", ".hidden"] {
            let error = RunDir::create(runs.path(), name, &config()).unwrap_err();
            assert!(error.is_usage(), "{name}");
        }
    }
}
