//! Weights of other programs.

use std::path::Path;

use anchorhood_models::Weights;

use super::container::safetensors;
use super::fixture;

/// What was read is written, and read again it is written the same. Taken are those of a network
/// that is known.
pub fn read(bytes: &[u8]) -> Option<()> {
    let path = Path::new("a");
    let weights = Weights::decode(bytes, path).ok()?;
    assert!(weights.shape("no such tensor").is_none());
    let stem = weights.shape("conv1.weight").map(|shape| shape.iter().product());
    assert_eq!(weights.values("conv1.weight").map(<[f32]>::len), stem);
    let written = weights.encode();
    let again = Weights::decode(&written, path).expect("what was written is read");
    assert_eq!(again.encode(), written);
    weights.recognise().ok().map(|_| ())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let of = |dtype: &str, width: usize| {
        let (one, two) = (2 * width, 6 * width);
        let header = format!(
            r#"{{"__metadata__":{{"format":"pt"}},
                "fc.bias":{{"dtype":"{dtype}","shape":[2],"data_offsets":[0,{one}]}},
                "fc.weight":{{"dtype":"{dtype}","shape":[2,2],"data_offsets":[{one},{two}]}},
                "bn.num_batches_tracked":{{"dtype":"U8","shape":[1],"data_offsets":[{two},{}]}}}}"#,
            two + 1
        );
        safetensors(&header, &vec![0x3e; two + 1])
    };
    vec![
        of("F32", 4),
        of("BF16", 2),
        resnet(3, [2, 2, 2, 2], "conv1"),
        resnet(7, [3, 4, 6, 3], "conv1"),
        resnet(7, [3, 4, 6, 3], "conv3"),
        resnet(5, [2, 2, 2, 2], "conv1"),
        fixture!("models/tests/fixtures/state_dict.pth"),
        fixture!("models/tests/fixtures/checkpoint.pth"),
        fixture!("models/tests/fixtures/transposed.pth"),
    ]
}

/// The tensors by which a ResNet is recognised, as small as they can be: a first convolution so
/// many pixels wide, so many blocks in each stage, and the last convolution that each of them has.
fn resnet(wide: usize, blocks: [usize; 4], last: &str) -> Vec<u8> {
    let stages = (1..).zip(blocks);
    let names = stages.flat_map(|(stage, blocks)| {
        (0..blocks).flat_map(move |n| {
            [format!("layer{stage}.{n}.conv1"), format!("layer{stage}.{n}.{last}")]
        })
    });
    let mut names: Vec<String> = names.map(|name| format!("{name}.weight")).collect();
    names.dedup();
    let first = 2 * 3 * wide * wide;
    let mut tensors = vec![format!(
        r#""conv1.weight":{{"dtype":"F32","shape":[2,3,{wide},{wide}],"data_offsets":[0,{}]}}"#,
        4 * first
    )];
    tensors.extend(names.iter().zip(first..).map(|(name, at)| {
        let (from, to) = (4 * at, 4 * at + 4);
        format!(r#""{name}":{{"dtype":"F32","shape":[1],"data_offsets":[{from},{to}]}}"#)
    }));
    let values = vec![0x3e; 4 * (first + names.len())];
    safetensors(&format!("{{{}}}", tensors.join(",")), &values)
}
