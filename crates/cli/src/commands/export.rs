//! `anchorhood export`: the model for other programs.

use std::path::{Path, PathBuf};

use anchorhood::Exported;
use anchorhood::Model;
use anchorhood::features_of_files;
use anchorhood::research::Form;
use anchorhood_data::{LabelChoice, find_pictures};
use anchorhood_engine::vectors::Whitening;
use anchorhood_export::{OPSET, check_places};
use anchorhood_storage::{AtomicFile, Disk, FileSystem};
use clap::Parser;

use crate::args::device;
use crate::args::model::{MachineArgs, ModelArgs, check_output, check_outputs, io};
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
    let files = [&args.onnx, &args.safetensors, &args.bf16];
    let files = files.into_iter().flatten();
    check_outputs(files.clone(), args.overwrite)?;
    let model = args.model.load()?;
    let of_timm = args.timm.iter().flat_map(|folder| timm_files(folder));
    let places: Vec<PathBuf> = files.cloned().chain(of_timm).collect();
    check_places(&places, model.path())?;
    let model = refitted(args, model)?;
    let export = Export(Exported::of(&model)?);
    if let Some(folder) = &args.timm {
        export.timm(folder, args.overwrite)?;
    }
    if let Some(path) = &args.onnx {
        export.0.save_onnx(path)?;
        output::line(&format!(
            "{}: ONNX opset {OPSET}; input `pixels` N×3×{1}×{1}, output `embedding` N×{2}",
            path.display(),
            export.0.preprocessing.size,
            export.0.features
        ))?;
    }
    if let Some(path) = &args.bf16 {
        model.save(path)?;
        let saved = Model::load(path)?;
        output::line(&format!(
            "{}: the model alone, fingerprint {}",
            path.display(),
            saved.fingerprint()
        ))?;
    }
    if let Some(path) = &args.safetensors {
        let bytes = export.0.weights()?;
        AtomicFile::write(path, &bytes).map_err(io(path))?;
        output::line(&export.how_to_load(&path.display().to_string(), "torchvision.models"))?;
    }
    Ok(())
}

/// What timm's folder consists of: weights and what is to be known of them.
fn timm_files(folder: &Path) -> [PathBuf; 2] {
    ["model.safetensors", "config.json"].map(|name| folder.join(name))
}

fn power(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(power) if (0.0..=1.0).contains(&power) => Ok(power),
        _ => Err("a number from 0 to 1 is wanted".into()),
    }
}

/// The model for the size and the pictures that were asked for.
fn refitted(args: &ExportArgs, model: Model) -> Result<Model, Failure> {
    let model = match args.size {
        Some(size) => model.at_size(size)?,
        None => model,
    };
    let Some(folder) = &args.whiten_on else {
        return Ok(model);
    };
    let found = find_pictures(folder, LabelChoice::None)?.files();
    let files = Whitening::sample(found.len()).map(|i| found[i].path.clone());
    let machine = args.machine.machine()?;
    let device = device::open(&machine)?;
    let (files, threads) = (files.collect(), machine.thread_count());
    let features = features_of_files(&model, files, &device, threads)?;
    Ok(model.whitened(&features, args.whiten)?)
}

/// A model and what is said of it.
struct Export<'a>(Exported<'a>);

impl Export<'_> {
    fn timm(&self, folder: &Path, overwrite: bool) -> Result<(), Failure> {
        let config = self.0.timm_config()?;
        let bytes = self.0.weights()?;
        let [weights, about] = timm_files(folder);
        let files = [(&weights, bytes.as_slice()), (&about, config.as_bytes())];
        Disk.create_folders(folder).map_err(io(folder))?;
        for (path, _) in &files {
            check_output(path, overwrite)?;
        }
        for (path, bytes) in &files {
            AtomicFile::write(path, bytes).map_err(io(path))?;
        }
        let shown = folder.display();
        output::line(&match self.stem() {
            Form::Large => format!(
                "{shown}: load it with\n  timm.create_model('local-dir:{shown}', pretrained=True)"
            ),
            Form::Small | Form::Medium => self.how_to_load(&weights.display().to_string(), "timm"),
        })
    }

    fn stem(&self) -> Form {
        self.0.network.form(self.0.preprocessing.size)
    }

    /// What to type in Python.
    fn how_to_load(&self, path: &str, library: &str) -> String {
        let network = self.0.network;
        let name = network.architecture.name;
        if !name.starts_with("resnet") {
            return format!(
                "{path}: the weights of {name}, by the layers' names; no other library has this network"
            );
        }
        if network.width != network.architecture.width {
            return format!(
                "{path}: with torchvision's names; its {name} is {} channels wide, this one {}",
                network.architecture.width, network.width
            );
        }
        let features = self.0.features;
        let make = match (library, self.0.has_fc) {
            ("timm", true) => {
                format!("model = timm.create_model('{name}', num_classes={features})")
            }
            ("timm", false) => format!("model = timm.create_model('{name}', num_classes=0)"),
            (_, true) => format!("model = torchvision.models.{name}(num_classes={features})"),
            (_, false) => {
                format!("model = torchvision.models.{name}()\n  model.fc = torch.nn.Identity()")
            }
        };
        let stem = |stride| {
            format!(
                "\n  model.conv1 = torch.nn.Conv2d(3, 64, 3, {stride}, 1, bias=False)\n  model.maxpool = torch.nn.Identity()"
            )
        };
        let stem = match self.stem() {
            Form::Small => stem(1),
            Form::Medium => stem(2),
            Form::Large => String::new(),
        };
        format!(
            "{path}: load it with\n  {make}{stem}\n  model.load_state_dict(safetensors.torch.load_file('{path}'))"
        )
    }
}
