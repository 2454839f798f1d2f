//! The bytes of a checkpoint: safetensors, format version 1.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | a weight or statistic, by torchvision's name | F32 | PyTorch's |
//! | `momentum.` and a weight's name | F32 | the weight's |
//! | `memory` | F32 | pictures × features |
//! | `neighbours` | U32 | pictures × k (from round 1 on) |
//! | `anchors` | U8, 0 or 1 | pictures (from round 1 on) |
//! | `entropy` | F32 | pictures (from round 1 on) |
//!
//! Metadata: `format` (anchorhood-checkpoint), `version`, `program`, `config` (TOML), `standing` (JSON), `order` (JSON:
//! weight names in the network's order, since safetensors sorts its tensors), `input` (JSON: size, mean and std of the
//! pictures; files from before it was kept have none).

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::{Checkpoint, InputForm, SavedNeighbourhoods, Tensor};
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
    let n = checkpoint.pictures;
    let memory = vec![n, checkpoint.config.network.features];
    blobs.push((
        "memory".into(),
        Dtype::F32,
        memory,
        floats(&checkpoint.memory),
    ));
    if let Some(found) = &checkpoint.neighbourhoods {
        let words = found.neighbours.iter().flat_map(|v| v.to_le_bytes());
        let anchors = found.anchors.iter().map(|a| u8::from(*a)).collect();
        blobs.push((
            "neighbours".into(),
            Dtype::U32,
            vec![n, found.k],
            words.collect(),
        ));
        blobs.push(("anchors".into(), Dtype::U8, vec![n], anchors));
        blobs.push((
            "entropy".into(),
            Dtype::F32,
            vec![n],
            floats(&found.entropy),
        ));
    }
    let views = blobs.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        (name.as_str(), view.expect("the bytes have their shape"))
    });
    safetensors::serialize(views, Some(metadata(checkpoint))).expect("the tensors are valid")
}

fn metadata(checkpoint: &Checkpoint) -> HashMap<String, String> {
    let input = checkpoint.input.as_ref().map(serde_json::to_string);
    let order: Vec<&str> = checkpoint.weights.iter().map(|t| t.name.as_str()).collect();
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

    let mut weights = vec![];
    let mut momentum = vec![];
    for name in order {
        let (shape, values) = floats(&file, &name)?;
        let held = format!("momentum.{name}");
        if file.tensor(&held).is_ok() {
            let (shape, values) = floats(&file, &held)?;
            momentum.push(tensor(&name, shape, values));
        }
        weights.push(tensor(&name, shape, values));
    }
    let (shape, memory) = floats(&file, "memory")?;
    let pictures = match shape[..] {
        [n, features] if features == config.network.features => n,
        _ => {
            return Err(format!(
                "its memory is {shape:?}, not pictures × {} features",
                config.network.features
            ));
        }
    };
    Ok(Checkpoint {
        config,
        standing,
        program: field("program")?,
        input,
        weights,
        momentum,
        pictures,
        memory,
        neighbourhoods: neighbourhoods(&file, pictures)?,
    })
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

fn neighbourhoods(file: &SafeTensors, n: usize) -> Result<Option<SavedNeighbourhoods>, String> {
    if file.tensor("neighbours").is_err() {
        return Ok(None);
    }
    let neighbours = raw(file, "neighbours", Dtype::U32)?;
    let anchors = raw(file, "anchors", Dtype::U8)?;
    let (entropy_shape, entropy) = floats(file, "entropy")?;
    let k = match neighbours.shape()[..] {
        [rows, k] if rows == n => k,
        _ => return Err(format!("its neighbours are not of {n} pictures")),
    };
    if anchors.shape() != [n] || entropy_shape != [n] {
        return Err(format!("its anchors or entropies are not of {n} pictures"));
    }
    let neighbours: Vec<u32> = words(&neighbours).map(u32::from_le_bytes).collect();
    if let Some(wrong) = neighbours.iter().find(|i| **i as usize >= n) {
        return Err(format!("it names picture {wrong} of {n} as a neighbour"));
    }
    Ok(Some(SavedNeighbourhoods {
        k,
        neighbours,
        anchors: anchors.data().iter().map(|a| *a != 0).collect(),
        entropy,
    }))
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
            pictures: 3,
            memory: vec![0.5; 6],
            neighbourhoods: Some(SavedNeighbourhoods {
                k: 1,
                neighbours: vec![1, 2, 0],
                anchors: vec![true, false, true],
                entropy: vec![0.25, 0.5, 1.0],
            }),
        }
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
        assert_eq!(back.memory, checkpoint.memory);
        assert_eq!(back.neighbourhoods, checkpoint.neighbourhoods);
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
        wrong.neighbourhoods.as_mut().unwrap().neighbours[1] = 3;
        assert!(reason(&encode(&wrong)).contains("picture 3 of 3"));
    }
}
