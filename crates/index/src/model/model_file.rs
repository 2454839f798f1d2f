//! A model alone in one file: its weights rounded to bf16, and what it is given of a picture, with
//! nothing of the run that made it.
//!
//! A container of [`anchorhood_storage`], every byte under a checksum. Tensors: the weights and
//! running statistics that the network up to its judged layer has, by torchvision's names, BF16, in
//! PyTorch's layout. Metadata: `format` (anchorhood-model), `program`, `network` (JSON with
//! `order`, the tensors' names in the network's own order), `judged_layer`, `preprocessing` (JSON),
//! `dtype` (BF16), `fingerprint`, that of the rounded numbers, and, where the model is given
//! pictures of another size than it learnt with, that `learnt_size`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use anchorhood_storage::{
    Bytes, Container, Disk, Dtype, FileError, FileProblem, FileSystem, NamedTensor, OpenContainer,
};
use anchorhood_train::{InputForm, NetworkConfig, Tensor, VERSION, fingerprint};
use half::bf16;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::description::Description;
use super::{EngineModel, Model};
use crate::SearchError;
use crate::checked_lines::to_json;

const FORMAT: &str = "anchorhood-model";
const DTYPE: &str = "BF16";

#[derive(Serialize, Deserialize)]
struct NetworkField {
    #[serde(flatten)]
    network: NetworkConfig,
    order: Vec<String>,
}

impl Model {
    /// Writes the model alone, whole or not at all. Its numbers are rounded to bf16, which makes it
    /// another model, with a fingerprint of its own, whose vectors hardly differ.
    pub fn save(&self, path: &Path) -> Result<(), SearchError> {
        self.save_on(&Disk, path)
    }

    /// The same on any disk.
    pub fn save_on(&self, disk: &dyn FileSystem, path: &Path) -> Result<(), SearchError> {
        // What only training needed is left out.
        let model = self.engine()?;
        let count = model.graph.parameters().len();
        let rounded: Vec<Tensor> = model.weights.iter().take(count).map(rounded).collect();
        if let Some(tensor) = rounded.iter().find(|t| !is_finite(t)) {
            let name = &tensor.name;
            return Err(SearchError::damaged_model(path)(format!("its {name} is beyond bf16")));
        }
        let container = Container {
            metadata: self.fields(model, &rounded),
            clock: String::new(),
            tensors: rounded.iter().map(written).collect(),
        };
        Ok(anchorhood_storage::write(&container, path, disk)?)
    }

    fn fields(&self, model: &EngineModel, weights: &[Tensor]) -> BTreeMap<String, String> {
        let network = NetworkField {
            network: model.network.clone(),
            order: weights.iter().map(|t| t.name.clone()).collect(),
        };
        let fields = [
            ("format", FORMAT.into()),
            ("program", VERSION.into()),
            ("network", to_json(&network)),
            ("judged_layer", model.judged_layer().into()),
            ("preprocessing", to_json(&self.input)),
            ("dtype", DTYPE.into()),
            ("fingerprint", fingerprint(&model.network, &self.input, weights)),
        ];
        let learnt = self.learnt_size;
        let other = (learnt != self.input.size).then(|| ("learnt_size", learnt.to_string()));
        let fields = fields.into_iter().chain(other);
        fields.map(|(k, v)| (k.into(), v)).collect()
    }

    /// A model alone whose file's bytes are at hand; `path` names it.
    pub fn of_bytes(path: &Path, bytes: Bytes) -> Result<Model, SearchError> {
        let file = OpenContainer::of_bytes(path, bytes).map_err(reason_of);
        decode(&file.map_err(SearchError::damaged_model(path))?)
    }
}

/// The file, where it is of this kind.
pub(super) fn open(path: &Path) -> Option<OpenContainer> {
    let file = OpenContainer::open(path, &Disk).ok()?;
    let format = file.metadata().get("format").map(String::as_str);
    (format == Some(FORMAT)).then_some(file)
}

/// The model in an open file, every byte of which is checked before any is believed.
pub(super) fn decode(file: &OpenContainer) -> Result<Model, SearchError> {
    let path = file.path();
    let damaged = SearchError::damaged_model(path);
    file.check_all().map_err(|e| damaged(reason_of(e)))?;
    let fields = Fields(file.metadata());
    if fields.text("format").map_err(&damaged)? != FORMAT {
        return Err(damaged("it is something else".into()));
    }
    let dtype = fields.text("dtype").map_err(&damaged)?;
    if dtype != DTYPE {
        let reason = format!("its weights are {dtype}, and this program reads {DTYPE}");
        return Err(damaged(reason));
    }
    let NetworkField { network, order } = fields.json("network").map_err(&damaged)?;
    let preprocessing: InputForm = fields.json("preprocessing").map_err(&damaged)?;
    let learnt_size = match file.metadata().get("learnt_size") {
        None => preprocessing.size,
        Some(text) => text.parse().map_err(|_| {
            damaged(format!("it cannot have learnt with pictures of {text} pixels"))
        })?,
    };
    let description = Description {
        network,
        order,
        judged_layer: fields.text("judged_layer").map_err(&damaged)?.into(),
        preprocessing,
        learnt_size,
        fingerprint: fields.text("fingerprint").map_err(&damaged)?.into(),
    };
    description.check_order().map_err(&damaged)?;
    let weights = description.order.iter().map(|name| read(file, name));
    let weights: Vec<Tensor> = weights.collect::<Result<_, _>>().map_err(&damaged)?;
    description.model(path, weights)
}

