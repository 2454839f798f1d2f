//! A model for other programs.

use std::io;
use std::path::{Path, PathBuf, absolute};

use anchorhood_data::{LabelChoice, find_pictures};
use anchorhood_engine::Device;
use anchorhood_engine::vectors::Whitening;
use anchorhood_export::{Exported, OPSET, check_places};
use anchorhood_index::Model;
use anchorhood_models::Form;
use anchorhood_storage::{AtomicFile, Disk, FileSystem};

use crate::error::usage;
use crate::{Error, refit};

/// The files to write of a model, and what is done to it first.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// An ONNX model.
    pub onnx: Option<PathBuf>,
    /// The weights with torchvision's names.
    pub safetensors: Option<PathBuf>,
    /// A folder as timm loads it (ResNets of the published width).
    pub timm: Option<PathBuf>,
    /// The model alone for this program, its numbers as bf16: what `base` is.
    pub bf16: Option<PathBuf>,
    /// Pixels a side of the images that it is given then.
    pub size: Option<usize>,
    /// A folder; it is whitened by what it makes of some of its images, at most 4,096.
    pub whiten_on: Option<PathBuf>,
    /// How far: 0 leaves the directions of its vectors as they are, 1 has all count alike.
    pub whiten: f64,
    /// Whether what is there is replaced.
    pub overwrite: bool,
    /// Threads that decode; 0 for one a core.
    pub threads: usize,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions {
            onnx: None,
            safetensors: None,
            timm: None,
            bf16: None,
            size: None,
            whiten_on: None,
            whiten: 0.5,
            overwrite: false,
            threads: 0,
        }
    }
}

impl ExportOptions {
    /// Files to be written must not be there yet, unless that was said (`overwrite`), each needs a
    /// name of its own, and their folders must be there.
    pub fn check_files<P: AsRef<Path>>(
        files: impl IntoIterator<Item = P>,
        overwrite: bool,
    ) -> Result<(), Error> {
        let mut seen = vec![];
        for file in files {
            let file = file.as_ref();
            check_output(file, overwrite)?;
            let whole = absolute(file).map_err(failed(file))?;
            if seen.contains(&whole) {
                return Err(usage!(
                    "{}: two results cannot be one file; give each a name of its own",
                    file.display()
                ));
            }
            seen.push(whole);
        }
        Ok(())
    }
}

/// Writes a model for other programs, and gives for each file how it is loaded. A device is asked
/// for where it is whitened.
pub fn export(
    model: &Model,
    options: &ExportOptions,
    open: &dyn Fn() -> Result<Device, Error>,
) -> Result<Vec<String>, Error> {
    let files = [&options.onnx, &options.safetensors, &options.bf16];
    let files = files.into_iter().flatten();
    ExportOptions::check_files(files.clone(), options.overwrite)?;
    let of_timm = options.timm.iter().flat_map(|folder| timm_files(folder));
    let places: Vec<PathBuf> = files.cloned().chain(of_timm).collect();
    check_places(&places, model.path())?;
    let model = &refitted(model, options, open)?;
    let exported = Exported::of(model)?;
    let mut said = vec![];
    if let Some(folder) = &options.timm {
        said.push(timm(&exported, folder, options.overwrite)?);
    }
    if let Some(path) = &options.onnx {
        exported.save_onnx(path)?;
        said.push(format!(
            "{}: ONNX opset {OPSET}; input `pixels` N×3×{1}×{1}, output `embedding` N×{2}",
            path.display(),
            exported.preprocessing.size,
            exported.features
        ));
    }
    if let Some(path) = &options.bf16 {
        model.save(path)?;
        let fingerprint = Model::load(path)?.fingerprint().to_string();
        said.push(format!("{}: the model alone, fingerprint {fingerprint}", path.display()));
    }
    if let Some(path) = &options.safetensors {
        AtomicFile::write(path, &exported.weights()?).map_err(failed(path))?;
        said.push(how_to_load(&exported, &path.display().to_string(), "torchvision.models"));
    }
    Ok(said)
}

