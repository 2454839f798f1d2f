//! Checkpoints of both versions.

use std::path::Path;

use anchorhood_files::Forgetful;
use anchorhood_methods::StateDict;
use anchorhood_train::Checkpoint;
use anchorhood_train::fuzzing::small_checkpoint as small;
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