/// What is wrong with a file, without its name.
fn reason_of(error: FileError) -> String {
    match error.problem {
        FileProblem::NotContainer(reason) => reason,
        other => other.to_string(),
    }
}

struct Fields<'a>(&'a BTreeMap<String, String>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| format!("it has no `{name}`"))
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let value = serde_json::from_str(self.text(name)?);
        value.map_err(|e| format!("its {name}: {e}"))
    }
}

fn rounded(tensor: &Tensor) -> Tensor {
    let round = |v: &f32| bf16::from_f32(*v).to_f32();
    Tensor { values: tensor.values.iter().map(round).collect(), ..tensor.clone() }
}

fn written(tensor: &Tensor) -> NamedTensor<'static> {
    let values = tensor.values.iter();
    let bytes = values.flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect();
    NamedTensor {
        data: Cow::Owned(bytes),
        ..NamedTensor::new(&tensor.name, Dtype::BF16, &tensor.shape, &[])
    }
}

fn read(file: &OpenContainer, name: &str) -> Result<Tensor, String> {
    let found = file.tensor(name).map_err(reason_of)?;
    if found.dtype != Dtype::BF16 {
        return Err(format!("its {name} is {:?}, not {DTYPE}", found.dtype));
    }
    let (values, _) = found.data.as_chunks::<2>();
    let values = values.iter().map(|v| bf16::from_le_bytes(*v).to_f32());
    let tensor =
        Tensor { name: name.into(), shape: found.shape.to_vec(), values: values.collect() };
    match is_finite(&tensor) {
        true => Ok(tensor),
        false => Err(format!("its {name} holds what is no number")),
    }
}

fn is_finite(tensor: &Tensor) -> bool {
    tensor.values.iter().all(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::small_model;
    use anchorhood_storage::Forgetful;
    use anchorhood_storage::random::{Draws, Stream};

    fn saved(model: &Model) -> Vec<u8> {
        let (disk, path) = (Forgetful::new(), Path::new("/m.safetensors"));
        model.save_on(&disk, path).unwrap();
        disk.read(path).unwrap()
    }

    fn loaded(bytes: &[u8]) -> Result<Model, SearchError> {
        Model::of_bytes(Path::new("m.safetensors"), bytes.to_vec().into())
    }

    #[test]
    fn what_was_saved_is_loaded_and_saved_again_the_same() {
        let model = small_model();
        let bytes = saved(&model);
        let back = loaded(&bytes).unwrap();
        assert_eq!(saved(&back), bytes);
        assert_eq!(back.network().unwrap(), model.network().unwrap());
        assert_eq!(back.input(), model.input());
        let names =
            |m: &Model| m.weights().unwrap().iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&back), names(&model));
        assert_ne!(back.fingerprint(), model.fingerprint());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        model.save(&path).unwrap();
        let from_file = Model::load(&path).unwrap();
        assert_eq!(from_file.fingerprint(), back.fingerprint());
        assert!(from_file.weights().unwrap() == back.weights().unwrap());
    }

    #[test]
    fn damage_and_what_makes_no_sense_are_refused() {
        let bytes = saved(&small_model());
        let draws = Draws::new(0, Stream::Test, 1, 0);
        for trial in 0..200 {
            let word = draws.word(trial) as usize;
            let (at, bit) = (word % bytes.len(), word >> 29);
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let said = loaded(&flipped).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains("m.safetensors: not a whole model"), "{said}");
        }
        for cut in [0, 7, 300, bytes.len() - 1] {
            assert!(loaded(&bytes[..cut]).is_err(), "{cut}");
        }
        let changed = |field: &str, value: &str| {
            let disk = Forgetful::new();
            let path = Path::new("/m.safetensors");
            small_model().save_on(&disk, path).unwrap();
            let mut content = anchorhood_storage::read(path, &disk).unwrap();
            content.metadata.insert(field.into(), value.into());
            anchorhood_storage::write(&content, path, &disk).unwrap();
            let read = loaded(&disk.read(path).unwrap());
            read.map(|_| ()).unwrap_err().to_string()
        };
        assert!(changed("format", "other").contains("something else"));
        assert!(changed("dtype", "I4").contains("are I4, and this program reads BF16"));
        assert!(changed("network", "{}").contains("its network"));
        let far = r#"{"version":2,"size":64,"mean":[0,0,0],"std":[1,1,1]}"#;
        assert!(changed("preprocessing", far).contains("cannot be"));
        assert!(changed("fingerprint", "00").contains("another model"));
        assert!(changed("judged_layer", "nowhere").contains("nowhere"));
    }
}
