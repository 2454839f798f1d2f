//! Small graphs that several tests use.

use anchorhood_engine::{ConvSpec, Graph, NodeId, Result, Shape, Window};

/// Adds a layer, or a few.
pub type Build = fn(&mut Graph, NodeId) -> Result<NodeId>;

/// A graph of one layer.
pub fn one_layer(input: Shape, layer: impl FnOnce(&mut Graph, NodeId) -> Result<NodeId>) -> Graph {
    let mut g = Graph::new();
    let x = g.input(input.height, input.width, input.channels);
    layer(&mut g, x).unwrap();
    g
}

/// A residual network of two stages with everything a ResNet has: stem, max pool, a plain block and
/// one that halves the picture, pooling, a linear layer and unit length.
pub fn residual(height: usize, width: usize, channels: usize, features: usize) -> Result<Graph> {
    let mut g = Graph::new();
    let x = g.input(height, width, 3);
    let stem = ConvSpec::square(channels, 3, 1, 1);
    let x = g.conv_norm("conv1", "bn1", x, stem, true, None)?;
    g.tap("stem", x);
    let x = g.max_pool("maxpool", x, Window::square(3, 2, 1))?;
    let x = block(&mut g, "layer1", x, channels, 1)?;
    let x = block(&mut g, "layer2", x, 2 * channels, 2)?;
    let x = g.global_avg_pool("avgpool", x)?;
    let x = g.linear("fc", x, features, true)?;
    let x = g.l2_normalise("normalise", x)?;
    g.output(x);
    Ok(g)
}

fn block(g: &mut Graph, name: &str, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    let part = |p: &str| format!("{name}.{p}");
    let first = ConvSpec::square(out, 3, stride, 1);
    let inner = g.conv_norm(&part("conv1"), &part("bn1"), x, first, true, None)?;
    let around = if stride == 1 {
        x
    } else {
        let spec = ConvSpec::square(out, 1, stride, 0);
        g.conv_norm(&part("down"), &part("downbn"), x, spec, false, None)?
    };
    let second = ConvSpec::square(out, 3, 1, 1);
    g.conv_norm(&part("conv2"), &part("bn2"), inner, second, true, Some(around))
}
