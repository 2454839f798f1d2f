//! Which model does the user mean, and where is it to run?

use std::path::{Path, PathBuf};

use anchorhood::{DeviceChoice, ExportOptions, MachineConfig, Model, PrecisionChoice};
use clap::Args;

use crate::args::precisions;
use crate::terminal;
use crate::terminal::failure::Failure;

/// Where a model is looked for.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// `base`, a run's name or folder, a checkpoint or model file, or another program's ONNX model.
    pub model: String,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
}

impl ModelArgs {
    /// Reads the model.
    pub fn load(&self) -> Result<Model, Failure> {
        load_model(&self.runs, &self.model)
    }
}

/// Reads the model that a word means, and says what was found out about it.
pub fn load_model(runs: &Path, word: &str) -> Result<Model, Failure> {
    Ok(anchorhood::load_model(runs, word, &mut terminal::tell)?)
}

/// Where it runs.
#[derive(Debug, Args)]
pub struct MachineArgs {
    /// Where to run: auto, cpu, cuda or cuda:N. auto takes a GPU when one works.
    #[arg(long, default_value = "auto")]
    pub device: DeviceChoice,
    /// What numbers a GPU computes with: bf16, tf32 or f32.
    #[arg(long, default_value = "f32", value_parser = precisions())]
    pub precision: PrecisionChoice,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

impl MachineArgs {
    /// As a run's configuration says it.
    pub fn machine(&self) -> Result<MachineConfig, Failure> {
        let most = MachineConfig::MOST_THREADS;
        if self.threads > most {
            return Err(usage!(
                "--threads {}: more than {most} only wait for each other",
                self.threads
            ));
        }
        if let DeviceChoice::Several(_) | DeviceChoice::AllGpus = self.device {
            return Err(usage!(
                "--device {}: this command uses one device; give cuda:N, and for several GPUs \
                 `embed --shard I/N --device cuda:I` on each",
                self.device
            ));
        }
        Ok(MachineConfig { device: self.device, precision: self.precision, threads: self.threads })
    }
}

/// A file to be written must not be there yet, unless that was said, and its folder must be.
pub fn check_output(path: &Path, overwrite: bool) -> Result<(), Failure> {
    Ok(ExportOptions::check_files([path], overwrite)?)
}

/// What the system said about a file.
pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |e| failed!("{path}: {e}")
}
