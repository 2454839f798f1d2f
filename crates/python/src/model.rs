//! A model on a device, and what it makes of pictures.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anchorhood::research::Squaring;
use anchorhood::{
    Device, Error, ExportOptions, Images, MachineConfig, Picture, Pictures, Preset, evaluate,
    export, load_model, open_device,
};
use anchorhood_export::Exported;
use anchorhood_index::{Embedder, SearchError, embed_paths};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::exception;
use crate::lent::{Lent, copied};
use crate::train::{Own, dataset};
use crate::warn::Warnings;
use crate::work::{Worker, compute, work};

/// A model, its device, and networks that are there already. Several threads may use it: each takes
/// a network of its own.
pub struct Loaded {
    /// The model.
    pub model: anchorhood::Model,
    /// Where it runs.
    pub device: Device,
    /// Threads that decode.
    pub threads: usize,
    free: Mutex<Vec<(Option<String>, Embedder)>>,
}

impl Loaded {
    /// Does something with the network of a layer, for at least so many pictures at a time.
    pub fn with_embedder<T>(
        &self,
        layer: Option<&str>,
        pictures: usize,
        work: impl FnOnce(&mut Embedder) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let fits =
            |(of, e): &(Option<String>, Embedder)| of.as_deref() == layer && e.batch() >= pictures;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().position(fits).map(|i| free.swap_remove(i).1);
        drop(free);
        let mut embedder = match found {
            Some(embedder) => embedder,
            None => self.model.embedder(&self.device, pictures, layer)?,
        };
        let done = work(&mut embedder)?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // A smaller one would not be asked for again.
        free.retain(|(of, e)| of.as_deref() != layer || e.batch() >= embedder.batch());
        free.push((layer.map(String::from), embedder));
        Ok(done)
    }

    /// The vectors of pictures that lie in memory, which are resized where the network wants
    /// another size.
    pub fn vectors<T, M>(
        &self,
        pictures: &Lent,
        batch: usize,
        layer: Option<&str>,
        worker: &Worker<T, M>,
    ) -> Result<(usize, Vec<f32>), SearchError> {
        let [n, height, width] = pictures.shape;
        let at_a_time = batch.min(n).max(1);
        self.with_embedder(layer, at_a_time, |embedder| {
            let size = embedder.size();
            let mut vectors = Vec::with_capacity(n * embedder.dim());
            for some in pictures.bytes().chunks(at_a_time * height * width * 3) {
                match (height, width) == (size, size) {
                    true => embedder.embed(some, &mut vectors)?,
                    false => {
                        let some = Pictures::new(height, width, some.to_vec())?;
                        let resized = self.device.within(|| some.resized(size))?;
                        embedder.embed(resized.raw(), &mut vectors)?;
                    }
                }
                if worker.stopped() {
                    break;
                }
            }
            Ok((embedder.dim(), vectors))
        })
    }
}

/// A model on a device.
#[pyclass(frozen, module = "anchorhood._native")]
pub struct Model {
    /// Shared with the threads that work.
    pub loaded: Arc<Loaded>,
}

/// A picture of any size: width, height, bytes.
type AnyPicture = (usize, usize, Vec<u8>);
/// Vectors as an array of rows.
type Rows<'py> = Bound<'py, PyArray2<f32>>;

#[pymethods]
impl Model {
    /// Finds and reads the model that a word means, and takes hold of the device.
    #[new]
    fn new(
        py: Python<'_>,
        word: String,
        runs: PathBuf,
        device: &str,
        precision: &str,
        threads: usize,
    ) -> PyResult<Self> {
        let machine = machine(device, precision, threads).map_err(exception)?;
        let (loaded, warnings) = compute(py, move |_| {
            let mut warnings = Warnings::default();
            let model = load_model(&runs, &word, &mut |event| warnings.hear(event))?;
            let device = open_device(&machine, &mut |event| warnings.hear(event))?;
            let threads = machine.thread_count();
            Ok((Loaded { model, device, threads, free: Mutex::default() }, warnings))
        })?;
        warnings.say(py)?;
        Ok(Model { loaded: Arc::new(loaded) })
    }

