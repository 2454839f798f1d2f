//! Which model is it? 32 digits of everything that decides what a network makes of a picture.

use twox_hash::XxHash3_128;

use super::{InputForm, Tensor};
use crate::config::Value;
use crate::{ColoursChoice, NetworkConfig, StemChoice};

/// The fingerprint of a network with these weights (and running statistics, in the network's
/// order), given pictures of this form: XXH3-128 as 32 hexadecimal digits. Two checkpoints of one
/// fingerprint give the same features.
pub fn fingerprint(network: &NetworkConfig, input: &InputForm, weights: &[Tensor]) -> String {
    let mut hasher = XxHash3_128::new();
    hasher.write(network.architecture.name.as_bytes());
    hasher.write(&(input.size as u64).to_le_bytes());
    for value in input.mean.iter().chain(&input.std) {
        hasher.write(&value.to_le_bytes());
    }
    if network.stem != StemChoice::Auto {
        hasher.write(network.stem.name().as_bytes());
    }
    if network.colours != ColoursChoice::Rgb {
        hasher.write(network.colours.text().as_bytes());
    }
    if input.version > 1 {
        // The first adds nothing.
        hasher.write(&input.version.to_le_bytes());
    }
    for tensor in weights {
        hasher.write(tensor.name.as_bytes());
        hasher.write(super::format::bytes(&tensor.values));
    }
    format!("{:032x}", hasher.finish_128())
}
