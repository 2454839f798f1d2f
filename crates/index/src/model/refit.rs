//! A model for pictures of another size than it learnt at, and whitened by them.
//!
//! Who learns from views learns from parts of pictures, enlarged; a whole picture shows the same
//! things smaller. Given larger pictures, the network sees them as large as it learnt them (Touvron
//! et al. 2019, "Fixing the train-test resolution discrepancy"). What it then makes of pictures is
//! distributed otherwise, so that it is whitened anew.

use anchorhood_engine::vectors::Whitening;
use anchorhood_train::{
    InputForm, NetworkConfig, Tensor, check_weights, judged_graph, whitening_tensors,
};

use super::{EngineModel, Model};
use crate::SearchError;

/// The layer that is whitened.
const BELOW: &str = "avgpool";
/// The layer that whitens it.
const LAST: &str = "fc";
/// The largest cosine of two rows of a whitening that was rounded to bf16; those of learnt layers
/// have larger ones.
const NEARLY_ORTHOGONAL: f32 = 0.02;

impl Model {
    /// The same network, given pictures of `size` pixels a side.
    pub fn at_size(&self, size: usize) -> Result<Model, SearchError> {
        let model = self.engine()?;
        let network = model.network.clone();
        if !has_layers_for(&network, self.input, size) {
            let learnt = self.input.size;
            let why = format!(
                "learnt with pictures of {learnt} pixels a side, and would need other first layers \
                 for {size}; choose a size nearer to {learnt}"
            );
            return Err(SearchError::failed(&self.path, why));
        }
        let input = InputForm { size, ..self.input };
        let graph = judged_graph(&network.graph(size)?, model.judged_layer())?;
        check_weights(&graph, &model.weights, &self.path)?;
        let weights = model.weights.clone();
        Ok(Model {
            learnt_size: self.learnt_size,
            checked: self.checked,
            ..Model::of(&self.path, network, input, graph, weights)
        })
    }

    /// The layer whose results [`Model::whitened`] wants.
    pub const WHITENED: &'static str = BELOW;

    /// With a last layer that whitens, to a power, what the one below it made of some pictures:
    /// [`Model::WHITENED`]'s results, a row each. The last layer, where there is one, must be such
    /// a one: another was learnt.
    pub fn whitened(&self, features: &[f32], power: f64) -> Result<Model, SearchError> {
        let model = self.engine()?;
        let refused = |why| SearchError::failed(&self.path, format!("cannot be whitened: {why}"));
        let below = model.graph.find(BELOW)?;
        let dim = model.graph.shape(below).len();
        let learnt = model.graph.up_to(below).parameters().len();
        if learnt < model.graph.parameters().len() && !is_whitening(&model.weights[learnt..]) {
            return Err(refused("its last layer was learnt"));
        }
        let whitening = Whitening::of(features, dim, power);
        let whitening = whitening.ok_or_else(|| refused("the pictures do not differ to it"))?;
        let mut network = model.network.clone();
        network.features = dim;
        let graph = judged_graph(&network.graph(self.input.size)?, LAST)?;
        let mut weights = model.weights[..learnt].to_vec();
        weights.extend(whitening_tensors(&whitening));
        check_weights(&graph, &weights, &self.path)?;
        Ok(Model {
            checked: self.checked,
            learnt_size: self.learnt_size,
            ..Model::of(&self.path, network, self.input, graph, weights)
        })
    }
}

impl EngineModel {
    /// The layer that is judged: the graph's last one gives its result unit length.
    pub(super) fn judged_layer(&self) -> &str {
        let last = self.graph.node(self.graph.output_node());
        &self.graph.node(last.inputs[0]).name
    }
}

/// Whether a network that is given pictures in one way has the same layers for those of `size`
/// pixels.
pub(super) fn has_layers_for(network: &NetworkConfig, input: InputForm, size: usize) -> bool {
    let possible = InputForm { size, ..input }.is_possible();
    possible && network.form(size) == network.form(input.size)
}

