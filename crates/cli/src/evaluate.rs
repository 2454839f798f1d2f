//! `anchorhood evaluate`: a checkpoint judged again, its floors beside it.

use std::path::{Path, PathBuf};

use anchorhood::data::{self, Dataset};
use anchorhood::engine::Device;
use anchorhood::train::{
    Checkpoint, FeatureSource, Judgement, MachineConfig, RunConfig, checkpoint_path, judge,
};
use serde_json::json;

use crate::args::EvaluateArgs;
use crate::device::{self, Work};
use crate::draw;
use crate::failure::Failure;
use crate::output;
use crate::resolve::find_run;

struct Judging<'a> {
    checkpoint: &'a Checkpoint,
    path: &'a Path,
    config: &'a RunConfig,
    data: &'a Dataset,
}

impl Work for Judging<'_> {
    type Output = Judgement;

    fn on<D: Device>(self, device: &D) -> Result<Judgement, Failure> {
        let Judging {
            checkpoint,
            path,
            config,
            data,
        } = self;
        Ok(judge(device, checkpoint, path, config, data)?)
    }
}

/// Runs the command.
pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    let path = checkpoint_file(args)?;
    let checkpoint = Checkpoint::load(&path)?;
    let mut config = checkpoint.config.clone();
    config.machine = MachineConfig {
        threads: args.threads,
        device: args.device.unwrap_or(config.machine.device),
        ..config.machine
    };
    if let Some(set) = &args.data {
        if args.features == Some(FeatureSource::Memory) {
            return Err(Failure::usage(
                "--features memory: the memory is of the pictures the run was trained on; leave out --data, or give --features recomputed",
            ));
        }
        config.data.set = set.clone();
        config.evaluation.features = FeatureSource::Recomputed;
        let size = checkpoint.config.data.size;
        config.data.size = size.or(config.data.size);
    }
    config.evaluation.k = args.k.unwrap_or(config.evaluation.k);
    config.evaluation.temperature = args.tau.unwrap_or(config.evaluation.temperature);
    config.evaluation.features = args.features.unwrap_or(config.evaluation.features);
    config.check()?;
    let data = data::open(&config.data.set, &config.data.load_options(config.seed))?;
    let work = Judging {
        checkpoint: &checkpoint,
        path: &path,
        config: &config,
        data: &data,
    };
    let found = device::run(&config.machine, work)?;
    if args.json {
        let object = json!({
            "checkpoint": path.display().to_string(),
            "data": data.name,
            "position": checkpoint.standing.position,
            "features": config.evaluation.features,
            "raw_pixels": found.raw_pixels,
            "untrained": found.untrained,
            "trained": found.trained,
            "seed": config.seed,
            "version": anchorhood::train::VERSION,
        });
        return output::line(&object.to_string());
    }
    let features = match config.evaluation.features {
        FeatureSource::Memory => "memory",
        FeatureSource::Recomputed => "recomputed features",
    };
    let position = checkpoint.standing.position;
    let standing = if position.round > config.training.rounds {
        "trained to the end".into()
    } else {
        format!("up to {position}")
    };
    output::line(&format!(
        "{}: {}, {standing}; judged on {} with {features}",
        path.display(),
        checkpoint.network(),
        data.name,
    ))?;
    output::line(&format!(
        "raw pixels         {}",
        draw::accuracy(&found.raw_pixels)
    ))?;
    output::line(&format!(
        "untrained network  {}",
        draw::accuracy(&found.untrained)
    ))?;
    output::line(&format!(
        "this checkpoint    {}",
        draw::accuracy(&found.trained)
    ))
}

/// The file meant: itself, or a run's last.
fn checkpoint_file(args: &EvaluateArgs) -> Result<PathBuf, Failure> {
    let file = PathBuf::from(&args.run);
    if file.is_file() {
        return Ok(file);
    }
    let run = find_run(&args.runs, &args.run)?;
    let last = checkpoint_path(&run, "last");
    match last.is_file() {
        true => Ok(last),
        false => Err(Failure::usage(format!(
            "{}: this run has no checkpoint yet; its first is saved after its first epoch",
            run.display()
        ))),
    }
}
