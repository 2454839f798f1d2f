//! A network's tensors by name, as other programs keep them: PyTorch's `state_dict` in a
//! safetensors file or by `torch.save`.
//!
//! torchvision's ResNets and ours have the same names and layouts. What has no meaning here
//! (`num_batches_tracked`) is passed over; a last layer of another size is left as the network has
//! it, and said; anything else that does not fit is an error that names every such tensor, and
//! nothing is loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anchorhood_engine::{Graph, Network, Tensors};
use anchorhood_storage::{Disk, FileSystem};
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use crate::{BACKBONES, Backbone, Form, Stages, torch_file};

/// Names shown of each kind of mistake before the rest is only counted.
const SHOWN: usize = 4;

/// Named tensors, in PyTorch's layouts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// The metadata of a safetensors file.
    notes: BTreeMap<String, String>,
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Tensors taken over.
    pub tensors: usize,
    /// Why the last layer was left as it was, if it was.
    pub fc_left: Option<String>,
}

/// Weights in a graph's order.
#[derive(Clone, Debug)]
pub struct Fitted<'a> {
    /// Each parameter's numbers; none where the last layer is left as the network has it.
    pub values: Vec<Option<&'a [f32]>>,
    /// Why it is, if it is.
    pub fc_left: Option<String>,
}

/// What weights are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The network.
    pub architecture: &'static Backbone,
    /// What its first layers are made for.
    pub form: Form,
    /// Channels after its stem.
    pub width: usize,
}

/// Why weights cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The system refused to read the file.
    #[error("{}: cannot read the weights: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are neither safetensors nor what PyTorch writes.
    #[error(
        "{}: not a safetensors file ({reason}); write one with \
         safetensors.torch.save_file(model.state_dict(), …)",
        .path.display()
    )]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// A file that holds something else than numbers to compute with, or an archive that cannot be
    /// read.
    #[error("{}: {reason}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// No network here has such tensors.
    #[error("the weights are of no network that is known here: {0}")]
    Unknown(String),
    /// Tensors that do not fit the network.
    #[error("the weights are not of this network: {0}")]
    Misfit(String),
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
}

impl Weights {
    /// Reads a safetensors file, or one of `torch.save`.
    pub fn read(path: &Path) -> Result<Weights, WeightsError> {
        let read = |source| WeightsError::Read { path: path.into(), source };
        Weights::decode(&Disk.read(path).map_err(read)?, path)
    }

