//! A picture and its quarters, all of one size, as plain loops in f64.
//!
//! The whole is shrunk to half its size, by the mean of 2×2 pixels; a quarter is half as high and
//! as wide as the picture. Both are enlarged to the picture's size between the centres of their
//! pixels (bilinear):
//!
//! ```text
//! to(y) = v at (y + ½) · half / size − ½, between 0 and half − 1;   half = size / 2, rounded down
//! ```

/// Pictures of `size`×`size` pixels, of which there are at least two a side: for each the whole,
/// then of each its quarter above on the left, then of each that above on the right, those below on
/// the left and on the right.
pub fn quarters(pixels: &[f64], size: usize, channels: usize) -> Vec<f64> {
    let one = size * size * channels;
    let half = size / 2;
    let pixel = |p: &[f64], y: usize, x: usize, c: usize| p[(y * size + x) * channels + c];
    let mut to = vec![];
    for view in 0..5 {
        for picture in pixels.chunks(one) {
            let mut small = vec![];
            for (y, x, c) in places(half, channels) {
                small.push(match view {
                    0 => {
                        let corners = [(0, 0), (0, 1), (1, 0), (1, 1)];
                        let four = corners
                            .map(|(down, right)| pixel(picture, 2 * y + down, 2 * x + right, c));
                        four.iter().sum::<f64>() / 4.0
                    }
                    part => {
                        let (down, right) = ((part - 1) / 2, (part - 1) % 2);
                        let offset = size - half;
                        pixel(picture, y + down * offset, x + right * offset, c)
                    }
                });
            }
            to.extend(enlarged(&small, half, size, channels));
        }
    }
    to
}

/// Every row, column and channel of a square, in their order.
fn places(size: usize, channels: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..size * size * channels)
        .map(move |i| (i / channels / size, i / channels % size, i % channels))
}

/// A square picture of `side`×`side` pixels, enlarged to `size`×`size`.
pub(super) fn enlarged(picture: &[f64], side: usize, size: usize, channels: usize) -> Vec<f64> {
    let enlarged = |(y, x, c)| {
        let [(top, bottom, fy), (left, right, fx)] = [y, x].map(|at| between(at, side, size));
        let at = |y: usize, x: usize| picture[(y * side + x) * channels + c];
        let across = |y| at(y, left) * (1.0 - fx) + at(y, right) * fx;
        across(top) * (1.0 - fy) + across(bottom) * fy
    };
    places(size, channels).map(enlarged).collect()
}

/// Between which two of a picture's pixels a pixel of the enlarged one lies, and the share of the
/// second.
fn between(at: usize, side: usize, size: usize) -> (usize, usize, f64) {
    let place = (at as f64 + 0.5) * side as f64 / size as f64 - 0.5;
    let place = place.clamp(0.0, (side - 1) as f64);
    let low = place.floor() as usize;
    (low, (low + 1).min(side - 1), place - low as f64)
}