    /// The file it was read from, or `base`.
    #[getter]
    fn path(&self) -> String {
        self.loaded.model.path().display().to_string()
    }

    #[getter]
    fn fingerprint(&self) -> &str {
        self.loaded.model.fingerprint()
    }

    /// Pixels a side of what it is given.
    #[getter]
    fn size(&self) -> usize {
        self.loaded.model.input().size
    }

    /// Mean and standard deviation of each channel that pictures are normalised by.
    #[getter]
    fn normalisation(&self) -> ([f32; 3], [f32; 3]) {
        let input = self.loaded.model.input();
        (input.mean, input.std)
    }

    /// Name and width of its network; none of an ONNX file.
    #[getter]
    fn network(&self) -> Option<(String, usize)> {
        let network = self.loaded.model.network().ok()?;
        Some((network.architecture.name.into(), network.width))
    }

    /// Where it runs.
    #[getter]
    fn device(&self) -> String {
        self.loaded.device.describe()
    }

    /// Length of a vector.
    fn dim(&self, py: Python<'_>, layer: Option<String>) -> PyResult<usize> {
        let loaded = self.loaded.clone();
        compute(py, move |_| Ok(loaded.with_embedder(layer.as_deref(), 1, |e| Ok(e.dim()))?))
    }

    /// The vectors of N×H×W×3 bytes, which are read where they lie.
    fn embed_array<'py>(
        &self,
        py: Python<'py>,
        pictures: &Bound<'py, PyArray4<u8>>,
        batch: usize,
        layer: Option<String>,
    ) -> PyResult<Rows<'py>> {
        let (loaded, pictures) = (self.loaded.clone(), Lent::of(pictures)?);
        let (dim, vectors) = compute(py, move |worker| {
            Ok(loaded.vectors(&pictures, batch, layer.as_deref(), worker)?)
        })?;
        rows(py, dim, vectors)
    }

    /// The vectors of pictures of any sizes, H×W×3 bytes each: of the central square, as of files.
    fn embed_pictures<'py>(
        &self,
        py: Python<'py>,
        pictures: Vec<Bound<'py, PyArray3<u8>>>,
        batch: usize,
        layer: Option<String>,
    ) -> PyResult<Rows<'py>> {
        let pictures: PyResult<Vec<AnyPicture>> = pictures.iter().map(copied).collect();
        let (loaded, pictures) = (self.loaded.clone(), pictures?);
        let (dim, vectors) = compute(py, move |worker| {
            let embed = |embedder: &mut Embedder| {
                let mut vectors = vec![];
                for some in pictures.chunks(batch.max(1)) {
                    let by = embedder.squaring();
                    let some = loaded.device.within(|| squares(by, some))?;
                    embedder.embed(some.raw(), &mut vectors)?;
                    if worker.stopped() {
                        break;
                    }
                }
                Ok((embedder.dim(), vectors))
            };
            let at_a_time = batch.min(pictures.len());
            Ok(loaded.with_embedder(layer.as_deref(), at_a_time, embed)?)
        })?;
        rows(py, dim, vectors)
    }

    /// The vectors of picture files that can be read; the numbers of the others, each with the
    /// reason. `progress` is told how many are done.
    fn embed_files<'py>(
        &self,
        py: Python<'py>,
        files: Vec<PathBuf>,
        batch: usize,
        layer: Option<String>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Rows<'py>, Vec<(usize, String)>)> {
        let loaded = self.loaded.clone();
        let mut hear = |done: usize| match &progress {
            Some(progress) => progress.call1((done,)).map(|_| ()),
            None => Ok(()),
        };
        let done = work(py, Duration::ZERO, &mut hear, move |worker| {
            let at_a_time = batch.min(files.len());
            Ok(loaded.with_embedder(layer.as_deref(), at_a_time, |embedder| {
                let mut tell = |done| worker.tell(done);
                let found = embed_paths(embedder, files, loaded.threads, &mut tell, worker.stop())?;
                Ok((embedder.dim(), found))
            })?)
        });
        let ((dim, found), interrupted) = done?;
        if let Some(interrupted) = interrupted {
            return Err(interrupted);
        }
        let (mut vectors, mut failed) = (vec![], vec![]);
        for (i, vector) in found.into_iter().enumerate() {
            match vector {
                Ok(vector) => vectors.extend(vector),
                Err(why) => failed.push((i, why)),
            }
        }
        Ok((rows(py, dim, vectors)?, failed))
    }

    /// Writes files for other programs: ONNX, weights, timm's folder, a model alone. Gives for each
    /// how it is loaded.
    #[pyo3(signature = (onnx, safetensors, timm, bf16, size, whiten_on, whiten, overwrite))]
    fn export(
        &self,
        py: Python<'_>,
        onnx: Option<PathBuf>,
        safetensors: Option<PathBuf>,
        timm: Option<PathBuf>,
        bf16: Option<PathBuf>,
        size: Option<usize>,
        whiten_on: Option<PathBuf>,
        whiten: f64,
        overwrite: bool,
    ) -> PyResult<Vec<String>> {
        let loaded = self.loaded.clone();
        let threads = loaded.threads;
        let options = ExportOptions {
            onnx,
            safetensors,
            timm,
            bf16,
            size,
            whiten_on,
            whiten,
            overwrite,
            threads,
        };
        compute(py, move |_| export(&loaded.model, &options, &|| Ok(loaded.device.clone())))
    }

    /// kNN accuracy of its vectors and of raw pixels on labelled pictures: of a place, or given.
    fn evaluate(
        &self,
        py: Python<'_>,
        place: Option<String>,
        own: Option<Own<'_>>,
        k: Option<usize>,
    ) -> PyResult<(f64, f64)> {
        let own = own.map(dataset).transpose()?;
        let loaded = self.loaded.clone();
        compute(py, move |_| {
            let images = match own {
                Some(own) => Images::in_memory(own),
                None => Images::open(place.unwrap_or_default())?,
            };
            let found =
                loaded.device.within(|| evaluate(&loaded.model, &images, &loaded.device, k))?;
            Ok((found.model.top1, found.raw_pixels.top1))
        })
    }

    /// The bytes of a safetensors file with torchvision's names.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let loaded = self.loaded.clone();
        let bytes = compute(py, move |_| Ok(Exported::of(&loaded.model)?.weights()?))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// A device, what numbers a GPU computes with, and threads.
pub fn machine(device: &str, precision: &str, threads: usize) -> Result<MachineConfig, Error> {
    let mut config = Preset::Quick.config("");
    config.set("machine.device", device)?;
    config.set("machine.precision", precision)?;
    config.set("machine.threads", &threads.to_string())?;
    config.check()?;
    Ok(config.machine)
}

/// The squares of pictures of any sizes: the central ones, of a size alone.
pub fn squares(by: impl Into<Squaring>, pictures: &[AnyPicture]) -> Result<Pictures, SearchError> {
    let picture = |(width, height, rgb): &AnyPicture| {
        let made = Picture::from_rgb(*width as u32, *height as u32, rgb.clone());
        made.map_err(SearchError::Impossible)
    };
    let pictures: Result<Vec<Picture>, SearchError> = pictures.iter().map(picture).collect();
    Ok(Pictures::squares(by, &pictures?)?)
}

/// Values as rows of `dim`, without a copy.
pub fn rows(py: Python<'_>, dim: usize, values: Vec<f32>) -> PyResult<Rows<'_>> {
    let n = values.len() / dim.max(1);
    let flat: Bound<'_, PyArray1<f32>> = values.into_pyarray(py);
    flat.reshape([n, dim])
}