    /// The same from bytes; `path` names them in errors.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Weights, WeightsError> {
        let bad = |reason| WeightsError::BadFile { path: path.into(), reason };
        let (raw, notes) = if torch_file::is_archive(bytes) {
            let not = "not what torch.save(model.state_dict(), …) writes";
            let tensors = torch_file::tensors(bytes).map_err(|why| bad(format!("{not}: {why}")))?;
            (tensors, BTreeMap::new())
        } else {
            safetensors_of(bytes).map_err(|e| WeightsError::NotSafetensors {
                path: path.into(),
                reason: e.to_string(),
            })?
        };
        let mut tensors = BTreeMap::new();
        for (name, tensor) in raw.into_iter().filter(|(name, _)| !is_counter(name)) {
            let values = floats(&tensor).ok_or_else(|| {
                bad(format!("{name} is not of f32, f16 or bf16 numbers; convert it with .float()"))
            })?;
            if let Some(value) = values.iter().find(|v| !v.is_finite()) {
                return Err(bad(format!(
                    "{name} holds {value}; features of such weights would be numbers that are none"
                )));
            }
            tensors.insert(name, (tensor.shape().to_vec(), values));
        }
        Ok(Weights { tensors, notes })
    }

    /// All weights and statistics of a network.
    pub fn of(network: &Network) -> Result<Weights, WeightsError> {
        let mut tensors = BTreeMap::new();
        for (i, p) in network.graph().parameters().iter().enumerate() {
            let values = network.read(Tensors::Values, i)?;
            tensors.insert(p.name.clone(), (p.shape.clone(), values));
        }
        Ok(Weights { tensors, notes: BTreeMap::new() })
    }

    /// The bytes of a safetensors file that `load_state_dict(safetensors.torch.load_file(…))`
    /// takes.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = |values: &[f32]| -> Vec<u8> {
            let each = values.iter().flat_map(|v| v.to_le_bytes());
            each.collect()
        };
        let blobs: Vec<(&String, &Vec<usize>, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, (shape, values))| (name, shape, bytes(values)))
            .collect();
        let views = blobs.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
            (name.as_str(), view.expect("the bytes have their shape"))
        });
        safetensors::serialize(views, None).expect("the tensors are valid")
    }

    /// What the metadata of its safetensors file says under a name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// A tensor's dimensions.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|(shape, _)| shape.as_slice())
    }

    /// A tensor's numbers.
    pub fn values(&self, name: &str) -> Option<&[f32]> {
        self.tensors.get(name).map(|(_, values)| values.as_slice())
    }

    /// Which network they are of, by their names and shapes; or what no network here has.
    pub fn recognise(&self) -> Result<Recognised, WeightsError> {
        let none = |why: &str| WeightsError::Unknown(why.into());
        let stem = self.shape("conv1.weight").filter(|s| s.len() == 4);
        let stem = stem.ok_or_else(|| none("there is no conv1.weight of four dimensions"))?;
        let blocks = [1, 2, 3, 4].map(|stage| {
            let is = |n: &usize| self.shape(&format!("layer{stage}.{n}.conv1.weight")).is_some();
            (0..64).take_while(is).count()
        });
        let bottleneck = self.shape("layer1.0.conv3.weight").is_some();
        let stages = Some(Stages { blocks, bottleneck });
        let architecture = BACKBONES.all().into_iter().find(|a| a.stages() == stages);
        let architecture = architecture
            .ok_or_else(|| none("its blocks are those of no ResNet10, 18, 34, 50 or 101"))?;
        let form = architecture.form_of_stem(stem[3]).ok_or_else(|| {
            let wide = stem[3];
            none(&format!("its first convolution is {wide}×{wide} pixels wide"))
        })?;
        Ok(Recognised { architecture, form, width: stem[0] })
    }

    /// The numbers of a graph's parameters, in its order: none of `fc` where that is of another
    /// size. A graph without `fc` leaves the file's; anything else that does not fit is named,
    /// every such tensor.
    pub fn fit(&self, graph: &Graph) -> Result<Fitted<'_>, WeightsError> {
        let parameters = graph.parameters();
        let fc_left = self.other_fc(graph);
        let skipped = |name: &str| fc_left.is_some() && is_fc(name);
        let (mut missing, mut misshapen, mut values) = (vec![], vec![], vec![]);
        for p in parameters {
            match self.tensors.get(&p.name) {
                _ if skipped(&p.name) => values.push(None),
                None => missing.push(p.name.clone()),
                Some((shape, _)) if *shape != p.shape => misshapen.push(format!(
                    "{} (the file has {}, the network {})",
                    p.name,
                    dimensions(shape),
                    dimensions(&p.shape)
                )),
                Some((_, own)) => values.push(Some(&own[..])),
            }
        }
        let has_fc = parameters.iter().any(|p| is_fc(&p.name));
        let known = |name: &str| {
            let cut_off = !has_fc && is_fc(name);
            cut_off || parameters.iter().any(|p| p.name == name)
        };
        let names = self.tensors.keys().filter(|name| !known(name));
        let unknown: Vec<String> = names.cloned().collect();
        let kinds = [("missing", missing), ("of another shape", misshapen), ("unknown", unknown)];
        let said: Vec<String> = (kinds.iter())
            .filter(|(_, names)| !names.is_empty())
            .map(|(kind, names)| format!("{kind} {}", listed(names)))
            .collect();
        match said.is_empty() {
            true => Ok(Fitted { values, fc_left }),
            false => Err(WeightsError::Misfit(said.join("; "))),
        }
    }

    /// Copies everything into a network, which must have its initial values: where `fc` is of
    /// another size it keeps them.
    pub fn load_into(&self, network: &mut Network) -> Result<Loaded, WeightsError> {
        let Fitted { values, fc_left } = self.fit(network.graph())?;
        let mut tensors = 0;
        for (i, values) in values.into_iter().enumerate() {
            if let Some(values) = values {
                network.write(Tensors::Values, i, values)?;
                tensors += 1;
            }
        }
        Ok(Loaded { tensors, fc_left })
    }

    /// Why `fc` cannot be taken over, where that is only for its number of outputs.
    fn other_fc(&self, graph: &Graph) -> Option<String> {
        let ours = graph.parameters();
        let ours = &ours.iter().find(|p| p.name == "fc.weight")?.shape;
        let theirs = self.shape("fc.weight")?;
        let same_inputs = theirs.len() == 2 && theirs[1] == ours[1];
        (same_inputs && theirs[0] != ours[0]).then(|| {
            format!(
                "fc gives {} values in the file and {} here, so it was left at its initial values",
                theirs[0], ours[0]
            )
        })
    }
}

