//! 3×3 convolutions of stride 1 by Winograd's minimal filtering F(4×4, 3×3): 36 multiplications for
//! sixteen outputs where the direct sum takes 144 (Lavin and Gray, 2016).
//!
//! ```text
//! V = Bᵀ d B   of each 6×6 tile d of the input        U = G g Gᵀ   of each 3×3 kernel g
//! M = Σ_c V[c] ⊙ U[c]                                 36 matrix products, one for each place
//! y = Aᵀ M A                                          a 4×4 tile of the output
//! ```
//!
//! In f32 it is off by about 5e-6 of the largest output (the direct sum by 2e-7; the tests state
//! their tolerance). The weight gradient is the adjoint: dU = Σ_tiles V ⊙ (A dy Aᵀ), dg = Gᵀ dU G.
//! The input gradient is the convolution of dy with the kernels turned round and their channels
//! exchanged. Channels lie along the vector lanes, so this file is used where both channel counts
//! are multiples of [`LANES`]; `conv.rs` takes the rest.
//!
//! Kept by hand: no crate has it.

mod kernels;
mod transforms;
mod weight_gradient;

use std::cell::RefCell;

use pulp::Arch;

use super::gemm::{self, Products};
use crate::Shape;
pub(super) use kernels::{pack, packed_len};
use transforms::{IntoPlaces, OutputTransform};

/// Channel counts must be a multiple of this: the widest vector there is.
pub(super) const LANES: usize = 16;
/// Extent of a tile of the input.
const SIDE: usize = 6;
/// Extent of a tile of the output.
const OUT: usize = 4;
/// Places in a tile of the input.
const PLACES: usize = SIDE * SIDE;
/// Values between the end of one place's rows and the next place's: without them all of them would
/// fall into the same set of the first-level cache.
const GAP: usize = 16;
/// Tiles transformed together: few enough for V to stay in the second-level cache, many enough to
/// make up for reading all of U.
const TILES: usize = 32;
thread_local! {
    /// Working memory of a task; it grows to the largest layer's need and stays.
    static WORK: RefCell<Vec<f32>> = const { RefCell::new(vec![]) };
}

/// Runs `f` with at least `len` values of this thread's working memory.
fn with_work<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    WORK.with_borrow_mut(|work| {
        if work.len() < len {
            work.resize(len, 0.0);
        }
        f(&mut work[..len])
    })
}

/// From one place's rows to the next place's.
fn stride(tiles: usize, channels: usize) -> usize {
    tiles * channels + GAP
}

/// Values of all places' rows.
fn places_len(tiles: usize, channels: usize) -> usize {
    PLACES * stride(tiles, channels)
}

/// One place's rows.
fn place_of(values: &[f32], e: usize, tiles: usize, channels: usize) -> &[f32] {
    &values[e * stride(tiles, channels)..][..tiles * channels]
}

/// Where one tile reads and writes, as offsets in a picture; −1 where it reaches over the edge.
struct Tile {
    input: [i32; PLACES],
    output: [i32; OUT * OUT],
    /// Whether no input is over the edge.
    inside: bool,
}

/// The tiles of one direction: from pictures of shape `from` to pictures of shape `to`.
pub(super) struct Tiles {
    from: Shape,
    to: Shape,
    tiles: Vec<Tile>,
}

impl Tiles {
    pub(super) fn new(from: Shape, to: Shape, padding: [usize; 2]) -> Self {
        let offset = |s: Shape, y: usize, x: usize| {
            if y < s.height && x < s.width { ((y * s.width + x) * s.channels) as i32 } else { -1 }
        };
        let corners = (0..to.height)
            .step_by(OUT)
            .flat_map(|y| (0..to.width).step_by(OUT).map(move |x| (y, x)));
        let tile = |(y, x): (usize, usize)| {
            let input = std::array::from_fn(|e| {
                let (y, x) = (y + e / SIDE, x + e % SIDE);
                offset(from, y.wrapping_sub(padding[0]), x.wrapping_sub(padding[1]))
            });
            Tile {
                input,
                output: std::array::from_fn(|e| offset(to, y + e / OUT, x + e % OUT)),
                inside: input.iter().all(|at| *at >= 0),
            }
        };
        Tiles { from, to, tiles: corners.map(tile).collect() }
    }

    fn count(&self) -> usize {
        self.tiles.len()
    }

    /// Asserts that `values` holds the pictures of this shape that `used` tiles from tile `start`
    /// on lie in.
    fn assert_whole(&self, shape: Shape, values: &[f32], start: usize, used: usize) {
        let pictures = (start + used).div_ceil(self.count());
        assert!(values.len() >= pictures * shape.len() && shape.channels.is_multiple_of(LANES));
    }

    /// Tiles from tile `start` of the batch on, each with its picture.
    #[inline(always)]
    fn tiles_from(&self, start: usize) -> impl Iterator<Item = (usize, &Tile)> {
        let (mut picture, mut t) = (start / self.count(), start % self.count());
        std::iter::from_fn(move || {
            let item = (picture, &self.tiles[t]);
            t += 1;
            if t == self.count() {
                (picture, t) = (picture + 1, 0);
            }
            Some(item)
        })
    }

    /// The convolution of the pictures that fill `y`, from picture `first` on.
    pub(super) fn convolve(
        &self,
        arch: Arch,
        x: &[f32],
        packed: &[f32],
        first: usize,
        accumulate: bool,
        y: &mut [f32],
    ) {
        let (c, n) = (self.from.channels, self.to.channels);
        let width = gemm::panel_width(arch);
        let tiles = y.len() / self.to.len() * self.count();
        let x = &x[first * self.from.len()..];
        let block = TILES.min(tiles);
        with_work(places_len(block, c) + places_len(block, width), |work| {
            let (v, m) = work.split_at_mut(places_len(block, c));
            for start in (0..tiles).step_by(block) {
                let used = block.min(tiles - start);
                arch.dispatch(IntoPlaces::<false> { tiles: self, from: x, start, used, to: v });
                for n0 in (0..n).step_by(width) {
                    let columns = width.min(n - n0);
                    let op = Products {
                        count: PLACES,
                        rows: used,
                        depth: c,
                        columns,
                        a: v,
                        a_stride: stride(used, c),
                        b: &packed[n0 * PLACES * c..][..PLACES * c * width],
                        c_stride: stride(used, columns),
                    };
                    gemm::products(arch, op, m);
                    arch.dispatch(OutputTransform {
                        tiles: self,
                        m,
                        start,
                        used,
                        n0,
                        columns,
                        accumulate,
                        y,
                    });
                }
            }
        });
    }
}