/// The model for the size and the images that were asked for.
fn refitted(
    model: &Model,
    options: &ExportOptions,
    open: &dyn Fn() -> Result<Device, Error>,
) -> Result<Model, Error> {
    let model = match options.size {
        Some(size) => model.at_size(size)?,
        None => model.clone(),
    };
    let Some(folder) = &options.whiten_on else {
        return Ok(model);
    };
    let found = find_pictures(folder, LabelChoice::None)?.files();
    let files = Whitening::sample(found.len()).map(|i| found[i].path.clone());
    let files = files.collect();
    let features = refit::features_of_files(&model, files, &open()?, options.threads)?;
    Ok(model.whitened(&features, options.whiten)?)
}

/// What timm's folder consists of: weights and what is to be known of them.
fn timm_files(folder: &Path) -> [PathBuf; 2] {
    ["model.safetensors", "config.json"].map(|name| folder.join(name))
}

fn timm(exported: &Exported, folder: &Path, overwrite: bool) -> Result<String, Error> {
    let (config, bytes) = (exported.timm_config()?, exported.weights()?);
    let [weights, about] = timm_files(folder);
    Disk.create_folders(folder).map_err(failed(folder))?;
    ExportOptions::check_files([&weights, &about], overwrite)?;
    for (path, bytes) in [(&weights, bytes.as_slice()), (&about, config.as_bytes())] {
        AtomicFile::write(path, bytes).map_err(failed(path))?;
    }
    let shown = folder.display();
    Ok(match stem(exported) {
        Form::Large => format!(
            "{shown}: load it with\n  timm.create_model('local-dir:{shown}', pretrained=True)"
        ),
        Form::Small | Form::Medium => how_to_load(exported, &weights.display().to_string(), "timm"),
    })
}

fn stem(exported: &Exported) -> Form {
    exported.network.form(exported.preprocessing.size)
}

/// What to type in Python.
fn how_to_load(of: &Exported, path: &str, library: &str) -> String {
    let network = of.network;
    let name = network.architecture.name;
    if !name.starts_with("resnet") {
        return format!(
            "{path}: the weights of {name}, by the layers' names; no other library has this \
             network"
        );
    }
    if network.width != network.architecture.width {
        return format!(
            "{path}: with torchvision's names; its {name} is {} channels wide, this one {}",
            network.architecture.width, network.width
        );
    }
    let features = of.features;
    let make = match (library, of.has_fc) {
        ("timm", true) => {
            format!("model = timm.create_model('{name}', num_classes={features})")
        }
        ("timm", false) => format!("model = timm.create_model('{name}', num_classes=0)"),
        (_, true) => format!("model = torchvision.models.{name}(num_classes={features})"),
        (_, false) => {
            format!("model = torchvision.models.{name}()\n  model.fc = torch.nn.Identity()")
        }
    };
    let first = |stride| {
        format!(
            "\n  model.conv1 = torch.nn.Conv2d(3, 64, 3, {stride}, 1, bias=False)\n  \
             model.maxpool = torch.nn.Identity()"
        )
    };
    let stem = match stem(of) {
        Form::Small => first(1),
        Form::Medium => first(2),
        Form::Large => String::new(),
    };
    format!(
        "{path}: load it with\n  {make}{stem}\n  \
         model.load_state_dict(safetensors.torch.load_file('{path}'))"
    )
}

fn check_output(path: &Path, overwrite: bool) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let why = if !folder.is_dir() {
        format!("there is no folder {} to write it to", folder.display())
    } else if path.file_name().is_none() || path.is_dir() {
        "is a folder; give the name of a file".into()
    } else if path.exists() && !path.is_file() {
        // A rename would put a file in the place of a device or a pipe, for every program that uses
        // it.
        "is no file that could be replaced; choose another name".into()
    } else if path.exists() && !overwrite {
        "exists already; choose another name, or give --overwrite to replace it".into()
    } else {
        return Ok(());
    };
    Err(usage!("{}: {why}", path.display()))
}

/// What the system said about a file.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |e| Error::failed(format!("{path}: {e}"))
}
