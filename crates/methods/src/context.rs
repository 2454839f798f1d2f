//! Context: *Unsupervised Visual Representation Learning by Context Prediction* (Doersch et al.,
//! ICCV 2015).
//!
//! Two tiles of a picture: the one in the middle and one of the eight around it. Which of the eight
//! places is it from? A [jigsaw](Jigsaw) of two tiles and eight arrangements; the formula is the
//! same.
//!
//! Recipe for 32×32: as jigsaw's, whose cells, gaps and places within the cells are this paper's
//! idea.
//!
//! Adapted: as jigsaw is. In place of dropping colour channels, by which the paper hides the lens's
//! errors at the edges, 30% of pictures are grey.

use anchorhood_engine::Result;

use crate::{Jigsaw, Setup};

/// The places around the middle.
const PLACES: [u8; 8] = [0, 1, 2, 3, 5, 6, 7, 8];

/// Bytes of the networks and the tiles.
pub fn context_memory_bytes(setup: &Setup, hidden: usize) -> Result<usize> {
    Jigsaw::memory_of(setup, 2, PLACES.len(), hidden)
}

/// At the beginning of a run; the head has a hidden layer of so many values.
pub fn context(setup: Setup, hidden: usize) -> Result<Jigsaw> {
    let around = PLACES.map(|cell| [4, cell]);
    let pairs: Vec<&[u8]> = around.iter().map(|pair| &pair[..]).collect();
    Jigsaw::arranging("context", setup, &pairs, hidden)
}
