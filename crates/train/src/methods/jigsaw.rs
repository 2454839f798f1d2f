//! Jigsaw: *Unsupervised Learning of Visual Representations by Solving Jigsaw Puzzles* (Noroozi &
//! Favaro, ECCV 2016).
//!
//! A picture is cut into 3×3 tiles, which are put in one of some orders. One network looks at each
//! tile (a siamese network), and a head that has all nine results side by side guesses which order
//! it was. With the logits l of the orders and the true one c:
//!
//! ```text
//! ℓ = − ln [ exp(l_c) / Σ_k exp(l_k) ]
//! ```
//!
//! What the network makes of a whole picture is judged.
//!
//! Recipe for 32×32: SGD at 0.01 with weight decay 5e-4 in the paper, here AdamW at 0.001 with
//! 0.01, as its neighbours have; batch 128, cosine; crops of 0.6 to 1, no mirrors, 30% of pictures
//! grey. Cells of 10×10 pixels hold tiles of 8×8, each at a place of its own in its cell, so that
//! edges do not tell the order, and each normalised by its own mean and deviation, so that
//! brightness does not.
//!
//! Adapted: tiles are enlarged to the size of a picture, so that one network is for tiles and for
//! pictures; 100 orders in place of 1,000, each the one farthest (by Hamming distance) from those
//! before it, of 10,000 drawn; the head is a perceptron with batch norm.

use anchorhood_engine::{Batch, Buffer, Device, Graph, Network, Result, Stream, Tiles};
use anchorhood_storage::random::{Draws, Stream as Purpose};

use crate::methods::classifier::Classifier;
use crate::methods::mlp::{MlpEnd, MlpSettings, mlp};
use crate::methods::recipes::tiles;
use crate::methods::{Method, MethodSpec, PretextFigure, Setup, StateDict};

