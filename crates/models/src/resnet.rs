//! ResNets (He et al., 2016): a stem, four stages of residual blocks, the last three halving the
//! picture; the mean over places, a linear layer, unit length. Names and order are torchvision's.
//!
//! The stem of small pictures is a 3×3 convolution of stride 1 and no pooling; that of large ones a
//! 7×7 convolution of stride 2 and a 3×3 max pool of stride 2. A basic block is two 3×3
//! convolutions, a bottleneck 1×1, 3×3 (with the stride, as torchvision has it) and 1×1 with four
//! times the channels; each is fused with its batch norm and ReLU, the last also with the block's
//! input, which passes a 1×1 convolution where the shape changes.

use anchorhood_engine::{ConvSpec, Graph, NodeId, Result, Window};

use crate::Form;
use crate::backbone::{Backbone, Layers, Stages, Trunk};

/// ResNet10: a block in each stage, where ResNet18 has two.
pub static RESNET10: Backbone = resnet("resnet10", [1, 1, 1, 1], false);
/// ResNet18.
pub static RESNET18: Backbone = resnet("resnet18", [2, 2, 2, 2], false);
/// ResNet34.
pub static RESNET34: Backbone = resnet("resnet34", [3, 4, 6, 3], false);
/// ResNet50.
pub static RESNET50: Backbone = resnet("resnet50", [3, 4, 6, 3], true);
/// ResNet101.
pub static RESNET101: Backbone = resnet("resnet101", [3, 4, 23, 3], true);

const fn resnet(name: &'static str, blocks: [usize; 4], bottleneck: bool) -> Backbone {
    let layers = Layers::ResNet(Stages { blocks, bottleneck });
    Backbone { name, width: 64, stem: [3, 7], layers }
}

/// Its layers behind what it sees: `width` channels after the stem (64 as published). Taps: conv1
/// (stem, before pooling), conv2 … conv5 (the stages), fc.
pub(crate) struct ResNet {
    pub(crate) stages: Stages,
    pub(crate) form: Form,
}

impl Trunk for ResNet {
    fn stages(&self, g: &mut Graph, prefix: &str, x: NodeId, width: usize) -> Result<[NodeId; 5]> {
        let stem = match self.form {
            Form::Small => ConvSpec::square(width, 3, 1, 1),
            Form::Medium => ConvSpec::square(width, 3, 2, 1),
            Form::Large => ConvSpec::square(width, 7, 2, 3),
        };
        let [conv, norm] = ["conv1", "bn1"].map(|name| format!("{prefix}{name}"));
        let mut x = g.conv_norm(&conv, &norm, x, stem, true, None)?;
        let mut taps = [x; 5];
        if self.form == Form::Large {
            x = g.max_pool(&format!("{prefix}maxpool"), x, Window::square(3, 2, 1))?;
        }
        for (stage, blocks) in self.stages.blocks.into_iter().enumerate() {
            for block in 0..blocks {
                let name = format!("{prefix}layer{}.{block}", stage + 1);
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let channels = width << stage;
                x = match self.stages.bottleneck {
                    false => basic_block(g, &name, x, channels, stride)?,
                    true => bottleneck(g, &name, x, channels, stride)?,
                };
            }
            taps[stage + 1] = x;
        }
        Ok(taps)
    }

    fn vector(&self, g: &mut Graph, prefix: &str, x: NodeId, _: usize) -> Result<NodeId> {
        g.global_avg_pool(&format!("{prefix}avgpool"), x)
    }
}

/// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)).
fn basic_block(g: &mut Graph, name: &str, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    let first = ConvSpec::square(out, 3, stride, 1);
    let second = ConvSpec::square(out, 3, 1, 1);
    let inner = part(g, name, 1, x, first, None)?;
    let shortcut = shortcut(g, name, x, out, stride)?;
    part(g, name, 2, inner, second, Some(shortcut))
}

/// relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x)))))))) + shortcut(x)).
fn bottleneck(g: &mut Graph, name: &str, x: NodeId, inner: usize, stride: usize) -> Result<NodeId> {
    let out = 4 * inner;
    let narrow = part(g, name, 1, x, ConvSpec::square(inner, 1, 1, 0), None)?;
    let seen = part(g, name, 2, narrow, ConvSpec::square(inner, 3, stride, 1), None)?;
    let shortcut = shortcut(g, name, x, out, stride)?;
    let wide = ConvSpec::square(out, 1, 1, 0);
    part(g, name, 3, seen, wide, Some(shortcut))
}

