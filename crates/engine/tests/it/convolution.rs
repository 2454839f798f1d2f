//! Convolutions on every device against the naive loops: odd channels, uneven pictures, every kind
//! of window.

use anchorhood_engine::{ConvSpec, Device, Shape, Window};
use anchorhood_storage::random::{Draws, Stream};

use crate::common::compare::{compare, compare_as_in_training};
use crate::common::every_device;
use crate::common::graphs::one_layer;

every_device!(chosen, drawn, of_many_tiles_and_channels, networks_first_layer_in_training);

fn spec(out: usize, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> ConvSpec {
    ConvSpec { out, window: Window { kernel, stride, padding }, bias: out % 2 == 1 }
}

/// A 3×3 window of stride 1 with so much padding.
fn threes(out: usize, padding: [usize; 2]) -> ConvSpec {
    ConvSpec { bias: false, ..spec(out, [3, 3], [1, 1], padding) }
}

/// A seed, pictures, their shape, and the convolution.
type Case = (u64, usize, Shape, ConvSpec);

fn compare_all(device: &Device, tolerance: f64, cases: impl IntoIterator<Item = Case>) {
    for (seed, batch, input, spec) in cases {
        let graph = one_layer(input, |g, x| g.conv("conv", x, spec));
        compare(device, &graph, batch, seed, tolerance);
    }
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
    let cases = (0..).zip(cases);
    let cases = cases.map(|(seed, (batch, input, spec))| (seed, batch, input, spec));
    compare_all(device, tolerance, cases);
}

/// Windows nobody thought of.
fn drawn(device: &Device, tolerance: f64) {
    let any_case = |seed| {
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
        (seed, any(&[1, 2, 5]), input, spec)
    };
    compare_all(device, tolerance, (0..40).map(any_case));
}

/// Around what a CPU and a GPU cut convolutions into.
fn of_many_tiles_and_channels(device: &Device, tolerance: f64) {
    let mut cases: Vec<Case> = vec![];
    // Every count of channels around the widths of vectors and tiles, in and out.
    for channels in [1, 2, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65] {
        for (inputs, outputs) in [(4, channels), (channels, 4)] {
            let input = Shape::new(4, 5, inputs);
            cases.push((channels as u64, 2, input, threes(outputs, [1, 1])));
        }
    }
    // A network's first layer: enough places and pictures to be cut into many tiles.
    cases.push((5, 9, Shape::new(32, 32, 3), threes(16, [1, 1])));
    // Channels that fill vectors, the common case that invites special treatment: pictures of one
    // place, of odd and even sides, every padding.
    let sizes = [(1, 1), (1, 4), (2, 2), (3, 3), (4, 4), (5, 4), (7, 9), (8, 6)];
    for (seed, (height, width)) in sizes.into_iter().enumerate() {
        for (inputs, outputs) in [(16, 16), (32, 16), (16, 48), (8, 24)] {
            for padding in (0..4).filter(|p| height.min(width) + 2 * p >= 3) {
                let (batch, input) = ([1, 2, 5][seed % 3], Shape::new(height, width, inputs));
                cases.push((seed as u64, batch, input, threes(outputs, [padding; 2])));
            }
        }
    }
    // What the CPU computes by Winograd's method: even and odd extents, smaller than a tile too,
    // with every padding.
    for (height, width) in [(8, 8), (7, 5), (3, 4), (4, 3), (9, 6)] {
        for padding in [[0, 0], [1, 1], [2, 2], [0, 2], [1, 0]] {
            cases.push((32, 2, Shape::new(height, width, 16), threes(32, padding)));
        }
    }
    cases.push((16, 3, Shape::new(1, 1, 16), threes(16, [1, 1])));
    cases.push((16, 3, Shape::new(2, 1, 32), threes(16, [2, 2])));
    // Enough tiles for Winograd's weight gradient to be summed by parts of the batch.
    cases.push((16, 18, Shape::new(32, 31, 16), threes(16, [1, 1])));
    // Several panels of columns, and several tasks sharing the tiles.
    cases.push((80, 3, Shape::new(4, 4, 128), threes(80, [1, 1])));
    cases.push((64, 40, Shape::new(8, 8, 48), threes(64, [1, 1])));
    compare_all(device, tolerance, cases);
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
