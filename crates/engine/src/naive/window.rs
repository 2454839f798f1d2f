//! Which places of the input a sliding window sees, written once for convolution and pooling.

use crate::{Shape, Window};

/// A window sliding over a batch of pictures.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    /// Pictures in the batch.
    pub batch: usize,
    /// One picture's input.
    pub input: Shape,
    /// One picture's output.
    pub output: Shape,
    /// The window.
    pub window: Window,
}

impl Sliding {
    /// Calls `f(output place, input place, window place)` for every pair of places that the window
    /// connects, in the order of output places, then rows and columns of the window. Places count
    /// pixels over the whole batch; a window place is its row times its width plus its column.
    /// Padding connects to nothing, so it is left out.
    pub fn for_each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let [rows, columns] = self.window.kernel;
        for picture in 0..self.batch {
            for y in 0..self.output.height {
                for x in 0..self.output.width {
                    let to = (picture * self.output.height + y) * self.output.width + x;
                    for row in 0..rows {
                        for column in 0..columns {
                            if let Some((iy, ix)) = self.input_place(y, x, row, column) {
                                let from =
                                    (picture * self.input.height + iy) * self.input.width + ix;
                                f(to, from, row * columns + column);
                            }
                        }
                    }
                }
            }
        }
    }

    /// The input row and column under one place of the window, unless that is padding.
    fn input_place(&self, y: usize, x: usize, row: usize, column: usize) -> Option<(usize, usize)> {
        let [step_y, step_x] = self.window.stride;
        let [pad_y, pad_x] = self.window.padding;
        let iy = (y * step_y + row).checked_sub(pad_y)?;
        let ix = (x * step_x + column).checked_sub(pad_x)?;
        (iy < self.input.height && ix < self.input.width).then_some((iy, ix))
    }
}
