//! Features of pictures: the network's, and the pixels themselves.

use anchorhood_data::{Pictures, normalise};
use anchorhood_engine::{Network, Result, Shape};
use rayon::prelude::*;

use crate::evaluation::rows::See;
use crate::evaluation::{Rows, average, extract_layer, pooled};

/// What the network makes of every picture, not augmented, in inference mode: a row for each.
/// `progress` is told how many are done.
pub fn extract(
    network: &mut Network,
    pictures: &Pictures,
    mean: [f32; 3],
    std: [f32; 3],
    progress: &dyn Fn(usize),
) -> Result<Vec<f32>> {
    let result = network.graph().output_node();
    Ok(extract_layer(network, result, pictures, mean, std, usize::MAX, progress)?.values)
}

/// The pixels of every picture as its feature: in [0, 1], less the data set's mean of the channel,
/// and scaled to unit length, so that similarity is a cosine. Without the mean all pictures would
/// look alike, being all rather bright or all rather dark. A picture that is all mean stays zero.
///
/// At most so many values of a picture: larger ones are averaged to a grid that has no more. All
/// pixels of a million pictures of 224×224 would take 770 GB.
pub fn raw_pixels_within(pictures: &Pictures, mean: [f32; 3], most: usize) -> Rows {
    let as_it_is = |i: usize, pixels: &mut [f32], scratch: &mut Vec<u8>| {
        normalise(pictures.picture_in(i, scratch), mean, [1.0; 3], pixels);
    };
    let shape = Shape::new(pictures.height(), pictures.width(), 3);
    raw_pixels_seen(pictures.len(), shape, &as_it_is, most)
}

/// The same of pictures however they are seen.
pub(crate) fn raw_pixels_seen(n: usize, from: Shape, see: &See, most: usize) -> Rows {
    let to = pooled(from, most);
    let mut values = vec![0.0; n * to.len()];
    let each = values.par_chunks_exact_mut(to.len()).enumerate();
    each.for_each_init(
        || (Vec::new(), vec![0.0; from.len()]),
        |(scratch, seen), (i, out)| {
            see(i, seen, scratch);
            average(seen, from, to, out);
        },
    );
    let mut rows = Rows { dim: to.len(), channels: to.channels, values };
    rows.to_unit_length();
    rows
}
