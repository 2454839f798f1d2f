//! `anchorhood attention`: where a run's network looked, round after round, as strips of pictures.

use std::path::PathBuf;

use anchorhood::{DeviceChoice, Run, find_run};
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
    let run = Run::open(find_run(&args.runs, &args.run)?)?;
    let mut config = run.config().clone();
    config.machine.threads = args.threads;
    config.machine.device = args.device.unwrap_or(config.machine.device);
    config.check()?;
    let device = device::open(&config.machine)?;
    let bar = Bar::new("looking", false);
    let (layer, data) = (Some(&*args.layer), args.data.as_deref());
    let tell = |done, rounds| bar.at(done, rounds);
    let strips = run.attention(&args.pictures, layer, data, &device, &tell);
    drop(bar);
    let strips = strips?;
    Disk.create_folders(&args.output).map_err(io(&args.output))?;
    for strip in strips {
        let path = args.output.join(format!("picture-{}.png", strip.picture));
        AtomicFile::write(&path, &strip.png)
            .map_err(|e| failed!("{}: cannot write it: {e}", path.display()))?;
        output::line(&format!("{}: {}", path.display(), strip.sentence))?;
    }
    Ok(())
}
