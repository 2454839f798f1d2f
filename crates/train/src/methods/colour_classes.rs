//! Colours as classes: a picture's L or ab (CIE Lab) at some of its places, each told by the
//! nearest of fixed values.
//!
//! Places stand eight on a side, where pictures have so many pixels; each has the colour of one
//! pixel, as Zhang et al. subsample theirs. ab has a square grid of 11 by 11 values, 20 apart
//! (theirs are 10 apart; those no colour of sRGB is near to are never met), L 50 values, 2 apart
//! (theirs 100).

use anchorhood_engine::{Batch, Buffer, Graph, Network, Result, Stream, Window};

use crate::methods::Setup;

/// Places on a side, where there are so many pixels.
const SIDE: usize = 8;

/// What of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Lightness.
    L,
    /// The two of colour.
    Ab,
}

impl Part {
    /// Its first channel and how many it has.
    fn channels(self) -> (isize, usize) {
        match self {
            Part::L => (0, 1),
            Part::Ab => (1, 2),
        }
    }

    /// All values that colours are told by, in the engine's units: L / 50 − 1, a / 110, b / 110.
    fn codebook(self) -> Vec<f32> {
        match self {
            Part::L => (0..50).map(|i| (i as f32 + 0.5) / 25.0 - 1.0).collect(),
            Part::Ab => {
                let step = |i: usize| (i as f32 - 5.0) * 20.0 / 110.0;
                let cells = (0..11).flat_map(|a| (0..11).map(move |b| (a, b)));
                cells.flat_map(|(a, b)| [step(a), step(b)]).collect()
            }
        }
    }

    /// How many classes there are.
    pub fn classes(self) -> usize {
        self.codebook().len() / self.channels().1
    }
}

/// What a classifier is to guess of a batch.
pub(crate) struct ColourClasses {
    dim: usize,
    /// Pictures to values at places.
    network: Network,
    codebook: Buffer,
}

fn values_at_places(setup: &Setup, part: Part) -> Result<Graph> {
    let (first, dim) = part.channels();
    let pictures = setup.picture();
    let mut g = Graph::new();
    let x = g.input(pictures.height, pictures.width, pictures.channels);
    let x = g.lab("lab", x)?;
    let stride = (pictures.height / SIDE).max(1);
    let x = g.max_pool("places", x, Window::square(1, stride, 0))?;
    let x = g.channels("part", x, first, dim)?;
    g.output(x);
    Ok(g)
}

/// Places of a picture that an encoder is given.
pub(crate) fn places(setup: &Setup, part: Part) -> Result<usize> {
    let g = values_at_places(setup, part)?;
    Ok(g.shape(g.output_node()).len() / part.channels().1)
}

impl ColourClasses {
    /// For the pictures that an encoder is given.
    pub fn new(setup: &Setup, part: Part) -> Result<Self> {
        let (_, dim) = part.channels();
        let g = values_at_places(setup, part)?;
        let mut network = setup.network(&g, &setup.options(setup.batch), 0)?;
        network.normalised_by(&setup.mean, &setup.std)?;
        Ok(ColourClasses { dim, network, codebook: setup.device.upload(&part.codebook())? })
    }

    /// Writes the class of every place of a batch's first views.
    pub fn write(&mut self, stream: &mut Stream, batch: Batch, to: &mut Buffer<u32>) -> Result<()> {
        self.network.forward(stream, 0, batch.view(0))?;
        stream.quantise(self.network.output(), &self.codebook, self.dim, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_colours_do() {
        let (l, ab) = (Part::L.codebook(), Part::Ab.codebook());
        assert_eq!((Part::L.classes(), Part::Ab.classes()), (50, 121));
        assert!((l[0] + 0.98).abs() < 1e-6 && (l[49] - 0.98).abs() < 1e-6);
        // Grey is one of them.
        assert_eq!(ab[2 * 60..][..2], [0.0, 0.0]);
        assert!((ab[0] + 100.0 / 110.0).abs() < 1e-6);
    }
}
