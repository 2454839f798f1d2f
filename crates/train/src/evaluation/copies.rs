//! Pictures and two changed copies of each, by which features are judged without labels
//! ([`LabelFree`]).
//!
//! The pictures are a draw from those at hand, and a copy is the same every time and for everybody:
//! cut out, recoloured, mirrored by settings and draws of its own, which depend on no run. So any
//! two networks, methods, and moments of a run are asked the same.

use anchorhood_data::{Augmentation, Pictures, augment, normalise};
use anchorhood_engine::{Network, Result, Shape};
use anchorhood_storage::random::{Draws, Stream};

use crate::evaluation::features::raw_pixels_seen;
use crate::evaluation::rows::{See, extract_seen};
use crate::evaluation::{LabelFree, Rows};

/// Pixels' values of a picture that are compared, at most.
const MOST_VALUES: usize = 3 * 32 * 32;
const SEED: u64 = 0;

/// Some pictures, each to be compared with changed copies of itself.
#[derive(Clone, Debug)]
pub struct Copies {
    pictures: Pictures,
    /// Their numbers among all.
    numbers: Vec<usize>,
}

impl Copies {
    /// Pictures that are judged on, at most: enough that a hundredth shows, few enough to cost
    /// little.
    pub const MOST: usize = 512;

    /// A draw from these pictures, of all if there are few.
    pub fn of(pictures: &Pictures) -> Copies {
        let order = Draws::new(SEED, Stream::Copies, 0, 0).permutation(pictures.len());
        let mut numbers: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
        numbers.truncate(Copies::MOST);
        numbers.sort_unstable(); // near each other where they lie
        Copies { pictures: pictures.subset(&numbers), numbers }
    }

    /// How many pictures.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// How many pictures and copies a network is shown to be judged.
    pub fn seen(&self) -> usize {
        3 * self.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Figures of a network's features.
    pub fn judge(&self, network: &mut Network, mean: [f32; 3], std: [f32; 3]) -> Result<LabelFree> {
        let of = [self.len(), self.pictures.picture_len()];
        let result = network.graph().output_node();
        let mut rows = |copy| {
            let see = self.see(copy, mean, std);
            let mut rows = extract_seen(network, result, of, &*see, usize::MAX, &|_| {})?;
            rows.to_unit_length();
            Ok::<Rows, anchorhood_engine::Error>(rows)
        };
        Ok(LabelFree::of(&rows(None)?, [&rows(Some(0))?, &rows(Some(1))?]))
    }

    /// Figures of the pixels themselves.
    pub fn judge_raw_pixels(&self, mean: [f32; 3]) -> LabelFree {
        let shape = Shape::new(self.pictures.height(), self.pictures.width(), 3);
        let rows = |copy| {
            let see = self.see(copy, mean, [1.0; 3]);
            raw_pixels_seen(self.len(), shape, &*see, MOST_VALUES)
        };
        LabelFree::of(&rows(None), [&rows(Some(0)), &rows(Some(1))])
    }

    /// What is seen of a picture: itself, or its first copy, or the second.
    fn see(&self, copy: Option<u64>, mean: [f32; 3], std: [f32; 3]) -> Box<See<'_>> {
        let side = [self.pictures.height(), self.pictures.width()];
        Box::new(move |i, to, scratch| {
            let picture = self.pictures.picture_in(i, scratch);
            let Some(which) = copy else {
                return normalise(picture, mean, std, to);
            };
            let draws = Draws::new(SEED, Stream::Copies, 1 + which, self.numbers[i] as u64);
            augment(picture, side, side, &change(), &draws, mean, std, to);
        })
    }
}

/// How a copy is changed: as methods that compare views usually do.
fn change() -> Augmentation {
    Augmentation { hue: 0.1, jitter: 0.8, flip: 0.5, ..Augmentation::default() }
}