/// Whether tensors are a whitening: a square of rows that are orthogonal to each other, and a value
/// for each.
fn is_whitening(tensors: &[Tensor]) -> bool {
    let [weight, bias] = tensors else {
        return false;
    };
    let dim = bias.values.len();
    if weight.values.len() != dim * dim {
        return false;
    }
    let rows: Vec<&[f32]> = weight.values.chunks_exact(dim).collect();
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths: Vec<f32> = rows.iter().map(|r| dot(r, r).sqrt()).collect();
    (0..dim).all(|i| {
        (0..i).all(|j| dot(rows[i], rows[j]).abs() <= NEARLY_ORTHOGONAL * lengths[i] * lengths[j])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::Pictures;
    use anchorhood_engine::Device;

    fn drawn(model: &Model, n: usize) -> Pictures {
        let size = model.input().size;
        let bytes = (0..n * size * size * 3).map(|i| ((i * 7919 + i / 97 * 31) % 251) as u8);
        Pictures::new(size, size, bytes.collect()).unwrap()
    }

    fn below(model: &Model, pictures: &Pictures) -> Vec<f32> {
        let mut embedder = model.embedder(&Device::cpu(1), 8, Some(Model::WHITENED)).unwrap();
        embedder.embed_all(pictures).unwrap().values
    }

    #[test]
    fn a_larger_picture_is_another_model_with_the_same_weights() {
        let base = Model::base().unwrap();
        let large = base.at_size(80).unwrap();
        assert_eq!(large.input().size, 80);
        assert_ne!(large.fingerprint(), base.fingerprint());
        assert_eq!(large.weights().unwrap(), base.weights().unwrap());
        let vectors = large.embed(&Device::cpu(1), &drawn(&large, 2)).unwrap();
        assert_eq!(vectors.len(), 2);
    }

    #[test]
    fn sizes_that_want_other_first_layers_are_refused() {
        let base = Model::base().unwrap();
        for size in [0, 32, 224] {
            let error = base.at_size(size).unwrap_err().to_string();
            assert!(error.contains(&size.to_string()), "{error}");
        }
    }

    #[test]
    fn the_size_it_learnt_with_is_kept_and_trained_on_from() {
        let base = Model::base().unwrap();
        let large = base.at_size(base.learnt_size() + 32).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.safetensors");
        large.save(&path).unwrap();
        let read = Model::load(&path).unwrap();
        assert_eq!(read.input().size, base.learnt_size() + 32);
        assert_eq!(read.learnt_size(), base.learnt_size());
        let begun = read.pretrained("large").unwrap();
        assert_eq!(begun.input.size, base.learnt_size());
        assert_eq!(begun.fingerprint, read.fingerprint());
    }

    /// Whitened by pictures, a model's results for these have mean zero.
    #[test]
    fn whitened_results_are_centred() {
        let base = Model::base().unwrap();
        let pictures = drawn(&base, 40);
        let whitened = base.whitened(&below(&base, &pictures), 0.5).unwrap();
        let mut embedder = whitened.embedder(&Device::cpu(1), 8, Some(LAST)).unwrap();
        let rows = embedder.embed_all(&pictures).unwrap();
        for c in 0..rows.dim {
            let column = || (0..rows.len()).map(|i| rows.row(i)[c]);
            let mean = column().sum::<f32>() / rows.len() as f32;
            let size = column().map(f32::abs).fold(0.0, f32::max);
            assert!(mean.abs() <= 1e-3 * size.max(1e-3), "value {c}: {mean} of {size}");
        }
        assert_ne!(whitened.fingerprint(), base.fingerprint());
    }

    #[test]
    fn a_whitening_is_told_from_what_was_learnt() {
        let tensor = |name: &str, values: &[f32]| Tensor {
            name: name.into(),
            shape: vec![values.len()],
            values: values.into(),
        };
        let bias = tensor("fc.bias", &[0.0, 0.0]);
        let turned = tensor("fc.weight", &[3.0, 4.0, -0.8, 0.6]);
        let learnt = tensor("fc.weight", &[3.0, 4.0, 0.8, 0.6]);
        assert!(is_whitening(&[turned, bias.clone()]));
        assert!(!is_whitening(&[learnt, bias.clone()]));
        assert!(!is_whitening(&[bias]));
    }

    #[test]
    fn pictures_that_are_all_the_same_whiten_nothing() {
        let base = Model::base().unwrap();
        let features = vec![1.0; 4 * base.network().unwrap().features];
        let error = base.whitened(&features, 0.5).unwrap_err().to_string();
        assert!(error.contains("do not differ"), "{error}");
    }
}
