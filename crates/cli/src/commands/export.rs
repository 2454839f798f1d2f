//! `anchorhood export`: the model for other programs.

use std::path::PathBuf;

use anchorhood::{ExportOptions, export, open_device};
use clap::Parser;

use crate::args::model::{MachineArgs, ModelArgs};
use crate::terminal;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(group = clap::ArgGroup::new("formats").required(true).multiple(true).args(["onnx", "safetensors", "timm", "bf16"]))]
#[command(after_help = "\
Examples:
  anchorhood export mine --onnx model.onnx
  anchorhood export mine --safetensors weights.safetensors
  anchorhood export mine --onnx model.onnx --timm timm-folder
  anchorhood export mine --bf16 mine.safetensors      a small model file, to send and to keep
  anchorhood export mine --bf16 mine.safetensors --size 96 --whiten-on ~/pictures
                                  the same for larger pictures, fitted to them: often better

An ONNX model takes float pictures N×3×size×size and gives vectors of unit length; what must be
done to a picture first (size, mean, std, colour order) stands in its metadata.")]
pub struct ExportArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write an ONNX model.
    #[arg(long, value_name = "FILE.onnx")]
    pub onnx: Option<PathBuf>,
    /// Write the weights with torchvision's names.
    #[arg(long, value_name = "FILE")]
    pub safetensors: Option<PathBuf>,
    /// Write a folder as timm loads it (ResNets of the published width).
    #[arg(long, value_name = "FOLDER")]
    pub timm: Option<PathBuf>,
    /// Write the model alone for this program, its numbers as bf16: what `base` is.
    #[arg(long, value_name = "FILE")]
    pub bf16: Option<PathBuf>,
    /// Give it pictures of so many pixels a side. Larger ones than it learnt with are often better,
    /// and take longer.
    #[arg(long, value_name = "PIXELS")]
    pub size: Option<usize>,
    /// Whiten it by what it makes of some of these pictures, at most 4,096: for another size, or
    /// pictures of another kind.
    #[arg(long, value_name = "FOLDER")]
    pub whiten_on: Option<PathBuf>,
    /// How far: 0 leaves the directions of its vectors as they are, 1 has all count alike.
    #[arg(long, value_name = "POWER", default_value_t = 0.5, requires = "whiten_on", value_parser = power)]
    pub whiten: f64,
    /// Replace what is there.
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let machine = args.machine.machine()?;
    let options = ExportOptions {
        onnx: args.onnx.clone(),
        safetensors: args.safetensors.clone(),
        timm: args.timm.clone(),
        bf16: args.bf16.clone(),
        size: args.size,
        whiten_on: args.whiten_on.clone(),
        whiten: args.whiten,
        overwrite: args.overwrite,
        threads: machine.thread_count(),
    };
    let open = || open_device(&machine, &mut terminal::tell);
    let said = export(&args.model.load()?, &options, &open)?;
    said.iter().try_for_each(|text| output::line(text))
}

fn power(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(power) if (0.0..=1.0).contains(&power) => Ok(power),
        _ => Err("a number from 0 to 1 is wanted".into()),
    }
}
