//! `anchorhood export`: the model for other programs.

use std::path::PathBuf;

use anchorhood::export::{
    NamedTensor, OPSET, Preprocessing, onnx_model, timm_config, torchvision_weights,
};
use anchorhood::files::{AtomicFile, Disk, FileSystem};
use anchorhood::models::Form;
use anchorhood::search::Model;
use anchorhood::train::NetworkConfig;
use clap::Parser;

use crate::args::model::{ModelArgs, check_output, check_outputs, io};
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
    /// Replace what is there.
    #[arg(long)]
    pub overwrite: bool,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let files = [&args.onnx, &args.safetensors, &args.bf16];
    let files = files.into_iter().flatten();
    check_outputs(files.clone(), args.overwrite)?;
    let model = args.model.load()?;
    for file in files.filter(|f| f.exists()) {
        let same = file.canonicalize().ok() == model.path().canonicalize().ok();
        if same {
            return Err(Failure::usage(format!(
                "{}: is the checkpoint itself, which the run needs; choose another name",
                file.display()
            )));
        }
    }
    let export = Export::new(&model)?;
    if let Some(folder) = &args.timm {
        export.timm(folder, args.overwrite)?;
    }
    if let Some(path) = &args.onnx {
        let version = anchorhood::train::VERSION;
        let bytes = onnx_model(
            model.graph()?,
            &export.tensors,
            &export.form,
            version,
            &export.notes,
        )?;
        AtomicFile::write(path, &bytes).map_err(io(path))?;
        output::line(&format!(
            "{}: ONNX opset {OPSET}; input `pixels` N×3×{1}×{1}, output `embedding` N×{2}",
            path.display(),
            export.form.size,
            export.features
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
        let bytes = torchvision_weights(&export.tensors, &export.form, &export.notes)?;
        AtomicFile::write(path, &bytes).map_err(io(path))?;
        output::line(&export.how_to_load(&path.display().to_string(), "torchvision.models"))?;
    }
    Ok(())
}

struct Export<'a> {
    network: &'a NetworkConfig,
    tensors: Vec<NamedTensor<'a>>,
    form: Preprocessing,
    /// Values of the result.
    features: usize,
    /// Whether the result comes from the last layer, which libraries call fc, or from the one below it.
    has_fc: bool,
    notes: Vec<(&'static str, String)>,
}

impl<'a> Export<'a> {
    fn new(model: &'a Model) -> Result<Self, Failure> {
        let (network, input) = (model.network()?, model.input());
        let named = |t: &'a anchorhood::train::Tensor| NamedTensor {
            name: &t.name,
            shape: &t.shape,
            values: &t.values,
        };
        let (graph, weights) = (model.graph()?, model.weights()?);
        let features = graph.shape(graph.output_node()).len();
        let has_fc = weights.iter().any(|t| t.name == "fc.weight");
        let layer = graph.node(graph.node(graph.output_node()).inputs[0]);
        Ok(Export {
            network,
            features,
            has_fc,
            tensors: weights.iter().map(named).collect(),
            form: Preprocessing {
                size: input.size,
                mean: input.mean,
                std: input.std,
            },
            notes: vec![
                ("network", network.architecture.name().into()),
                ("width", network.width.to_string()),
                ("features", features.to_string()),
                ("fingerprint", model.fingerprint().into()),
                (
                    "output",
                    format!(
                        "{0}, then divided by its length; torchvision and timm stop at {0}",
                        layer.name
                    ),
                ),
            ],
        })
    }

    fn timm(&self, folder: &std::path::Path, overwrite: bool) -> Result<(), Failure> {
        let architecture = self.network.architecture.name();
        let config = timm_config(architecture, &self.tensors, &self.form)?;
        let bytes = torchvision_weights(&self.tensors, &self.form, &self.notes)?;
        let files = [
            (folder.join("model.safetensors"), bytes.as_slice()),
            (folder.join("config.json"), config.as_bytes()),
        ];
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
            Form::Small | Form::Medium => self.how_to_load(
                &folder.join("model.safetensors").display().to_string(),
                "timm",
            ),
        })
    }

    fn stem(&self) -> Form {
        self.network.form(self.form.size)
    }

    /// What to type in Python.
    fn how_to_load(&self, path: &str, library: &str) -> String {
        let network = self.network;
        let name = network.architecture.name();
        if !name.starts_with("resnet") {
            return format!(
                "{path}: the weights of {name}, by the layers' names; no other library has this network"
            );
        }
        if network.width != network.architecture.default_width() {
            return format!(
                "{path}: with torchvision's names; its {name} is {} channels wide, this one {}",
                network.architecture.default_width(),
                network.width
            );
        }
        let features = self.features;
        let make = match (library, self.has_fc) {
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
