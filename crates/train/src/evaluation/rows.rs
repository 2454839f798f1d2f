//! What a layer makes of every picture, a row for each, small enough to keep.
//!
//! A convolution's map is averaged over a grid of places so that a row has at most 10,000 values.
//! This is the convention of Zhang et al. (*Colorful image colorization*, 2016), by which linear
//! classifiers on AlexNet's layers are compared: rows of 9,600, 9,216, 9,600, 9,600 and 9,216
//! values for its 96, 256, 384, 384 and 256 channels, which are the largest g×g grids (10, 6, 5, 5,
//! 6) with at most 10,000 values. A map that is small enough as it is stays as it is.

use std::ops::Range;

use anchorhood_data::{Pictures, normalise};
use anchorhood_engine::vectors::{dot_products, to_unit_length};
use anchorhood_engine::{Error, Network, NodeId, Result, Shape};
use rayon::prelude::*;

/// Values of a row, at most, unless another number is asked for.
pub const MOST_VALUES: usize = 10_000;

/// A row for each picture: the places of a map one after the other, channels side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Length of a row.
    pub dim: usize,
    /// Channels of each place; `dim` is a multiple.
    pub channels: usize,
    /// All rows.
    pub values: Vec<f32>,
}

impl Rows {
    /// Rows of `dim` values that are of one place.
    pub fn new(values: Vec<f32>, dim: usize) -> Rows {
        Rows { dim, channels: dim, values }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim.max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// The `k` rows most similar to a vector by their product, most similar first, each with that;
    /// of equal ones the lower number first. Panics where the vector has another length.
    pub fn nearest(&self, query: &[f32], k: usize) -> Vec<(usize, f32)> {
        assert_eq!(query.len(), self.dim, "values of the query");
        let mut products = vec![0.0; self.len()];
        dot_products(&self.values, self.dim, query, &mut products);
        let mut all: Vec<(usize, f32)> = products.into_iter().enumerate().collect();
        all.retain(|(_, product)| !product.is_nan());
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        all
    }

    /// Scales each row to unit length, so that inner products are cosines; a row of zeros stays.
    pub fn to_unit_length(&mut self) {
        to_unit_length(&mut self.values, self.dim);
    }
}

/// What layer `node` (named in the network's
/// [`NetworkOptions::keep`](anchorhood_engine::NetworkOptions::keep), or its result) makes of every
/// picture, not augmented, in inference mode; maps averaged to at most `most` values. `progress` is
/// told how many pictures are done.
pub fn extract_layer(
    network: &mut Network,
    node: NodeId,
    pictures: &Pictures,
    mean: [f32; 3],
    std: [f32; 3],
    most: usize,
    progress: &dyn Fn(usize),
) -> Result<Rows> {
    let as_it_is = |i: usize, pixels: &mut [f32], scratch: &mut Vec<u8>| {
        normalise(pictures.picture_in(i, scratch), mean, std, pixels);
    };
    let of = [pictures.len(), pictures.picture_len()];
    extract_seen(network, node, of, &as_it_is, most, progress)
}

/// Writes what is seen of a picture, by its number; the bytes are scratch.
pub(crate) type See<'a> = dyn Fn(usize, &mut [f32], &mut Vec<u8>) + Sync + 'a;

/// The same of `n` pictures of `one` values each, however they are seen.
pub(crate) fn extract_seen(
    network: &mut Network,
    node: NodeId,
    [n, one]: [usize; 2],
    see: &See,
    most: usize,
    progress: &dyn Fn(usize),
) -> Result<Rows> {
    let graph = network.graph();
    let (from, last) = (graph.shape(node), graph.output_node());
    let result = graph.shape(last).len();
    let to = pooled(from, most);
    let batch = network.batch();
    let mut values = reserve(n, to.len())?;
    let mut pixels = vec![0.0; batch * one];
    let mut output = vec![0.0; batch * result];
    for first in (0..n).step_by(batch) {
        let count = batch.min(n - first);
        let (pixels, output) = (&mut pixels[..count * one], &mut output[..count * result]);
        let each = pixels.par_chunks_exact_mut(one).enumerate();
        each.for_each_init(Vec::new, |scratch, (i, to)| see(first + i, to, scratch));
        network.infer(pixels, output)?;
        values.resize((first + count) * to.len(), 0.0);
        let kept = if node == last { vec![] } else { network.kept(node, count)? };
        let maps = if node == last { output } else { &kept[..] };
        (values[first * to.len()..].par_chunks_exact_mut(to.len()))
            .zip(maps.par_chunks_exact(from.len()))
            .for_each(|(out, map)| average(map, from, to, out));
        progress(first + count);
    }
    Ok(Rows { dim: to.len(), channels: to.channels, values })
}

fn reserve(n: usize, dim: usize) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    match n.checked_mul(dim) {
        Some(len) if values.try_reserve_exact(len).is_ok() => Ok(values),
        _ => Err(Error::Plan(format!(
            "{n} rows of {dim} values do not fit in memory; use fewer pictures, or fewer values of \
             a row"
        ))),
    }
}

