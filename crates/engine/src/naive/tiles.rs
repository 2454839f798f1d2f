//! Tiles cut out of pictures, by which a puzzle is set, as plain loops in f64.
//!
//! Picture b draws its class and, for each tile t of that class, how far it lies from the class's
//! place, by (seed, step, b) alone. A tile is normalised, if asked, by the mean and variance of
//! each of its channels, and enlarged to the picture's size between the centres of its pixels
//! (bilinear):
//!
//! ```text
//! place   row, column = places[class · tiles + t] divided by and modulo (room + 1), each plus a
//!         draw of 0 … jitter;  room = size − side − jitter
//! v       = (v − mean) / √(variance + 1e-5)
//! to(y)   = v at (y + ½) · side / size − ½, between 0 and side − 1
//! ```

use anchorhood_storage::random::{Draws, Stream};

use super::quarters::enlarged;

/// How tiles are cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Pixels of a picture's side, and of an enlarged tile's.
    pub size: usize,
    /// Channels.
    pub channels: usize,
    /// Tiles of a puzzle.
    pub tiles: usize,
    /// Pixels of a tile's side.
    pub side: usize,
    /// How far a tile may lie from its place.
    pub jitter: usize,
    /// Whether each tile is normalised.
    pub normalise: bool,
    /// Decides the draws.
    pub seed: u64,
}

/// The class of each picture, and its tiles.
pub fn tiles(cut: &Cut, pixels: &[f64], places: &[u32], step: u64) -> (Vec<u32>, Vec<f64>) {
    let (mut labels, mut to) = (vec![], vec![]);
    let classes = places.len() / cut.tiles;
    let room = cut.size - cut.side - cut.jitter;
    let one = cut.size * cut.size * cut.channels;
    for (b, picture) in pixels.chunks(one).enumerate() {
        let draws = Draws::new(cut.seed, Stream::Puzzle, step % (1 << 20), b as u64);
        let below = |word: u32, n: usize| ((u64::from(word) * n as u64) >> 32) as usize;
        let class = below(draws.block(0)[0], classes);
        labels.push(class as u32);
        for t in 0..cut.tiles {
            let place = places[class * cut.tiles + t] as usize;
            let words = draws.block(1 + t as u32);
            let top = place / (room + 1) + below(words[0], cut.jitter + 1);
            let left = place % (room + 1) + below(words[1], cut.jitter + 1);
            to.extend(tile(cut, picture, top, left));
        }
    }
    (labels, to)
}

fn tile(cut: &Cut, picture: &[f64], top: usize, left: usize) -> Vec<f64> {
    let (size, side, channels) = (cut.size, cut.side, cut.channels);
    let mut values = vec![0.0; side * side * channels];
    for (i, v) in values.iter_mut().enumerate() {
        let (y, x, c) = (i / channels / side, i / channels % side, i % channels);
        *v = picture[((top + y) * size + left + x) * channels + c];
    }
    if cut.normalise {
        for c in 0..channels {
            let own = || values[c..].iter().step_by(channels);
            let count = (side * side) as f64;
            let mean = own().sum::<f64>() / count;
            let variance = own().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            for v in values[c..].iter_mut().step_by(channels) {
                *v = (*v - mean) * inverse;
            }
        }
    }
    enlarged(&values, side, size, channels)
}
