//! Convolution, batch norm, residual and ReLU as one node, against the naive loops, which compute
//! one part after the other.

use anchorhood_engine::{ConvSpec, Device, Graph, NodeId, Result, Shape, Window};

use crate::common::compare::compare;
use crate::common::every_device;
use crate::common::graphs::one_layer;

every_device!(against_the_naive_loops, where_everything_is_cut, over_many_rows);

/// A graph of one fused node, after a stem so that the residual is not the pictures themselves.
fn fused(input: Shape, out: usize, stride: usize, bias: bool, relu: bool, residual: bool) -> Graph {
    let mut spec = ConvSpec::square(out, 3, stride, 1);
    spec.bias = bias;
    one_layer(input, |g, x| {
        let around = residual.then(|| shortcut(g, x, out, stride)).transpose()?;
        g.conv_norm("conv", "bn", x, spec, relu, around)
    })
}

fn shortcut(g: &mut Graph, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    let window = Window::square(1, stride, 0);
    g.conv("around", x, ConvSpec { out, window, bias: false })
}

/// All eight ways to fuse, over several shapes.
fn ways() -> impl Iterator<Item = (usize, Shape, usize, usize, [bool; 3])> {
    let shapes = [
        (2, Shape::new(6, 5, 3), 16, 1),
        (3, Shape::new(7, 6, 17), 5, 2),
        (2, Shape::new(4, 4, 16), 33, 1),
    ];
    shapes.into_iter().flat_map(|(batch, input, out, stride)| {
        (0..8).map(move |bits| {
            let flags = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
            (batch, input, out, stride, flags)
        })
    })
}

fn against_the_naive_loops(device: &Device, tolerance: f64) {
    for (seed, (batch, input, out, stride, [bias, relu, residual])) in ways().enumerate() {
        let graph = fused(input, out, stride, bias, relu, residual);
        compare(device, &graph, batch, seed as u64, 2.0 * tolerance);
    }
}

/// Larger than one tile in every direction.
fn where_everything_is_cut(device: &Device, tolerance: f64) {
    let graph = fused(Shape::new(16, 17, 16), 40, 1, false, true, true);
    compare(device, &graph, 5, 3, 2.0 * tolerance);
}

/// So many pictures of so many places a side, channels, and whether ReLU and a residual follow.
type Rows = (usize, usize, usize, bool, bool);

/// More and more rows, which a GPU spreads over its whole chip, up to those that it cannot hold.
pub const MANY_ROWS: [Rows; 5] = [
    (2, 40, 64, true, true),
    (5, 41, 128, true, false),
    (12, 70, 64, true, true),
    (30, 63, 64, false, true),
    (9, 150, 16, true, true),
];

/// Batch norms over all of those, of which a CPU takes the rest by itself.
fn over_many_rows(device: &Device, tolerance: f64) {
    let some = if device.is_host() { 1 } else { MANY_ROWS.len() };
    over_rows(device, tolerance, &MANY_ROWS[..some]);
}

pub fn over_rows(device: &Device, tolerance: f64, cases: &[Rows]) {
    for (batch, side, out, relu, residual) in cases.iter().copied() {
        let spec = ConvSpec::square(out, 1, 1, 0);
        let graph = one_layer(Shape::new(side, side, 4), |g, x| {
            let around = residual.then(|| shortcut(g, x, out, 1)).transpose()?;
            g.conv_norm("conv", "bn", x, spec, relu, around)
        });
        compare(device, &graph, batch, out as u64, 2.0 * tolerance);
    }
}
