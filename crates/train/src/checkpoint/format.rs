//! The bytes of a checkpoint: safetensors, format version 1.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | a weight or statistic, by torchvision's name | F32 | PyTorch's |
//! | `momentum.` and a weight's name | F32 | the weight's |
//! | a head's namespace, a dot, and the same | F32 | PyTorch's |
//! | `memory` | F32 | pictures × features |
//! | `neighbours` | U32 | pictures × k (from round 1 on) |
//! | `anchors` | U8, 0 or 1 | pictures (from round 1 on) |
//! | `entropy` | F32 | pictures (from round 1 on) |
//!
//! Metadata: `format` (anchorhood-checkpoint), `version`, `program`, `config` (TOML), `standing` (JSON), `order` (JSON:
//! weight names in the network's order, since safetensors sorts its tensors), `heads` (JSON: the same for each namespace),
//! `state` (JSON: names of the tensors that the method keeps beside its networks), `input` (JSON: size, mean and std of the
//! pictures; files from before it was kept have none).

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use anchorhood_methods::{StateDict, StateTensor, Values, neighbourhoods_of};

use super::{Checkpoint, Head, InputForm, Tensor};
use crate::{RunConfig, Standing};

const FORMAT: &str = "anchorhood-checkpoint";
const VERSION: &str = "1";

pub(super) fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut blobs: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = vec![];
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
    for t in &checkpoint.weights {
        let name = t.name.clone();
        blobs.push((name, Dtype::F32, t.shape.clone(), floats(&t.values)));
    }
    for t in &checkpoint.momentum {
        let name = format!("momentum.{}", t.name);
        blobs.push((name, Dtype::F32, t.shape.clone(), floats(&t.values)));
    }
    for h in &checkpoint.heads {
        for (before, tensors) in [("", &h.weights), ("momentum.", &h.momentum)] {
            for t in tensors {
                let name = format!("{before}{}.{}", h.namespace, t.name);
                blobs.push((name, Dtype::F32, t.shape.clone(), floats(&t.values)));
            }
        }
    }
    for t in &checkpoint.state.tensors {
        let (dtype, bytes) = match &t.values {
            Values::F32(values) => (Dtype::F32, floats(values)),
            Values::U32(values) => {
                let bytes = values.iter().flat_map(|v| v.to_le_bytes());
                (Dtype::U32, bytes.collect())
            }
            Values::U8(values) => (Dtype::U8, values.clone()),
        };
        blobs.push((t.name.clone(), dtype, t.shape.clone(), bytes));
    }
    let views = blobs.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        (name.as_str(), view.expect("the bytes have their shape"))
    });
    safetensors::serialize(views, Some(metadata(checkpoint))).expect("the tensors are valid")
}

fn metadata(checkpoint: &Checkpoint) -> HashMap<String, String> {
    let input = checkpoint.input.as_ref().map(serde_json::to_string);
    let names = |of: &[Tensor]| of.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
    let order = names(&checkpoint.weights);
    let heads = checkpoint.heads.iter();
    let heads: Vec<_> = heads.map(|h| (&h.namespace, names(&h.weights))).collect();
    let state = checkpoint.state.tensors.iter();
    let state: Vec<&str> = state.map(|t| t.name.as_str()).collect();
    let json = |v: serde_json::Result<String>| v.expect("plain values become JSON");
    [
        ("format", FORMAT.into()),
        ("version", VERSION.into()),
        ("program", checkpoint.program.clone()),
        ("config", checkpoint.config.to_toml()),
        (
            "standing",
            json(serde_json::to_string(&checkpoint.standing)),
        ),
        ("order", json(serde_json::to_string(&order))),
        ("heads", json(serde_json::to_string(&heads))),
        ("state", json(serde_json::to_string(&state))),
    ]
    .into_iter()
    .chain(input.map(|input| ("input", json(input))))
    .map(|(k, v)| (k.to_string(), v))
    .collect()
}

