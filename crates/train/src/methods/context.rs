//! Context: *Unsupervised Visual Representation Learning by Context Prediction* (Doersch et al.,
//! ICCV 2015).
//!
//! Two tiles of a picture: the one in the middle and one of the eight around it. Which of the eight
//! places is it from? A [jigsaw](crate::methods::JIGSAW) of two tiles and eight arrangements; the
//! formula is the same.
//!
//! Recipe for 32×32: as jigsaw's, whose cells, gaps and places within the cells are this paper's
//! idea.
//!
//! Adapted: as jigsaw is. In place of dropping colour channels, by which the paper hides the lens's
//! errors at the edges, 30% of pictures are grey.

use crate::methods::recipes::tiles;
use crate::methods::{Jigsaw, MethodSpec, Puzzle};

/// Guess where a tile lies beside the middle one.
pub static CONTEXT: MethodSpec = MethodSpec {
    name: "context",
    summary: "Guess where a tile lies beside the middle one",
    reference: "Doersch et al., ICCV 2015",
    reads: &["projector_width"],
    passes_per_image: |_| PUZZLE.tiles,
    recipe: tiles,
    memory_bytes: |setup, config| {
        Ok((Jigsaw::memory_bytes(setup, PUZZLE, config.method.projector_width)?, 0))
    },
    build: |setup, config, _| {
        Ok(Box::new(Jigsaw::new(setup, PUZZLE, config.method.projector_width)?))
    },
    ..MethodSpec::DEFAULT
};

/// The places around the middle.
const PLACES: [u8; 8] = [0, 1, 2, 3, 5, 6, 7, 8];

/// Context prediction.
const PUZZLE: Puzzle = Puzzle { tiles: 2, arrangements: PLACES.len(), arrange: around };

fn around(_seed: u64) -> Vec<Vec<u8>> {
    PLACES.iter().map(|cell| vec![4, *cell]).collect()
}
