//! Weights of other programs.

use std::path::Path;

use anchorhood_models::Weights;

use super::container::safetensors;
use super::fixture;
use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "weights",
    read,
    repair: repair::container,
    seeds,
};

/// What was read is written, and read again it is written the same.
fn read(bytes: &[u8]) {
    let path = Path::new("a");
    let Ok(weights) = Weights::decode(bytes, path) else {
        return;
    };
    assert!(weights.shape("no such tensor").is_none());
    let _network = weights.recognise();
    let written = weights.encode();
    let again = Weights::decode(&written, path).expect("what was written is read");
    assert_eq!(again.encode(), written);
}

fn seeds() -> Vec<Vec<u8>> {
    let of = |dtype: &str, width: usize| {
        let (one, two) = (2 * width, 6 * width);
        let header = format!(
            r#"{{"__metadata__":{{"format":"pt"}},"fc.bias":{{"dtype":"{dtype}","shape":[2],"data_offsets":[0,{one}]}},"fc.weight":{{"dtype":"{dtype}","shape":[2,2],"data_offsets":[{one},{two}]}},"bn.num_batches_tracked":{{"dtype":"U8","shape":[1],"data_offsets":[{two},{}]}}}}"#,
            two + 1
        );
        safetensors(&header, &vec![0x3e; two + 1])
    };
    vec![
        of("F32", 4),
        of("BF16", 2),
        fixture!("models/tests/fixtures/state_dict.pth"),
        fixture!("models/tests/fixtures/checkpoint.pth"),
        fixture!("models/tests/fixtures/transposed.pth"),
    ]
}
