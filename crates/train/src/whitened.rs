//! The last layer that a method's features are given: a map under which all their directions count
//! alike ([`Whitening`]), found from some of the pictures the network learns from.
//!
//! It is no part of what learns. A checkpoint carries it as the layer `fc` that its architecture
//! ends with, so that whoever uses the network, here or elsewhere, has it.

use crate::evaluation::extract;
use anchorhood_data::Pictures;
use anchorhood_engine::vectors::Whitening;
use anchorhood_engine::{Network, Op};

use crate::checkpoint::Tensor;
use crate::{ConfigError, RunConfig, TrainError};

const NAMES: [&str; 2] = ["fc.weight", "fc.bias"];
/// The layer above it, which is judged.
pub(crate) const LAYER: &str = "normalise";

/// Whether a network's features are to be whitened: where its configuration wants it, its last
/// layer is no result already, and they are not too many. A checkpoint's network is that of its
/// settings, and so is its last layer: a configuration that gives them another length is refused.
pub(crate) fn is_wanted(config: &RunConfig, network: &Network) -> Result<bool, TrainError> {
    let graph = network.graph();
    let open = graph.node(graph.output_node()).op != Op::L2Normalise;
    let (dim, said) = (network.features(), config.network.features);
    let wanted = config.method.whiten > 0.0 && config.method.name.compares_views();
    if !wanted || !open || dim > Whitening::MOST {
        return Ok(false);
    }
    if dim != said {
        let reason = format!(
            "{said}, and what is to be whitened has {dim}; RunConfig::fitted makes of a \
             configuration the one for its pictures"
        );
        let setting = "network.features";
        return Err(ConfigError::Setting { setting, reason }.into());
    }
    Ok(true)
}

/// What a network's features ask for, where they are to be whitened.
pub(crate) fn whitening(
    config: &RunConfig,
    network: &mut Network,
    pictures: &Pictures,
    [mean, std]: [[f32; 3]; 2],
) -> Result<Option<Whitening>, TrainError> {
    if !is_wanted(config, network)? {
        return Ok(None);
    }
    let (dim, power) = (network.features(), config.method.whiten);
    let numbers: Vec<usize> = Whitening::sample(pictures.len()).collect();
    let features = extract(network, &pictures.subset(&numbers), mean, std, &|_| {})?;
    Ok(Whitening::of(&features, dim, power))
}

/// A whitening as a network's last tensors.
pub fn whitening_tensors(whitening: &Whitening) -> [Tensor; 2] {
    let dim = whitening.dim();
    let of = |name: usize, shape: &[usize], values: &[f32]| Tensor {
        name: NAMES[name].into(),
        shape: shape.into(),
        values: values.into(),
    };
    [of(0, &[dim, dim], &whitening.weight), of(1, &[dim], &whitening.bias)]
}

/// What a checkpoint has of it, beyond the tensors of the network that learns.
pub(crate) fn kept(beyond: &[Tensor]) -> Option<Whitening> {
    let [weight, bias] = beyond else { return None };
    let found = [&weight.name[..], &bias.name[..]] == NAMES;
    (found && weight.values.len() == bias.values.len().pow(2))
        .then(|| Whitening { weight: weight.values.clone(), bias: bias.values.clone() })
}