/// The reason is a clause: "the file ends early".
pub(super) fn decode(bytes: &[u8]) -> Result<Checkpoint, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| damage(bytes, &e))?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| damage(bytes, &e))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let field = |name: &str| {
        let value = metadata.get(name).cloned();
        value.ok_or(format!("it has no `{name}` (it may be of another program)"))
    };
    if field("format")? != FORMAT {
        return Err("it is of another program".into());
    }
    let version = field("version")?;
    if version != VERSION {
        return Err(format!(
            "it has format version {version}, and this program reads version {VERSION}"
        ));
    }
    let config = RunConfig::from_toml(&field("config")?, "its configuration");
    let config = config.map_err(|e| e.to_string())?;
    config.check().map_err(|e| e.to_string())?;
    let standing: Standing =
        serde_json::from_str(&field("standing")?).map_err(|e| format!("its standing: {e}"))?;
    let (position, training) = (standing.position, &config.training);
    if position.epoch >= training.epochs || position.round > training.rounds + 1 {
        return Err(format!("it stands at {position}, beyond its own run"));
    }
    let order: Vec<String> =
        serde_json::from_str(&field("order")?).map_err(|e| format!("its order: {e}"))?;

    let input: Option<Result<InputForm, _>> =
        metadata.get("input").map(|text| serde_json::from_str(text));
    let input = input.transpose().map_err(|e| format!("its input: {e}"))?;
    if let Some(form) = input.filter(|form| !form.is_possible()) {
        return Err(format!("its input cannot be: {form:?}"));
    }

    let (weights, momentum) = network(&file, "", order)?;
    let names: Vec<(String, Vec<String>)> = listed(&metadata, "heads")?.unwrap_or_default();
    let mut heads = vec![];
    for (namespace, order) in names {
        let (weights, momentum) = network(&file, &format!("{namespace}."), order)?;
        heads.push(Head {
            namespace,
            weights,
            momentum,
        });
    }
    let known = ["memory", "neighbours", "anchors", "entropy"];
    let there = |name: &&str| file.tensor(name).is_ok();
    let known = || known.iter().filter(|n| there(n)).map(|n| n.to_string());
    let names: Vec<String> = listed(&metadata, "state")?.unwrap_or_else(|| known().collect());
    let mut state = StateDict::default();
    for name in names {
        let (shape, values) = any(&file, &name)?;
        state.push(&name, shape, values);
    }
    check_state(&state, config.network.features)?;
    Ok(Checkpoint {
        config,
        standing,
        program: field("program")?,
        input,
        weights,
        momentum,
        heads,
        state,
    })
}

/// A list in the metadata; files of version 1 from before methods had names have none.
fn listed<T: serde::de::DeserializeOwned>(
    metadata: &HashMap<String, String>,
    name: &str,
) -> Result<Option<T>, String> {
    let text = metadata.get(name).map(|text| serde_json::from_str(text));
    text.transpose().map_err(|e| format!("its {name}: {e}"))
}

/// A network's tensors, whose names begin alike.
fn network(
    file: &SafeTensors,
    namespace: &str,
    order: Vec<String>,
) -> Result<(Vec<Tensor>, Vec<Tensor>), String> {
    let (mut weights, mut momentum) = (vec![], vec![]);
    for name in order {
        let (shape, values) = floats(file, &format!("{namespace}{name}"))?;
        let held = format!("momentum.{namespace}{name}");
        if file.tensor(&held).is_ok() {
            let (shape, values) = floats(file, &held)?;
            momentum.push(tensor(&name, shape, values));
        }
        weights.push(tensor(&name, shape, values));
    }
    Ok((weights, momentum))
}

/// What can be said of a memory and neighbourhoods without knowing their run.
fn check_state(state: &StateDict, features: usize) -> Result<(), String> {
    let memory = state.get("memory");
    if let Some(StateTensor { shape, .. }) = memory
        && !matches!(shape[..], [_, dim] if dim == features)
    {
        return Err(format!(
            "its memory is {shape:?}, not pictures × {features} features"
        ));
    }
    let found = neighbourhoods_of(state).map_err(|e| e.to_string())?;
    let remembered = memory.map_or(0, |m| m.shape[0]);
    match found {
        Some(found) if found.len() != remembered => Err(format!(
            "its neighbourhoods are of {} pictures, its memory of {remembered}",
            found.len()
        )),
        _ => Ok(()),
    }
}

fn tensor(name: &str, shape: Vec<usize>, values: Vec<f32>) -> Tensor {
    Tensor {
        name: name.into(),
        shape,
        values,
    }
}

fn damage(bytes: &[u8], error: &safetensors::SafeTensorError) -> String {
    use safetensors::SafeTensorError::*;
    match error {
        HeaderTooSmall | InvalidHeaderLength | MetadataIncompleteBuffer => {
            format!(
                "the file ends early or is not a safetensors file ({} bytes)",
                bytes.len()
            )
        }
        _ => format!("it is not a safetensors file, or was damaged ({error})"),
    }
}

fn raw<'a>(file: &SafeTensors<'a>, name: &str, dtype: Dtype) -> Result<TensorView<'a>, String> {
    let view = file.tensor(name).map_err(|_| format!("it has no {name}"))?;
    if view.dtype() != dtype {
        return Err(format!("its {name} is {:?}, not {dtype:?}", view.dtype()));
    }
    Ok(view)
}

fn words(view: &TensorView) -> impl Iterator<Item = [u8; 4]> {
    let (words, _) = view.data().as_chunks::<4>();
    words.iter().copied()
}

fn floats(file: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
    let view = raw(file, name, Dtype::F32)?;
    let values = words(&view).map(f32::from_le_bytes).collect();
    Ok((view.shape().to_vec(), values))
}

