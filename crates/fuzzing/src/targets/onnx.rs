//! ONNX files, as far as they are read by ourselves, and what lies beside them.

use std::path::Path;

use anchorhood_index::onnx::{Header, PictureInput, Preprocessing, VectorOutput, read_json};

use super::fixture;

/// What is said about a picture makes sense, whoever says it.
pub fn read(bytes: &[u8]) -> Option<()> {
    let told = std::str::from_utf8(bytes).ok().and_then(read_json);
    if let Some(told) = &told {
        assert!(told.size.is_none_or(|size| (1..=4096).contains(&size)));
        let sensible = |(mean, std): ([f32; 3], [f32; 3])| {
            mean.iter().all(|m| m.is_finite()) && std.iter().all(|s| s.is_finite() && *s > 0.0)
        };
        assert!(told.mean_and_std.is_none_or(sensible));
    }
    let Ok(header) = Header::read(bytes) else {
        return told.map(|_| ());
    };
    let (input, output) = (PictureInput::of(&header), VectorOutput::choose(&header));
    if let (Ok(input), Ok(output)) = (input, output) {
        let path = Path::new("no/such/folder/a.onnx");
        let found = Preprocessing::of(path, &header, &input, &output).expect("nothing is refused");
        assert!((1..=4096).contains(&found.size()));
        assert!(found.std.iter().all(|s| s.is_finite() && *s > 0.0));
        assert!(input.batch.is_none_or(|n| n > 0));
    }
    Some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        fixture!("index/tests/fixtures/encoder.onnx"),
        fixture!("index/tests/fixtures/condition.onnx"),
        fixture!("index/tests/fixtures/external.onnx"),
        br#"{"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5],
            "size":{"shortest_edge":256},"crop_size":224,"rescale_factor":0.0039}"#
            .to_vec(),
        br#"{"pretrained_cfg":{"input_size":[3,224,224],
            "mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}}"#
            .to_vec(),
    ]
}
