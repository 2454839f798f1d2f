//! Convolutions on every device against the naive loops: odd channels, uneven pictures, every kind
//! of window.

use anchorhood_engine::{ConvSpec, Device, Shape, Window};
use anchorhood_storage::random::{Draws, Stream};

use crate::common::compare::{compare, compare_as_in_training};
use crate::common::every_device;
use crate::common::graphs::one_layer;

every_device!(
    chosen,
    drawn,
    channels_at_the_edges_of_a_tile,
    networks_first_layer,
    networks_first_layer_in_training,
    whole_vectors_of_channels,
    edges_of_tiles,
    many_tiles,
    many_channels,
);

fn spec(out: usize, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> ConvSpec {
    ConvSpec { out, window: Window { kernel, stride, padding }, bias: out % 2 == 1 }
}

/// Windows a reader can check against the list of what must work.
fn chosen(device: &Device, tolerance: f64) {
    let cases = [
        (2, Shape::new(7, 5, 3), spec(5, [1, 1], [1, 1], [0, 0])),
        (2, Shape::new(7, 5, 3), spec(5, [1, 1], [2, 2], [0, 0])),
        (1, Shape::new(6, 9, 16), spec(16, [1, 1], [3, 2], [0, 1])),
        (2, Shape::new(8, 8, 16), spec(17, [3, 3], [1, 1], [1, 1])),
        (5, Shape::new(8, 6, 17), spec(16, [3, 3], [2, 2], [1, 1])),
        (2, Shape::new(9, 4, 5), spec(33, [3, 3], [3, 3], [0, 0])),
        (1, Shape::new(5, 7, 1), spec(1, [2, 2], [1, 1], [1, 1])),
        (2, Shape::new(5, 7, 33), spec(3, [2, 2], [2, 2], [0, 0])),
        (2, Shape::new(11, 8, 3), spec(64, [5, 5], [2, 2], [2, 2])),
        (1, Shape::new(12, 13, 3), spec(16, [7, 7], [2, 2], [3, 3])),
        (2, Shape::new(6, 7, 5), spec(17, [1, 3], [1, 1], [0, 1])),
        (2, Shape::new(6, 7, 5), spec(16, [5, 2], [1, 3], [2, 0])),
        (5, Shape::new(3, 2, 64), spec(64, [3, 3], [1, 1], [1, 1])),
        (2, Shape::new(1, 1, 16), spec(32, [3, 3], [1, 1], [1, 1])),
        (1, Shape::new(4, 3, 5), spec(6, [4, 3], [1, 1], [0, 0])),
        (2, Shape::new(4, 4, 3), spec(8, [3, 3], [1, 1], [3, 3])),
    ];
    for (seed, (batch, input, spec)) in cases.into_iter().enumerate() {
        let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
        compare(device, &graph, batch, seed as u64, tolerance);
    }
}

/// Windows nobody thought of.
fn drawn(device: &Device, tolerance: f64) {
    for seed in 0..40 {
        let draws = Draws::new(seed, Stream::Test, 1, 0);
        let mut next = 0;
        let mut any = |choices: &[usize]| {
            next += 1;
            choices[draws.word(next) as usize % choices.len()]
        };
        let channels = [1, 3, 5, 16, 17, 33, 64];
        let kernel = [any(&[1, 2, 3, 5, 7]), any(&[1, 2, 3, 5, 7])];
        let stride = [any(&[1, 2, 3]), any(&[1, 2, 3])];
        let padding = [any(&[0, 1, 2, 3]), any(&[0, 1, 2, 3])];
        let input = Shape::new(any(&[7, 8, 9]), any(&[7, 10, 11]), any(&channels));
        let spec = spec(any(&channels), kernel, stride, padding);
        let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
        compare(device, &graph, any(&[1, 2, 5]), seed, tolerance);
    }
}

/// Every count of channels around the widths of vectors and tiles, in and out.
fn channels_at_the_edges_of_a_tile(device: &Device, tolerance: f64) {
    for channels in [1, 2, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65] {
        let narrow = ConvSpec::square(channels, 3, 1, 1);
        let graph = one_layer(Shape::new(4, 5, 4), |g, x| g.conv("conv", x, narrow));
        compare(device, &graph, 2, channels as u64, tolerance);
        let wide = ConvSpec::square(4, 3, 1, 1);
        let graph = one_layer(Shape::new(4, 5, channels), |g, x| g.conv("conv", x, wide));
        compare(device, &graph, 2, channels as u64, tolerance);
    }
}

/// Enough places and pictures to be cut into many tiles.
fn networks_first_layer(device: &Device, tolerance: f64) {
    let spec = ConvSpec::square(16, 3, 1, 1);
    let graph = one_layer(Shape::new(32, 32, 3), |g, x| g.conv("conv", x, spec));
    compare(device, &graph, 9, 5, tolerance);
}

/// Pictures of few channels, a multiple of 128 places in all and other numbers; 64 channels out and
/// others.
fn networks_first_layer_in_training(device: &Device, tolerance: f64) {
    let cases = [
        (2, Shape::new(16, 16, 3), 64),
        (8, Shape::new(4, 4, 3), 64),
        (3, Shape::new(32, 16, 1), 64),
        (1, Shape::new(8, 48, 4), 64),
        (2, Shape::new(8, 8, 5), 64),
        (5, Shape::new(7, 9, 3), 64),
        (9, Shape::new(32, 32, 3), 16),
    ];
    for (seed, (batch, input, out)) in cases.into_iter().enumerate() {
        let spec = ConvSpec::square(out, 3, 1, 1);
        let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
        compare_as_in_training(device, &graph, batch, seed as u64, tolerance);
    }
}

/// 3×3 windows of stride 1 over channels that fill vectors, the common case that invites special
/// treatment: pictures of one place, of odd and even sides, every padding.
fn whole_vectors_of_channels(device: &Device, tolerance: f64) {
    let sizes = [(1, 1), (1, 4), (2, 2), (3, 3), (4, 4), (5, 4), (7, 9), (8, 6)];
    let channels = [(16, 16), (32, 16), (16, 48), (8, 24)];
    for (seed, (height, width)) in sizes.into_iter().enumerate() {
        for (inputs, outputs) in channels {
            for padding in [0, 1, 2, 3] {
                if height + 2 * padding < 3 || width + 2 * padding < 3 {
                    continue;
                }
                let input = Shape::new(height, width, inputs);
                let spec = ConvSpec::square(outputs, 3, 1, padding);
                let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
                let batch = [1, 2, 5][seed % 3];
                compare(device, &graph, batch, seed as u64, tolerance);
            }
        }
    }
}

/// What the CPU computes by Winograd's method: even and odd extents, smaller than a tile too, with
/// every padding.
fn edges_of_tiles(device: &Device, tolerance: f64) {
    let check = |batch, input, out, padding| {
        let window = Window { kernel: [3, 3], stride: [1, 1], padding };
        let spec = ConvSpec { out, window, bias: false };
        let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
        compare(device, &graph, batch, out as u64, tolerance);
    };
    for (height, width) in [(8, 8), (7, 5), (3, 4), (4, 3), (9, 6)] {
        for padding in [[0, 0], [1, 1], [2, 2], [0, 2], [1, 0]] {
            check(2, Shape::new(height, width, 16), 32, padding);
        }
    }
    check(3, Shape::new(1, 1, 16), 16, [1, 1]);
    check(3, Shape::new(2, 1, 32), 16, [2, 2]);
}

/// Enough tiles for Winograd's weight gradient to be summed by parts of the batch.
fn many_tiles(device: &Device, tolerance: f64) {
    check_3x3(device, tolerance, 18, Shape::new(32, 31, 16), 16);
}

/// Several panels of columns, and several tasks sharing the tiles.
fn many_channels(device: &Device, tolerance: f64) {
    check_3x3(device, tolerance, 3, Shape::new(4, 4, 128), 80);
    check_3x3(device, tolerance, 40, Shape::new(8, 8, 48), 64);
}

fn check_3x3(device: &Device, tolerance: f64, batch: usize, input: Shape, out: usize) {
    let graph = one_layer(input, |g, x| g.conv("conv", x, ConvSpec::square(out, 3, 1, 1)));
    compare(device, &graph, batch, out as u64, tolerance);
}
