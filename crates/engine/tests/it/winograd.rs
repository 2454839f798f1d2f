//! 3×3 convolutions of stride 1 over whole vectors of channels, which the CPU computes by
//! Winograd's method: against the naive loops, with tiles over every edge, and with few and many
//! tiles, which sum the weight gradient differently.

use anchorhood_engine::{ConvSpec, Device, Shape, Window};

use crate::common::compare::compare;
use crate::common::every_device;
use crate::common::graphs::one_layer;

every_device!(edges, many_tiles, many_channels);

fn check(
    device: &Device,
    tolerance: f64,
    batch: usize,
    input: Shape,
    out: usize,
    padding: [usize; 2],
) {
    let spec =
        ConvSpec { out, window: Window { kernel: [3, 3], stride: [1, 1], padding }, bias: false };
    let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
    compare(device, &graph, batch, out as u64, tolerance);
}

/// Even and odd extents, smaller than a tile too, with every padding.
fn edges(device: &Device, tolerance: f64) {
    for (height, width) in [(8, 8), (7, 5), (3, 4), (4, 3), (9, 6)] {
        for padding in [[0, 0], [1, 1], [2, 2], [0, 2], [1, 0]] {
            let input = Shape::new(height, width, 16);
            check(device, tolerance, 2, input, 32, padding);
        }
    }
    check(device, tolerance, 3, Shape::new(1, 1, 16), 16, [1, 1]);
    check(device, tolerance, 3, Shape::new(2, 1, 32), 16, [2, 2]);
}

/// Enough tiles for the weight gradient to be summed by parts of the batch.
fn many_tiles(device: &Device, tolerance: f64) {
    check(device, tolerance, 18, Shape::new(32, 31, 16), 16, [1, 1]);
}

/// Several panels of columns, and several tasks sharing the tiles.
fn many_channels(device: &Device, tolerance: f64) {
    check(device, tolerance, 3, Shape::new(4, 4, 128), 80, [1, 1]);
    check(device, tolerance, 40, Shape::new(8, 8, 48), 64, [1, 1]);
}