/// Tensors by name, and metadata.
type Contents<'a> = (Vec<(String, TensorView<'a>)>, BTreeMap<String, String>);

fn safetensors_of<'a>(bytes: &'a [u8]) -> Result<Contents<'a>, SafeTensorError> {
    let file = SafeTensors::deserialize(bytes)?;
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let notes = header.metadata().clone().unwrap_or_default();
    Ok((file.tensors(), notes.into_iter().collect()))
}

/// A tensor's numbers, if they are of a kind that weights are.
fn floats(tensor: &TensorView) -> Option<Vec<f32>> {
    let halves = || tensor.data().as_chunks::<2>().0.iter();
    match tensor.dtype() {
        Dtype::F32 => {
            let words = tensor.data().as_chunks::<4>().0.iter();
            Some(words.map(|b| f32::from_le_bytes(*b)).collect())
        }
        Dtype::F16 => Some(halves().map(|b| f16::from_le_bytes(*b).to_f32()).collect()),
        Dtype::BF16 => Some(halves().map(|b| bf16::from_le_bytes(*b).to_f32()).collect()),
        _ => None,
    }
}

/// PyTorch's count of the batches a norm has seen.
fn is_counter(name: &str) -> bool {
    name.ends_with(".num_batches_tracked")
}

fn is_fc(name: &str) -> bool {
    matches!(name, "fc.weight" | "fc.bias")
}

fn dimensions(shape: &[usize]) -> String {
    let each: Vec<String> = shape.iter().map(usize::to_string).collect();
    each.join("×")
}

fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RESNET10, RESNET18, RESNET34, RESNET50, RESNET101};
    use anchorhood_engine::{Device, NetworkOptions};

    fn network(features: usize, seed: u64) -> Network {
        let graph = RESNET18.graph(8, 2, features).unwrap();
        let mut network = Device::cpu(1).network(&graph, &NetworkOptions::new(1)).unwrap();
        network.initialise(seed).unwrap();
        network
    }

    fn again(weights: &Weights) -> Weights {
        Weights::decode(&weights.encode(), Path::new("a.safetensors")).unwrap()
    }

    #[test]
    fn written_and_read_back_they_are_the_same() {
        let first = Weights::of(&network(8, 1)).unwrap();
        let mut other = network(8, 2);
        let loaded = again(&first).load_into(&mut other).unwrap();
        assert_eq!((loaded.tensors, loaded.fc_left), (first.tensors.len(), None));
        assert_eq!(Weights::of(&other).unwrap(), first);
    }

    #[test]
    fn networks_are_recognised_by_their_tensors() {
        for (architecture, size, form) in [
            (&RESNET10, 8, Form::Small),
            (&RESNET18, 8, Form::Small),
            (&RESNET34, 8, Form::Small),
            (&RESNET50, 128, Form::Large),
            (&RESNET101, 8, Form::Small),
        ] {
            let graph = architecture.graph(size, 2, 8).unwrap();
            let network = Device::cpu(1).network(&graph, &NetworkOptions::new(1));
            let weights = Weights::of(&network.unwrap()).unwrap();
            let expected = Recognised { architecture, form, width: 2 };
            assert_eq!(weights.recognise().unwrap(), expected);
        }
        let error = Weights::default().recognise().unwrap_err().to_string();
        assert!(error.contains("no conv1.weight"), "{error}");
    }

    #[test]
    fn a_last_layer_of_another_size_is_left_and_said() {
        let theirs = Weights::of(&network(1000, 1)).unwrap();
        let mut ours = network(8, 2);
        let before = Weights::of(&ours).unwrap();
        let said = theirs.load_into(&mut ours).unwrap().fc_left.unwrap();
        assert!(said.contains("1000") && said.contains('8'), "{said}");
        let after = Weights::of(&ours).unwrap();
        for (name, tensor) in &after.tensors {
            let from = if is_fc(name) { &before } else { &theirs };
            assert_eq!(tensor, &from.tensors[name], "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named_and_nothing_is_loaded() {
        let mut theirs = Weights::of(&network(8, 1)).unwrap();
        theirs.tensors.remove("bn1.weight");
        let conv = theirs.tensors.remove("conv1.weight").unwrap();
        theirs.tensors.insert("module.conv1.weight".into(), conv);
        let small = (vec![2, 2], vec![0.0; 4]);
        theirs.tensors.insert("layer1.0.conv1.weight".into(), small);
        let mut ours = network(8, 2);
        let before = Weights::of(&ours).unwrap();
        let error = theirs.load_into(&mut ours).unwrap_err().to_string();
        for part in [
            "missing conv1.weight, bn1.weight",
            "of another shape layer1.0.conv1.weight (the file has 2×2, the network 2×2×3×3)",
            "unknown module.conv1.weight",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(Weights::of(&ours).unwrap(), before);
    }

    #[test]
    fn numbers_that_are_none_are_refused_by_name() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut theirs = Weights::of(&network(8, 1)).unwrap();
            let last = |(_, values): &mut (_, Vec<f32>)| *values.last_mut().unwrap() = value;
            theirs.tensors.get_mut("layer2.0.bn1.weight").map(last);
            let error = Weights::decode(&theirs.encode(), Path::new("a.safetensors")).unwrap_err();
            let said = error.to_string();
            let expected = format!("a.safetensors: layer2.0.bn1.weight holds {value}");
            assert!(said.starts_with(&expected), "{said}");
        }
    }

    #[test]
    fn counters_are_passed_over_and_other_numbers_refused() {
        let view = |dtype, bytes| TensorView::new(dtype, vec![1], bytes).unwrap();
        let file = |name: &str, dtype, bytes| {
            let bytes = safetensors::serialize([(name, view(dtype, bytes))], None).unwrap();
            Weights::decode(&bytes, Path::new("a.safetensors"))
        };
        let counted = file("bn1.num_batches_tracked", Dtype::I64, &[0; 8]).unwrap();
        assert_eq!(counted, Weights::default());
        let halves = file("conv1.weight", Dtype::F16, &[0, 0x3c]).unwrap();
        assert_eq!(halves.tensors["conv1.weight"].1, [1.0]);
        let error = file("conv1.weight", Dtype::I16, &[0; 2]).unwrap_err();
        assert!(error.to_string().contains("conv1.weight is not of f32"), "{error}");
        let error = Weights::decode(b"no such thing", Path::new("b.bin")).unwrap_err();
        assert!(error.to_string().starts_with("b.bin: not a safetensors"), "{error}");
    }
}