/// A block's convolution of this number, with its norm and ReLU.
fn part(
    g: &mut Graph,
    block: &str,
    number: usize,
    x: NodeId,
    spec: ConvSpec,
    residual: Option<NodeId>,
) -> Result<NodeId> {
    let names = [format!("{block}.conv{number}"), format!("{block}.bn{number}")];
    g.conv_norm(&names[0], &names[1], x, spec, true, residual)
}

/// A block's input as it is added to its output.
fn shortcut(g: &mut Graph, block: &str, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    if stride == 1 && g.shape(x).channels == out {
        return Ok(x);
    }
    let names = [format!("{block}.downsample.0"), format!("{block}.downsample.1")];
    let project = ConvSpec::square(out, 1, stride, 0);
    g.conv_norm(&names[0], &names[1], x, project, false, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Role, Shape};

    fn resnet18(size: usize, width: usize, features: usize) -> Result<Graph> {
        RESNET18.graph(size, width, features)
    }

    fn weights(g: &Graph) -> usize {
        let trained = g.parameters().iter().filter(|p| p.role == Role::Weight);
        trained.map(|p| p.len()).sum()
    }

    /// 11,173,962 is the well-known count of this network with 10 outputs, with 128 the last layer
    /// alone grows; the others are torchvision's for 1000 classes.
    #[test]
    fn as_many_parameters_as_published() {
        assert_eq!(weights(&resnet18(32, 64, 10).unwrap()), 11_173_962);
        let wider = 11_173_962 - (512 * 10 + 10) + (512 * 128 + 128);
        assert_eq!(weights(&resnet18(32, 64, 128).unwrap()), wider);
        for (network, expected) in [
            (&RESNET18, 11_689_512),
            (&RESNET34, 21_797_672),
            (&RESNET50, 25_557_032),
            (&RESNET101, 44_549_160),
        ] {
            let g = network.graph(224, 64, 1000).unwrap();
            assert_eq!(weights(&g), expected, "{network}");
            let height = |name: &str| g.shape(g.find(name).unwrap()).height;
            assert_eq!(["conv1", "conv2", "conv5"].map(height), [112, 56, 7]);
        }
    }

    /// The names of `torchvision.models.resnet18().state_dict()`, less the counters of batches.
    #[test]
    fn names_are_torchvisions() {
        let norm = ["weight", "bias", "running_mean", "running_var"];
        let mut expected = vec!["conv1.weight".into()];
        expected.extend(norm.map(|n| format!("bn1.{n}")));
        for stage in 1..=4 {
            for block in 0..2 {
                for part in 1..=2 {
                    expected.push(format!("layer{stage}.{block}.conv{part}.weight"));
                    expected.extend(norm.map(|n| format!("layer{stage}.{block}.bn{part}.{n}")));
                }
                if stage > 1 && block == 0 {
                    expected.push(format!("layer{stage}.0.downsample.0.weight"));
                    expected.extend(norm.map(|n| format!("layer{stage}.0.downsample.1.{n}")));
                }
            }
        }
        expected.extend(["fc.weight".into(), "fc.bias".into()]);
        let graph = resnet18(32, 64, 128).unwrap();
        let mut names: Vec<String> = graph.parameters().iter().map(|p| p.name.clone()).collect();
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn stages_can_be_tapped() {
        let g = resnet18(32, 16, 128).unwrap();
        let shapes = [(32, 16), (32, 16), (16, 32), (8, 64), (4, 128), (1, 128)];
        for ((_, tap), (side, channels)) in g.taps().iter().zip(shapes) {
            assert_eq!(g.shape(*tap), Shape::new(side, side, channels));
        }
    }

    /// Any size works, down to one that the stages shrink to a single place.
    #[test]
    fn sizes_other_than_32() {
        for (size, last) in [(1, 1), (8, 1), (30, 4), (64, 8)] {
            let g = resnet18(size, 4, 8).unwrap();
            let conv5 = g.shape(g.find("conv5").unwrap());
            assert_eq!((conv5.height, conv5.channels), (last, 32));
        }
    }

    /// A step at width 16 and batch 64 is 13.3 GFLOP, at width 64 213 GFLOP.
    #[test]
    fn work_is_as_expected() {
        let step = |width| resnet18(32, width, 128).unwrap().training_flops() as f64 * 64e-9;
        assert!((step(16) - 13.3).abs() < 0.5, "{}", step(16));
        assert!((step(64) - 213.0).abs() < 2.0, "{}", step(64));
    }
}
