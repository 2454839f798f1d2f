//! Projectors and predictors: multi-layer perceptrons with batch norm, whose layers are numbered as
//! PyTorch's `Sequential` has them.
//!
//! ```text
//! hidden layers   linear (no bias where a norm follows) → batch norm, if asked → ReLU
//! last layer      linear with a bias                       (Plain)
//!                 linear without a bias → batch norm       (Norm)
//!                 linear with a bias → unit length         (UnitLength)
//! ```

use anchorhood_engine::{Graph, Result};

/// The size of a perceptron.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MlpSettings {
    /// Linear layers, the last one included.
    pub layers: usize,
    /// Values of a hidden layer.
    pub width: usize,
    /// Values of the result.
    pub features: usize,
    /// Whether hidden layers have a batch norm.
    pub norm: bool,
}

/// What follows the last linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlpEnd {
    /// Nothing.
    Plain,
    /// A batch norm.
    Norm,
    /// Rows are brought to unit length.
    UnitLength,
}

/// The graph over rows of `input` values.
pub(crate) fn mlp(input: usize, settings: &MlpSettings, end: MlpEnd) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut x = graph.input(1, 1, input);
    let mut layers = 0_usize;
    let mut name = || {
        layers += 1;
        (layers - 1).to_string()
    };
    for _ in 1..settings.layers {
        x = graph.linear(&name(), x, settings.width, !settings.norm)?;
        if settings.norm {
            x = graph.batch_norm(&name(), x)?;
        }
        x = graph.relu(&name(), x)?;
    }
    x = graph.linear(&name(), x, settings.features, end != MlpEnd::Norm)?;
    x = match end {
        MlpEnd::Plain => x,
        MlpEnd::Norm => graph.batch_norm(&name(), x)?,
        MlpEnd::UnitLength => graph.l2_normalise(&name(), x)?,
    };
    graph.output(x);
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(settings: MlpSettings, end: MlpEnd) -> Vec<String> {
        let graph = mlp(6, &settings, end).unwrap();
        let parameters = graph.parameters().iter();
        parameters
            .filter(|p| !p.name.contains("running"))
            .map(|p| format!("{} {:?}", p.name, p.shape))
            .collect()
    }

    #[test]
    fn layers_are_numbered_as_pytorch_has_them() {
        let two = MlpSettings { layers: 2, width: 5, features: 3, norm: true };
        assert_eq!(
            names(two, MlpEnd::Norm),
            [
                "0.weight [5, 6]",
                "1.weight [5]",
                "1.bias [5]",
                "3.weight [3, 5]",
                "4.weight [3]",
                "4.bias [3]"
            ]
        );
        let plain = MlpSettings { norm: false, ..two };
        let expected = ["0.weight [5, 6]", "0.bias [5]", "2.weight [3, 5]", "2.bias [3]"];
        assert_eq!(names(plain, MlpEnd::UnitLength), expected);
        let one = MlpSettings { layers: 1, ..two };
        assert_eq!(names(one, MlpEnd::Plain), ["0.weight [3, 6]", "0.bias [3]"]);
    }
}
