//! What a run left on disk, read back once: settings, events, what each round discovered, where
//! every picture lies now.

use std::path::Path;

use anchorhood_storage::{read_at_most, read_text_at_most};
use anchorhood_train::discovery::Neighbourhoods;
use anchorhood_train::evaluation::Rows;
use anchorhood_train::{Checkpoint, Event, RunConfig, checkpoint_path, model_path};

use crate::{EventLog, LeftOut, ReportError, read_metrics};

/// More strips than this make a page nobody scrolls.
const MOST_STRIPS: usize = 24;
/// Bytes of a strip.
const LARGEST_STRIP: u64 = 1 << 26;

/// What was discovered before a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundNeighbourhoods {
    /// Which round it was for, from 1.
    pub round: usize,
    /// What was found.
    pub found: Neighbourhoods,
}

/// A strip of pictures that `anchorhood attention` drew.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Its file's name.
    pub name: String,
    /// The PNG file.
    pub png: Vec<u8>,
}

/// A run as it lies on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// The folder's name.
    pub name: String,
    /// `config.toml`.
    pub settings: String,
    /// `metrics.jsonl`.
    pub events: Vec<Event>,
    /// What of it was no event.
    pub left_out: Option<LeftOut>,
    /// Rounds whose checkpoints are there and had neighbourhoods.
    pub rounds: Vec<RoundNeighbourhoods>,
    /// Where every training picture lies: the memory of the run's model, once there is one; for a
    /// method that remembers none, whoever has the pictures may put here what the model makes of
    /// them.
    pub embedding: Option<Rows>,
    /// Strips under `attention/`.
    pub strips: Vec<Strip>,
}

impl RunRecord {
    /// Reads a run's folder. A run that is still training is read as far as it is.
    pub fn read(folder: &Path) -> Result<RunRecord, ReportError> {
        let config = folder.join("config.toml");
        let settings = read_text_at_most(&config, RunConfig::MOST_BYTES);
        let settings = settings.map_err(ReportError::io(&config))?;
        let metrics = folder.join("metrics.jsonl");
        let log = if metrics.exists() { read_metrics(&metrics)? } else { EventLog::default() };
        let mut record = RunRecord {
            name: name_of(folder),
            settings,
            events: log.events,
            left_out: log.left_out,
            strips: strips(&folder.join("attention")),
            ..RunRecord::default()
        };
        for round in 0.. {
            let path = checkpoint_path(folder, &format!("round-{round}"));
            match path.is_file() {
                true => {
                    let found = Checkpoint::load_neighbourhoods(&path)?;
                    let found = found.map(|found| RoundNeighbourhoods { round, found });
                    record.rounds.extend(found);
                }
                false => break,
            }
        }
        let last = checkpoint_path(folder, "last");
        if last.is_file() {
            let checkpoint = Checkpoint::load(&last)?;
            let round = record.rounds.last().map_or(1, |r| r.round + 1);
            let model = model_path(folder);
            record.embedding = match model == last {
                true => embedding(&checkpoint),
                false => embedding(&Checkpoint::load(&model)?),
            };
            // A round that is not finished has a place in the last checkpoint alone; an ended run
            // stands after its last.
            let unfinished = checkpoint.standing.position.round == round;
            if unfinished && round <= checkpoint.config.training.rounds {
                let found = checkpoint.neighbourhoods();
                let found = found.filter(|found| checkpoint.begun_on() == Some(found.len()));
                record.rounds.extend(found.map(|found| RoundNeighbourhoods { round, found }));
            }
        }
        Ok(record)
    }
}

fn embedding(checkpoint: &Checkpoint) -> Option<Rows> {
    let (rows, dim) = checkpoint.memory()?;
    Some(Rows::new(rows.to_vec(), dim))
}

fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let name = whole.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What can be read of them, by name; a strip is an extra that no report should fail for.
fn strips(folder: &Path) -> Vec<Strip> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pngs = entries.map(|e| e.path());
    let mut pngs: Vec<_> = pngs.filter(|p| p.extension().is_some_and(|e| e == "png")).collect();
    pngs.sort_by_key(|p| (p.as_os_str().len(), p.clone())); // picture-9 before picture-10
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let png = read_at_most(path, LARGEST_STRIP).ok()?;
        Some(Strip { name, png })
    };
    pngs.iter().filter_map(read).take(MOST_STRIPS).collect()
}
