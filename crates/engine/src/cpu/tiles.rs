//! Tiles cut out of pictures; the maths is in [`crate::naive::tiles`]. A picture's draws depend on
//! nothing but its place in the batch of all processes and the step, so the bits are the same for
//! any number of threads. Nothing allocates: a tile is read where it lies.

use anchorhood_storage::random::{Draws, Stream};
use rayon::prelude::*;

use crate::stream::Tiles;

/// Writes the class of each picture, and its tiles.
pub(super) fn tiles(
    of: &Tiles,
    pixels: &[f32],
    places: &[u32],
    (step, first): (u64, usize),
    labels: &mut [u32],
    to: &mut [f32],
) {
    let one = of.size * of.size * of.channels;
    let pictures = labels.par_iter_mut().zip(pixels.par_chunks(one));
    let rows = to.par_chunks_mut(of.tiles * one);
    pictures.zip(rows).enumerate().for_each(|(b, ((label, picture), to))| {
        let draws = Draws::new(of.seed, Stream::Puzzle, step % (1 << 20), (first + b) as u64);
        let class = below(draws.block(0)[0], places.len() / of.tiles);
        *label = class as u32;
        let places = &places[class * of.tiles..][..of.tiles];
        for (t, (place, to)) in places.iter().zip(to.chunks_exact_mut(one)).enumerate() {
            let (place, room) = (*place as usize, of.room());
            let words = draws.block(1 + t as u32);
            let top = place / (room + 1) + below(words[0], of.jitter + 1);
            let left = place % (room + 1) + below(words[1], of.jitter + 1);
            let begin = (top * of.size + left) * of.channels;
            enlarge(of, &picture[begin..], to);
        }
    });
}

/// A draw as a number below another.
fn below(word: u32, n: usize) -> usize {
    ((u64::from(word) * n as u64) >> 32) as usize
}

/// The tile at the beginning of some rows of a picture, in the size of a picture.
fn enlarge(of: &Tiles, from: &[f32], to: &mut [f32]) {
    let (size, side, channels) = (of.size, of.side, of.channels);
    for c in 0..channels {
        let at = |y: usize, x: usize| from[(y * size + x) * channels + c];
        let (mean, inverse) = if of.normalise { statistics(side, at) } else { (0.0, 1.0) };
        for y in 0..size {
            let (y0, y1, fy) = between(y, side, size);
            for x in 0..size {
                let (x0, x1, fx) = between(x, side, size);
                let across = |y| at(y, x0) * (1.0 - fx) + at(y, x1) * fx;
                let value = across(y0) * (1.0 - fy) + across(y1) * fy;
                to[(y * size + x) * channels + c] = (value - mean) * inverse;
            }
        }
    }
}

/// Mean and inverse deviation of a channel of a tile.
fn statistics(side: usize, at: impl Fn(usize, usize) -> f32) -> (f32, f32) {
    let all = || (0..side * side).map(|i| f64::from(at(i / side, i % side)));
    let count = (side * side) as f64;
    let mean = all().sum::<f64>() / count;
    let variance = all().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean as f32, (1.0 / (variance + 1e-5).sqrt()) as f32)
}

/// The two pixels of a tile that a pixel of the enlarged one lies between, and how near it is to
/// the second.
fn between(o: usize, side: usize, size: usize) -> (usize, usize, f32) {
    let at = (o as f32 + 0.5) * (side as f32 / size as f32) - 0.5;
    let at = at.clamp(0.0, (side - 1) as f32);
    let low = at as usize;
    (low, (low + 1).min(side - 1), at - low as f32)
}