/// A tensor of whichever kind it is.
fn any(file: &SafeTensors, name: &str) -> Result<(Vec<usize>, Values), String> {
    let view = file.tensor(name).map_err(|_| format!("it has no {name}"))?;
    let values = match view.dtype() {
        Dtype::F32 => Values::F32(words(&view).map(f32::from_le_bytes).collect()),
        Dtype::U32 => Values::U32(words(&view).map(u32::from_le_bytes).collect()),
        Dtype::U8 => Values::U8(view.data().to_vec()),
        other => return Err(format!("its {name} is {other:?}")),
    };
    Ok((view.shape().to_vec(), values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Position, Preset};
    use anchorhood_random::{Draws, Stream};

    fn small() -> Checkpoint {
        let mut config = Preset::Quick.config("shapes");
        config.network.features = 2;
        Checkpoint {
            config,
            standing: Standing {
                position: Position {
                    round: 1,
                    epoch: 2,
                    batch: 3,
                },
                loss_sum: 0.1 + 0.2,
                last_loss: Some(1.0 / 3.0),
                metrics_bytes: 17,
                ..Standing::default()
            },
            program: "0.0.0".into(),
            input: Some(InputForm {
                size: 32,
                mean: [0.1, 0.2, 0.3],
                std: [0.4, 0.5, 0.6],
            }),
            weights: vec![
                tensor("z", vec![2, 2], vec![0.0, -0.0, f32::MIN_POSITIVE, 1e30]),
                tensor("a", vec![1], vec![f32::NAN]),
            ],
            momentum: vec![tensor("z", vec![2, 2], vec![1.0, 2.0, 3.0, 4.0])],
            heads: vec![Head {
                namespace: "projector".into(),
                weights: vec![tensor("z", vec![1], vec![0.25])],
                momentum: vec![tensor("z", vec![1], vec![-0.25])],
            }],
            state: state(vec![1, 2, 0]),
        }
    }

    fn state(neighbours: Vec<u32>) -> StateDict {
        let mut state = StateDict::default();
        state.push("memory", vec![3, 2], Values::F32(vec![0.5; 6]));
        state.push("neighbours", vec![3, 1], Values::U32(neighbours));
        state.push("anchors", vec![3], Values::U8(vec![1, 0, 1]));
        state.push("entropy", vec![3], Values::F32(vec![0.25, 0.5, 1.0]));
        state
    }

    #[test]
    fn what_was_saved_is_loaded_to_the_bit() {
        let checkpoint = small();
        let back = decode(&encode(&checkpoint)).unwrap();
        let bits = |c: &Checkpoint| -> Vec<u32> {
            let all = c.weights.iter().chain(&c.momentum);
            all.flat_map(|t| t.values.iter().map(|v| v.to_bits()))
                .collect()
        };
        assert_eq!(bits(&back), bits(&checkpoint));
        let names: Vec<&str> = back.weights.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["z", "a"], "in the network's order");
        assert_eq!(back.standing, checkpoint.standing);
        assert_eq!(back.config, checkpoint.config);
        assert_eq!(back.input, checkpoint.input);
        let older = Checkpoint {
            input: None,
            ..checkpoint.clone()
        };
        assert_eq!(decode(&encode(&older)).unwrap().input, None);
        assert_eq!(back.heads, checkpoint.heads);
        assert_eq!(back.state, checkpoint.state);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = encode(&small());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    /// Flipped bits may give a valid checkpoint of other numbers; they must not give a panic.
    #[test]
    fn damaged_files_never_panic() {
        let good = encode(&small());
        let draws = Draws::new(0, Stream::Test, 0, 0);
        let mut errors = 0;
        for trial in 0..4000_u64 {
            let mut bytes = good.clone();
            for flip in 0..1 + trial % 8 {
                let word = draws.word(trial * 8 + flip) as usize;
                let at = word % bytes.len();
                bytes[at] ^= 1 << (word >> 29);
            }
            errors += usize::from(decode(&bytes).is_err());
        }
        assert!(errors > 2000, "most damage is noticed: {errors}");
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let reason = |bytes: &[u8]| decode(bytes).unwrap_err();
        assert_eq!(reason(b""), "the file is empty");
        assert!(reason(b"PK\x03\x04 a zip file, say").contains("not a safetensors file"));
        let data = [0; 4];
        let view = TensorView::new(Dtype::F32, vec![1], &data).unwrap();
        let other = safetensors::serialize([("weight", view)], None).unwrap();
        assert!(reason(&other).contains("another program"));
        let mut beyond = small();
        beyond.standing.position.epoch = beyond.config.training.epochs;
        assert!(reason(&encode(&beyond)).contains("beyond its own run"));
        let mut flat = small();
        flat.input.as_mut().unwrap().std[1] = 0.0;
        assert!(reason(&encode(&flat)).contains("its input cannot be"));
        let mut wrong = small();
        wrong.state = state(vec![1, 3, 0]);
        let why = reason(&encode(&wrong));
        assert!(why.contains("picture 1 has the neighbour 3"), "{why}");
    }
}
