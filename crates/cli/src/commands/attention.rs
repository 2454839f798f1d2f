//! `anchorhood attention`: where a run's network looked, round after round, as strips of pictures.

use std::path::PathBuf;

use anchorhood::find_run;
use anchorhood::open_images_of;
use anchorhood::research::RunDir;
use anchorhood::{DeviceChoice, MachineConfig};
use anchorhood_engine::Error;
use anchorhood_report::{AttentionOptions, ReportError, attention_strips, finished_rounds};
use anchorhood_storage::{AtomicFile, Disk, FileSystem};
use clap::Parser;

use crate::args::device;
use crate::args::model::io;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("attention"))]
pub struct AttentionArgs {
    /// A run's name or folder.
    pub run: String,
    /// Which training pictures, by number from 0.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', required = true)]
    pub pictures: Vec<usize>,
    /// The folder to write strips to.
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "attention")]
    pub output: PathBuf,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Where the data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// The layer whose places are weighed: conv1 … conv5.
    #[arg(long, default_value = "conv5")]
    pub layer: String,
    /// Where to run: auto, cpu, cuda or cuda:N [default: as the run was].
    #[arg(long)]
    pub device: Option<DeviceChoice>,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

pub fn run(args: &AttentionArgs) -> Result<(), Failure> {
    let run = find_run(&args.runs, &args.run)?;
    let mut config = RunDir::config_of(&run)?;
    config.machine = MachineConfig {
        threads: args.threads,
        device: args.device.unwrap_or(config.machine.device),
        ..config.machine
    };
    config.check()?;
    let rounds = finished_rounds(&run, &config);
    if rounds.is_empty() {
        return Err(usage!(
            "{}: no round of this run is finished yet; each leaves a checkpoint at its end",
            run.display()
        ));
    }
    let data = open_images_of(&config, args.data.as_deref())?;
    let n = data.train.pictures.len();
    if let Some(i) = args.pictures.iter().find(|i| **i >= n) {
        return Err(usage!(
            "--pictures {i}: {} has the training pictures 0 to {}",
            data.name,
            n - 1
        ));
    }
    let options = AttentionOptions {
        pictures: &args.pictures,
        layer: &args.layer,
        temperature: config.discovery.temperature as f32,
    };
    let device = device::open(&config.machine)?;
    let bar = Bar::new("looking", false);
    let tell = |done| bar.at(done, rounds.len());
    let strips = attention_strips(&device, &rounds, &config, &data, &options, &tell);
    drop(bar);
    let strips = strips.map_err(|e| match e {
        ReportError::Engine(e @ Error::UnknownLayer { .. }) => {
            usage!("--layer: {e}")
        }
        other => other.into(),
    })?;
    Disk.create_folders(&args.output).map_err(io(&args.output))?;
    for strip in strips {
        let path = args.output.join(format!("picture-{}.png", strip.picture));
        AtomicFile::write(&path, &strip.png)
            .map_err(|e| failed!("{}: cannot write it: {e}", path.display()))?;
        output::line(&format!("{}: {}", path.display(), strip.sentence))?;
    }
    Ok(())
}
