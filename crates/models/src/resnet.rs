//! ResNet18 (He et al., 2016) for small pictures: a 3×3 stem of stride 1 and no max pool, then four stages of two
//! residual blocks, the last three halving the picture; the mean over places, a linear layer, unit length.
//!
//! Each block is two fused nodes (convolution, batch norm, ReLU; the second adds the block's input) and, where the shape
//! changes, a 1×1 convolution on the way around.

use anchorhood_engine::{ConvSpec, Graph, NodeId, Result};

/// ResNet18 for `size`×`size` RGB pictures: `width` channels after the stem (64 as published), a result of `features`
/// values and unit length. Taps: conv1 (stem), conv2 … conv5 (the stages), fc.
pub fn resnet18(size: usize, width: usize, features: usize) -> Result<Graph> {
    let mut g = Graph::new();
    let pictures = g.input(size, size, 3);
    let stem = ConvSpec::square(width, 3, 1, 1);
    let mut x = g.conv_norm("conv1", "bn1", pictures, stem, true, None)?;
    g.tap("conv1", x);
    for stage in 0..4 {
        let stride = if stage == 0 { 1 } else { 2 };
        let layer = format!("layer{}", stage + 1);
        x = basic_block(&mut g, &format!("{layer}.0"), x, width << stage, stride)?;
        x = basic_block(&mut g, &format!("{layer}.1"), x, width << stage, 1)?;
        g.tap(&format!("conv{}", stage + 2), x);
    }
    x = g.global_avg_pool("avgpool", x)?;
    x = g.linear("fc", x, features, true)?;
    g.tap("fc", x);
    x = g.l2_normalise("normalise", x)?;
    g.output(x);
    Ok(g)
}

/// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)).
fn basic_block(g: &mut Graph, name: &str, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    let part = |p: &str| format!("{name}.{p}");
    let first = ConvSpec::square(out, 3, stride, 1);
    let second = ConvSpec::square(out, 3, 1, 1);
    let inner = g.conv_norm(&part("conv1"), &part("bn1"), x, first, true, None)?;
    let shortcut = if stride == 1 && g.shape(x).channels == out {
        x
    } else {
        let project = ConvSpec::square(out, 1, stride, 0);
        let names = [part("downsample.0"), part("downsample.1")];
        g.conv_norm(&names[0], &names[1], x, project, false, None)?
    };
    let names = [part("conv2"), part("bn2")];
    g.conv_norm(&names[0], &names[1], inner, second, true, Some(shortcut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Role, Shape};

    fn weights(g: &Graph) -> usize {
        let trained = g.parameters().iter().filter(|p| p.role == Role::Weight);
        trained.map(|p| p.len()).sum()
    }

    /// 11,173,962 is the well-known count of this network with 10 outputs; with 128 the last layer alone grows.
    #[test]
    fn as_many_parameters_as_published() {
        assert_eq!(weights(&resnet18(32, 64, 10).unwrap()), 11_173_962);
        let wider = 11_173_962 - (512 * 10 + 10) + (512 * 128 + 128);
        assert_eq!(weights(&resnet18(32, 64, 128).unwrap()), wider);
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
        let shape = |name| g.shape(g.find(name).unwrap());
        assert_eq!(shape("conv1"), Shape::new(32, 32, 16));
        assert_eq!(shape("conv2"), Shape::new(32, 32, 16));
        assert_eq!(shape("conv3"), Shape::new(16, 16, 32));
        assert_eq!(shape("conv4"), Shape::new(8, 8, 64));
        assert_eq!(shape("conv5"), Shape::new(4, 4, 128));
        assert_eq!(shape("fc"), Shape::new(1, 1, 128));
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
