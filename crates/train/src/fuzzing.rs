//! What `crates/fuzzing` attacks and is not reached otherwise; and a small checkpoint, which tests
//! damage and it mutates.

use crate::methods::{StateDict, Values};

pub use crate::seen_pictures::{keep as keep_pictures, recognise as recognise_pictures};
use crate::{Checkpoint, Head, InputForm, Position, Preset, Slot, Standing, Tensor};

/// A tensor of a name.
pub fn tensor(name: &str, shape: Vec<usize>, values: Vec<f32>) -> Tensor {
    Tensor { name: name.into(), shape, values }
}

fn slot(name: &str, tensors: Vec<Tensor>) -> Slot {
    Slot { name: name.into(), tensors }
}

/// One that has everything a checkpoint can have, heads included.
pub fn small_checkpoint() -> Checkpoint {
    let mut config = Preset::Quick.config("shapes");
    config.network.features = 2;
    Checkpoint {
        config,
        standing: Standing {
            position: Position { round: 1, epoch: 2, batch: 3 },
            loss_sum: 0.1 + 0.2,
            last_loss: Some(1.0 / 3.0),
            seconds: 0.1 + 0.7,
            epoch_seconds: 1e-9,
            metrics_bytes: 17,
            ..Standing::default()
        },
        program: "0.0.0".into(),
        method: "and".into(),
        judged_layer: "normalise".into(),
        input: InputForm { version: 1, size: 32, mean: [0.1, 0.2, 0.3], std: [0.4, 0.5, 0.6] },
        rows: [0, 3],
        weights: vec![
            tensor("z", vec![2, 2], vec![0.0, -0.0, f32::MIN_POSITIVE, 1e30]),
            tensor("a", vec![1], vec![f32::MAX]),
        ],
        slots: vec![slot("momentum", vec![tensor("z", vec![2, 2], vec![1.0, 2.0, 3.0, 4.0])])],
        heads: vec![Head {
            namespace: "projector".into(),
            weights: vec![tensor("z", vec![1], vec![0.25])],
            slots: vec![
                slot("first", vec![tensor("z", vec![1], vec![-0.25])]),
                slot("second", vec![tensor("z", vec![1], vec![0.75])]),
            ],
        }],
        state: small_state(vec![1, 2, 0]),
    }
}

/// What its method keeps, in the order of the file.
pub fn small_state(neighbours: Vec<u32>) -> StateDict {
    let mut state = StateDict::default();
    state.push("memory.bank", vec![3, 2], Values::F32(vec![0.5; 6]));
    let entropy = Values::F32(vec![0.25, 0.5, 1.0]);
    state.push("memory.entropy", vec![3], entropy);
    let neighbours = Values::U32(neighbours);
    state.push("memory.neighbours", vec![3, 1], neighbours);
    state.push("queue", vec![2], Values::U32(vec![7, 8]));
    state.push("memory.anchors", vec![3], Values::U8(vec![1, 0, 1]));
    state
}
