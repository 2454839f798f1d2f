//! The model inside the program: what `base` means wherever a model is expected. `tools/base`
//! trains it, docs/reference/base-model.md is its card.

use std::path::Path;

use super::Model;
use crate::SearchError;

/// A file that `Model::save` wrote.
const BYTES: &[u8] = include_bytes!("../../base/base.safetensors");

impl Model {
    /// What the model inside the program is called.
    pub const BASE: &'static str = "base";

    /// The model inside the program, which needs no training and no file.
    pub fn base() -> Result<Model, SearchError> {
        Model::of_bytes(Path::new(Model::BASE), BYTES.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::Device;

    #[test]
    fn it_is_whole_small_and_embeds() {
        assert!(BYTES.len() <= 6_000_000, "{} bytes", BYTES.len());
        let model = Model::base().unwrap();
        assert_eq!(model.path(), Path::new("base"));
        let size = model.input().size;
        let mut embedder = model.embedder(&Device::cpu(1), 1, None).unwrap();
        let mut vector = vec![];
        let square = (0..size * size * 3).map(|i| (i % 251) as u8);
        let square: Vec<u8> = square.collect();
        embedder.embed(&square, &mut vector).unwrap();
        let length: f32 = vector.iter().map(|v| v * v).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
    }

    /// Indices name it by its fingerprint: where this fails, a network was put in its place, and
    /// docs/reference/base-model.md must say so.
    #[test]
    fn its_fingerprint_is_the_one_of_its_card() {
        let card = include_str!("../../../../docs/reference/base-model.md");
        let model = Model::base().unwrap();
        assert!(card.contains(model.fingerprint()), "{}", model.fingerprint());
    }
}