/// Guess in which order the tiles of an image are.
pub static JIGSAW: MethodSpec = MethodSpec {
    name: "jigsaw",
    summary: "Guess in which order the tiles of an image are",
    reference: "Noroozi & Favaro, ECCV 2016",
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

/// Cells on a side.
const CELLS: usize = 3;
const ORDERS: usize = 100;
/// Orders that these are chosen from.
const DRAWN: u64 = 10_000;

/// Tiles of pictures, a network that looks at each, and a head that guesses how they were arranged.
pub struct Jigsaw {
    encoder: Network,
    classifier: Classifier,
    /// Views as they are, where tiles are cut from.
    pixels: Network,
    cut: Cut,
    /// For each arrangement, where its tiles begin.
    places: Buffer<u32>,
    tiles: Buffer,
}

/// How tiles are cut.
#[derive(Clone, Copy)]
struct Cut {
    size: usize,
    tiles: usize,
    side: usize,
    jitter: usize,
    seed: u64,
}

impl Cut {
    /// The cells of a picture of so many pixels a side leave a fifth of themselves as a gap.
    fn new(size: usize, tiles: usize, seed: u64) -> Self {
        let cell = size / CELLS;
        let jitter = cell / 5;
        Cut { size, tiles, side: cell - jitter, jitter, seed }
    }

    /// Where the tile of a cell begins, as [`Tiles`] has it.
    fn place(&self, cell: u8) -> u32 {
        let room = self.size - self.side - self.jitter;
        let step = self.size / CELLS;
        let [row, column] = [cell as usize / CELLS, cell as usize % CELLS].map(|at| at * step);
        (row * (room + 1) + column) as u32
    }
}

/// Of how many tiles a puzzle is, and which of how many arrangements, each a list of cells, is
/// guessed.
#[derive(Clone, Copy, Debug)]
pub struct Puzzle {
    pub(crate) tiles: usize,
    pub(crate) arrangements: usize,
    /// Those that a seed draws.
    pub(crate) arrange: fn(u64) -> Vec<Vec<u8>>,
}

/// Jigsaw puzzles.
const PUZZLE: Puzzle = Puzzle { tiles: CELLS * CELLS, arrangements: ORDERS, arrange: far_apart };

impl Puzzle {
    /// What guesses by all tiles of a picture in which of some orders they are; it has a hidden
    /// layer of so many values.
    fn head(&self, setup: &Setup, width: usize) -> Result<Graph> {
        let head = MlpSettings { layers: 2, width, features: self.arrangements, norm: true };
        mlp(self.tiles * setup.features(), &head, MlpEnd::Plain)
    }

    /// Values of all tiles of a batch.
    fn values(&self, setup: &Setup) -> usize {
        self.tiles * setup.batch * setup.picture().len()
    }
}

impl Jigsaw {
    /// Bytes of the networks and the tiles.
    pub fn memory_bytes(setup: &Setup, puzzle: Puzzle, hidden: usize) -> Result<usize> {
        let encoder = setup.options(puzzle.tiles * setup.batch).memory_bytes(setup.graph)?;
        let head = Classifier::memory_bytes(setup, &puzzle.head(setup, hidden)?)?;
        Ok(encoder + head + 4 * puzzle.values(setup))
    }

    /// At the beginning of a run; the head has a hidden layer of so many values.
    pub fn new(setup: Setup, puzzle: Puzzle, hidden: usize) -> Result<Self> {
        let cut = Cut::new(setup.picture().height, puzzle.tiles, setup.seed);
        let graph = puzzle.head(&setup, hidden)?;
        let places = (puzzle.arrange)(setup.seed).into_iter().flatten();
        let places: Vec<u32> = places.map(|cell| cut.place(cell)).collect();
        Ok(Jigsaw {
            encoder: setup.encoder(&setup.options(cut.tiles * setup.batch))?,
            classifier: Classifier::new(&setup, ("arrangement", 1), &graph, puzzle.arrangements)?,
            pixels: setup.pixels()?,
            cut,
            places: setup.device.upload_indices(&places)?,
            tiles: setup.device.zeros(puzzle.values(&setup))?,
        })
    }
}

/// Orders of the cells, each the farthest from those before it by how many cells are elsewhere, of
/// some that a seed draws; the first of equally far ones.
fn far_apart(seed: u64) -> Vec<Vec<u8>> {
    let drawn = |item| -> Vec<u8> {
        let order = Draws::new(seed, Purpose::Puzzle, 0, item).permutation(CELLS * CELLS);
        order.into_iter().map(|cell| cell as u8).collect()
    };
    let pool: Vec<Vec<u8>> = (0..DRAWN).map(drawn).collect();
    let mut distances = vec![usize::MAX; pool.len()];
    let mut chosen = vec![pool[0].clone()];
    while chosen.len() < ORDERS {
        let last = &chosen[chosen.len() - 1];
        let mut farthest = 0;
        for (i, order) in pool.iter().enumerate() {
            let apart = order.iter().zip(last).filter(|(a, b)| a != b).count();
            distances[i] = distances[i].min(apart);
            if distances[i] > distances[farthest] {
                farthest = i;
            }
        }
        chosen.push(pool[farthest].clone());
    }
    chosen
}

impl Method for Jigsaw {
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.pixels.forward(stream, 0, batch.view(0))?;
        let Cut { size, tiles, side, jitter, seed } = self.cut;
        let of = Tiles {
            pixels: self.pixels.output(),
            size,
            channels: self.pixels.features() / (size * size),
            places: &self.places,
            tiles,
            side,
            jitter,
            normalise: true,
            seed,
        };
        stream.tiles(&of, self.classifier.labels(), &mut self.tiles)?;
        let tiles = anchorhood_engine::Input::rows(&self.tiles);
        self.encoder.forward(stream, 0, tiles)?;
        // A picture's tiles follow each other: side by side, they are one row of the head.
        self.classifier.learn(stream, self.encoder.output_of(0))?;
        let (_, gradient) = self.encoder.output_and_gradient();
        stream.copy(self.classifier.input_gradient()?, gradient)?;
        self.encoder.backward(stream, 0)?;
        self.classifier.network().update(stream)?;
        self.encoder.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.encoder), ("arrangement", self.classifier.network())]
    }

    fn pretext(&mut self, device: &Device) -> Result<Vec<PretextFigure>> {
        Ok(vec![self.classifier.figure(device)?])
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        self.classifier.keep(device, &mut state)?;
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        self.classifier.restore(device, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_orders_and_far_apart() {
        let orders = far_apart(3);
        assert_eq!(orders.len(), ORDERS);
        let mut least = 9;
        for (i, a) in orders.iter().enumerate() {
            let mut sorted = a.clone();
            sorted.sort();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
            for b in &orders[..i] {
                least = least.min(a.iter().zip(b).filter(|(a, b)| a != b).count());
            }
        }
        assert!(least >= 6, "{least}");
    }

    /// Tiles lie in their cells, whatever is drawn.
    #[test]
    fn tiles_lie_in_their_cells() {
        for size in [8, 16, 32, 33, 64] {
            let cut = Cut::new(size, 9, 0);
            let room = size - cut.side - cut.jitter;
            for cell in 0..9_u8 {
                let place = cut.place(cell) as usize;
                let last = [place / (room + 1), place % (room + 1)].map(|at| at + cut.jitter);
                let cells = [cell / 3, cell % 3].map(|c| (c as usize + 1) * (size / 3));
                assert!(last[0] + cut.side <= cells[0] && last[1] + cut.side <= cells[1]);
            }
        }
    }
}
