//! AlexNet (Krizhevsky et al., 2012; channels as in the one-column form of 2014, which torchvision
//! has): five convolutions and two wide hidden layers, each with batch norm and ReLU, then a linear
//! layer and unit length.
//!
//! | layer | channels | large | small |
//! |---|---|---|---|
//! | conv1 | width (64) | 11×11, stride 4 | 5×5 |
//! | pool1 | | 3×3, stride 2 | the same, padded by 1 |
//! | conv2 | 3 · width | 5×5 | 5×5 |
//! | pool2 | | 3×3, stride 2 | the same, padded by 1 |
//! | conv3, conv4, conv5 | 6, 4, 4 · width | 3×3 | 3×3 |
//! | pool5 | | 3×3, stride 2 | the same, padded by 1 |
//! | fc6, fc7 | 64 · width (4096) | all places, then one | the same |
//! | fc | features | | |
//!
//! Batch norm stands where the first network had local response normalisation and dropout, as in Wu
//! et al. (2018), whose settings the paper takes over. The authors published no AlexNet; the small
//! form is ours: 32×32 pictures give conv5 8×8 places. A tap is what its layer gives after ReLU,
//! before pooling.

use anchorhood_engine::{ConvSpec, Graph, NodeId, Result, Window};

use crate::Form;
use crate::backbone::{Backbone, Layers, Trunk};

/// AlexNet with batch norm.
pub static ALEXNET: Backbone = Backbone {
    name: "alexnet",
    width: 64,
    stem: [5, 11],
    layers: Layers::Other(|form| Box::new(AlexNet(form))),
};

/// Its layers behind what it sees: `width` channels after the first convolution (64 as published).
/// Taps: conv1 … conv5, fc.
struct AlexNet(Form);

impl AlexNet {
    fn pool(&self) -> Window {
        match self.0 {
            Form::Large => Window::square(3, 2, 0),
            Form::Small | Form::Medium => Window::square(3, 2, 1),
        }
    }
}

impl Trunk for AlexNet {
    fn stages(
        &self,
        g: &mut Graph,
        prefix: &str,
        mut x: NodeId,
        width: usize,
    ) -> Result<[NodeId; 5]> {
        let stem = match self.0 {
            Form::Large => ConvSpec::square(width, 11, 4, 2),
            Form::Small => ConvSpec::square(width, 5, 1, 2),
            Form::Medium => ConvSpec::square(width, 5, 2, 2),
        };
        let convolutions = [
            (stem, true),
            (ConvSpec::square(3 * width, 5, 1, 2), true),
            (ConvSpec::square(6 * width, 3, 1, 1), false),
            (ConvSpec::square(4 * width, 3, 1, 1), false),
            (ConvSpec::square(4 * width, 3, 1, 1), false),
        ];
        let mut stages = [x; 5];
        for (number, (spec, pooled)) in (1..).zip(convolutions) {
            let [name, norm] = ["conv", "bn"].map(|kind| format!("{prefix}{kind}{number}"));
            x = g.conv_norm(&name, &norm, x, spec, true, None)?;
            stages[number - 1] = x;
            if pooled {
                x = g.max_pool(&format!("{prefix}pool{number}"), x, self.pool())?;
            }
        }
        Ok(stages)
    }

    fn vector(&self, g: &mut Graph, prefix: &str, x: NodeId, width: usize) -> Result<NodeId> {
        let name = |name: &str| format!("{prefix}{name}");
        let x = g.max_pool(&name("pool5"), x, self.pool())?;
        // A hidden layer over all places is a convolution as large as the picture.
        let hidden = 64 * width;
        let all = ConvSpec::square(hidden, g.shape(x).height, 1, 0);
        let x = g.conv_norm(&name("fc6"), &name("bn6"), x, all, true, None)?;
        let one = ConvSpec::square(hidden, 1, 1, 0);
        g.conv_norm(&name("fc7"), &name("bn7"), x, one, true, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Role, Shape};

    fn alexnet(form: Form, size: usize, width: usize, features: usize) -> Result<Graph> {
        ALEXNET.graph_of(form, size, width, features)
    }

    fn shapes(g: &Graph) -> Vec<(usize, usize)> {
        let shape = |n| g.shape(g.find(&format!("conv{n}")).unwrap());
        (1..=5).map(|n| (shape(n).height, shape(n).channels)).collect()
    }

    #[test]
    fn places_and_channels_of_both_forms() {
        let large = alexnet(Form::Large, 224, 64, 128).unwrap();
        assert_eq!(shapes(&large), [(55, 64), (27, 192), (13, 384), (13, 256), (13, 256)]);
        let small = alexnet(Form::Small, 32, 64, 128).unwrap();
        assert_eq!(shapes(&small), [(32, 64), (16, 192), (8, 384), (8, 256), (8, 256)]);
        for g in [large, small] {
            assert_eq!(g.shape(g.find("fc7").unwrap()), Shape::new(1, 1, 4096));
            assert_eq!(g.shape(g.find("fc").unwrap()), Shape::new(1, 1, 128));
        }
    }

    /// `torchvision.models.alexnet(num_classes=1000)` has 61,100,840 weights: ours has no bias
    /// where a norm follows (9,344 fewer in all), and two values a channel in the norms instead.
    #[test]
    fn as_many_weights_as_published() {
        let g = alexnet(Form::Large, 224, 64, 1000).unwrap();
        let trained = g.parameters().iter().filter(|p| p.role == Role::Weight);
        let channels = 64 + 192 + 384 + 256 + 256 + 4096 + 4096;
        assert_eq!(channels, 9_344);
        let expected = 61_100_840 - channels + 2 * channels;
        assert_eq!(trained.map(|p| p.len()).sum::<usize>(), expected);
    }

    #[test]
    fn any_size_that_leaves_something() {
        for size in [1, 4, 16, 33, 100] {
            alexnet(Form::Small, size, 2, 8).unwrap();
        }
        for size in [63, 128, 256] {
            alexnet(Form::Large, size, 2, 8).unwrap();
        }
        let error = alexnet(Form::Large, 32, 2, 8).unwrap_err().to_string();
        assert!(error.starts_with("pool"), "{error}");
    }
}