/// The shape a map is averaged to: itself if it has at most `most` values, else the largest grid
/// that has, and at least one place.
pub fn pooled(map: Shape, most: usize) -> Shape {
    if map.len() <= most {
        return map;
    }
    let side = (most / map.channels.max(1)).isqrt().max(1);
    Shape::new(side.min(map.height), side.min(map.width), map.channels)
}

/// Averages a map to a smaller grid. As PyTorch's adaptive average pooling: cell i of g covers rows
/// ⌊i·H/g⌋ to ⌈(i+1)·H/g⌉, so that cells may share a row where H is no multiple of g. Writes `out`
/// (`=`).
pub fn average(map: &[f32], from: Shape, to: Shape, out: &mut [f32]) {
    if from == to {
        out.copy_from_slice(map);
        return;
    }
    let span = |i: usize, extent: usize, cells: usize| -> Range<usize> {
        i * extent / cells..((i + 1) * extent).div_ceil(cells)
    };
    for (place, out) in out.chunks_exact_mut(to.channels).enumerate() {
        let rows = span(place / to.width, from.height, to.height);
        let columns = span(place % to.width, from.width, to.width);
        let scale = 1.0 / (rows.len() * columns.len()) as f32;
        out.fill(0.0);
        for y in rows {
            for x in columns.clone() {
                let at = (y * from.width + x) * from.channels;
                let values = &map[at..at + from.channels];
                out.iter_mut().zip(values).for_each(|(o, v)| *o += v);
            }
        }
        out.iter_mut().for_each(|o| *o *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_the_conventions() {
        let side = |channels, height| pooled(Shape::new(height, height, channels), 10_000).height;
        let sides = [(96, 55), (256, 27), (384, 13), (384, 13), (256, 13)].map(|(c, h)| side(c, h));
        assert_eq!(sides, [10, 6, 5, 5, 6]);
        assert_eq!(side(128, 4), 4); // small enough
        assert_eq!(side(20_000, 2), 1); // never nothing
    }

    /// `torch.nn.functional.adaptive_avg_pool2d(torch.arange(20.).view(1, 1, 4, 5), (3, 2))`.
    #[test]
    fn averages_as_pytorch_does() {
        let map: Vec<f32> = (0..20).map(|v| v as f32).collect();
        let mut out = [0.0; 6];
        average(&map, Shape::new(4, 5, 1), Shape::new(3, 2, 1), &mut out);
        assert_eq!(out, [3.5, 5.5, 8.5, 10.5, 13.5, 15.5]);
    }

    #[test]
    fn unit_length() {
        let mut rows = Rows::new(vec![3.0, 4.0, 0.0, 0.0], 2);
        rows.to_unit_length();
        assert_eq!(rows.values, [0.6, 0.8, 0.0, 0.0]);
        assert_eq!((rows.len(), rows.row(1)), (2, &[0.0, 0.0][..]));
    }

    #[test]
    fn the_nearest_come_first_and_nonsense_never() {
        let rows = Rows::new(vec![1.0, 0.0, 0.6, 0.8, 0.0, 1.0, f32::NAN, 0.0], 2);
        let found: Vec<usize> = rows.nearest(rows.row(2), 3).iter().map(|(i, _)| *i).collect();
        assert_eq!(found, [2, 1, 0]);
        assert_eq!(rows.nearest(rows.row(0), 9).len(), 3);
    }
}
