//! Checkpoints of both versions.

use std::path::Path;

use anchorhood_files::Forgetful;
use anchorhood_methods::{StateDict, Values};
use anchorhood_train::{
    Checked, Checkpoint, Head, InputForm, Position, Preset, Slot, Standing, Tensor,
};
use serde_json::json;

use super::container::{bytes_of, disk_with, safetensors};
use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "checkpoint",
    read,
    repair: repair::container,
    seeds,
};

/// What was read is used, and saved again it makes the same bytes each time.
fn read(bytes: &[u8]) {
    let path = Path::new("a");
    let Ok(checkpoint) = Checkpoint::load_from(&disk_with(path, bytes), path) else {
        return;
    };
    let rows = checkpoint.memory().map_or(0, |(rows, _)| rows.len());
    assert!(checkpoint.pictures() <= rows);
    if let Some(found) = checkpoint.neighbourhoods() {
        assert_eq!(found.len(), checkpoint.pictures());
    }
    assert!(!checkpoint.network().is_empty());
    // Names that only version 1 allows cannot be kept.
    if let Some(saved) = saved(&checkpoint) {
        let again = Checkpoint::load_from(&disk_with(path, &saved), path);
        let again = again.expect("what was saved is read");
        assert_eq!(self::saved(&again), Some(saved));
    }
}

fn saved(checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    let (path, disk) = (Path::new("b"), Forgetful::new());
    checkpoint.save_on(&disk, path).ok()?;
    Some(bytes_of(path, &disk))
}

fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Tensor {
    Tensor {
        name: name.into(),
        shape: shape.into(),
        values: values.into(),
    }
}

fn slot(name: &str, tensors: Vec<Tensor>) -> Slot {
    Slot {
        name: name.into(),
        tensors,
    }
}

fn state() -> StateDict {
    let mut state = StateDict::default();
    state.push("memory.bank", vec![3, 2], Values::F32(vec![0.5; 6]));
    state.push("memory.entropy", vec![3], Values::F32(vec![0.25, 0.5, 1.0]));
    state.push("memory.neighbours", vec![3, 1], Values::U32(vec![1, 2, 0]));
    state.push("memory.anchors", vec![3], Values::U8(vec![1, 0, 1]));
    state.push("queue", vec![2], Values::U32(vec![7, 8]));
    state
}

pub fn small() -> Checkpoint {
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
            loss_sum: 0.5,
            seconds: 1.5,
            metrics_bytes: 17,
            ..Standing::default()
        },
        program: "0.1.0".into(),
        method: "and".into(),
        judged_layer: "normalise".into(),
        input: Some(InputForm {
            version: 1,
            size: 32,
            mean: [0.1, 0.2, 0.3],
            std: [0.4, 0.5, 0.6],
        }),
        rows: [0, 3],
        weights: vec![
            tensor("z", &[2, 2], &[0.0, -0.0, 1e-30, 1e30]),
            tensor("a", &[1], &[1.0]),
        ],
        slots: vec![slot("momentum", vec![tensor("z", &[2, 2], &[1.0; 4])])],
        heads: vec![Head {
            namespace: "projector".into(),
            weights: vec![tensor("z", &[1], &[0.25])],
            slots: vec![slot("momentum", vec![tensor("z", &[1], &[-0.25])])],
        }],
        state: state(),
        checked: Checked::Verified,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let bare = Checkpoint {
        input: None,
        state: StateDict::default(),
        rows: [0, 0],
        heads: vec![],
        ..small()
    };
    let written = [small(), bare].map(|c| saved(&c).expect("it is whole"));
    written.into_iter().chain([version_1()]).collect()
}

/// As 0.1 wrote them.
fn version_1() -> Vec<u8> {
    let checkpoint = small();
    let standing = json!({
        "position": {"round": 1, "epoch": 2, "batch": 3}, "loss_sum": 0.5, "last_loss": null, "seconds": 1.5,
        "epoch_seconds": 0.5, "metrics_bytes": 17, "last": null, "best": null,
    });
    let floats = |shape: &[usize], from: usize| {
        let bytes = shape.iter().product::<usize>() * 4;
        json!({"dtype": "F32", "shape": shape, "data_offsets": [from, from + bytes]})
    };
    let header = json!({
        "__metadata__": {
            "format": "anchorhood-checkpoint", "version": "1", "program": "0.1.0",
            "config": checkpoint.config.to_toml(), "standing": standing.to_string(),
            "order": "[\"z\",\"a\"]", "heads": "[[\"projector\",[\"p\"]]]",
            "input": serde_json::to_string(&checkpoint.input).expect("plain values"),
        },
        "z": floats(&[2, 2], 0),
        "a": floats(&[1], 16),
        "momentum.z": floats(&[2, 2], 20),
        "projector.p": floats(&[1], 36),
        "memory": floats(&[3, 2], 40),
        "neighbours": {"dtype": "U32", "shape": [3, 1], "data_offsets": [64, 76]},
        "entropy": floats(&[3], 76),
        "anchors": {"dtype": "U8", "shape": [3], "data_offsets": [88, 91]},
    });
    let mut data = [0.5_f32; 22].map(f32::to_le_bytes).as_flattened().to_vec();
    data[64..76].copy_from_slice([1_u32, 2, 0].map(u32::to_le_bytes).as_flattened());
    data.extend([1, 0, 1]);
    safetensors(&header.to_string(), &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_whole() {
        for (i, seed) in seeds().iter().enumerate() {
            let path = Path::new("a");
            let read = Checkpoint::load_from(&disk_with(path, seed), path);
            assert!(read.is_ok(), "{i}: {read:?}");
        }
    }
}
