//! Each place of a picture four times (nearest neighbour): y[2i + a][2j + b][c] = x[i][j][c] with a
//! and b of 0 and 1.

use crate::Shape;

/// The output; `input` is one picture's shape.
pub fn forward(input: Shape, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; 4 * x.len()];
    for_each(input, x.len(), |from, to| y[to] = x[from]);
    y
}

/// The gradient of the input: the sum over the four.
pub fn backward(input: Shape, dy: &[f64]) -> Vec<f64> {
    let mut dx = vec![0.0; dy.len() / 4];
    let len = dx.len();
    for_each(input, len, |from, to| dx[from] += dy[to]);
    dx
}

/// Every value of so many of an input, with each of its places in the output.
fn for_each(input: Shape, len: usize, mut each: impl FnMut(usize, usize)) {
    let (width, channels) = (input.width, input.channels);
    for from in 0..len {
        let (row, column, c) = (from / channels / width, from / channels % width, from % channels);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // Rows of one picture follow those of the one before: doubled, they still do.
            let to = (2 * row + a) * 2 * width + 2 * column + b;
            each(from, to * channels + c);
        }
    }
}
