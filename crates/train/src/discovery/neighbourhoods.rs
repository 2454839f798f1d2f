//! Which pictures does each picture belong with, and which of them are believed yet?

use std::ops::Range;

use anchorhood_engine::{Device, Error, Neighbours, Positives, Result, Scan};

use crate::discovery::approximate::{Approximation, approximate};
use crate::discovery::curriculum::{lowest_entropy, surer};
use crate::discovery::{DiscoverBy, MemoryBank};

/// Every picture's neighbours and entropy, and which pictures are anchors; on several processes
/// that work together, of this one's [part](anchorhood_engine::Communicator::part) of the pictures.
/// Neighbours are numbers among all.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbourhoods {
    /// The number of the first picture that is here, and how many there are on all processes.
    first: usize,
    pictures: usize,
    k: usize,
    neighbours: Vec<u32>,
    anchors: Vec<bool>,
    entropy: Vec<f32>,
    /// Of those that were looked for approximately.
    recall: Option<f64>,
}

impl Neighbourhoods {
    /// Each of `n` pictures by itself, as in round 0: no neighbours, no anchors, no entropies.
    pub fn single(n: usize) -> Self {
        Neighbourhoods::single_part(0..n, n)
    }

    /// The same of some of so many pictures.
    pub fn single_part(part: Range<usize>, pictures: usize) -> Self {
        Neighbourhoods {
            first: part.start,
            pictures,
            k: 0,
            neighbours: vec![],
            anchors: vec![false; part.len()],
            entropy: vec![],
            recall: None,
        }
    }

    /// Finds each picture's k neighbours (Eq. 1, by inner product of the rows, itself left out; all
    /// others, if they are fewer), and its entropy H = −Σ_j p_ij ln p_ij (Eq. 5, itself included).
    /// The `share` of pictures with the lowest entropy are anchors. `progress` is told how many
    /// pictures are done. Several processes discover together, each for its own pictures.
    ///
    /// Approximately, neighbours are looked for in a few clusters of the rows, and entropies
    /// estimated; what share of the true neighbours is found is measured on some pictures
    /// ([`Neighbourhoods::recall`]).
    pub fn discover(
        device: &Device,
        bank: &MemoryBank,
        by: DiscoverBy,
        k: usize,
        tau: f32,
        share: f64,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self> {
        let (together, pictures) = (device.communicator(), bank.len());
        let (k, neighbours, entropy, recall) = if by.approximates(pictures) {
            let k = k.min(pictures.saturating_sub(1));
            let Approximation { neighbours, entropy, recall } =
                approximate(device, bank, k, tau, progress)?;
            (k, neighbours, entropy, Some(recall))
        } else {
            let scan = Scan { dim: bank.dim(), entropy_temperature: Some(tau), k, same: true };
            let found = device.scan(bank.buffer(), bank.buffer(), &scan, progress)?;
            let Neighbours { k, indices, .. } = found.neighbours;
            (k, indices, found.entropy, None)
        };
        let anchors = lowest_entropy(together, &entropy, pictures, share)?;
        let first = together.part(pictures).start;
        Ok(Neighbourhoods { first, pictures, k, neighbours, anchors, entropy, recall })
    }

    /// Neighbourhoods from what [`k`](Self::k), [`neighbours`](Self::neighbours),
    /// [`anchors`](Self::anchors) and [`entropy`](Self::entropy) gave.
    pub fn from_parts(
        k: usize,
        neighbours: Vec<u32>,
        anchors: Vec<bool>,
        entropy: Vec<f32>,
    ) -> Result<Self> {
        let pictures = anchors.len();
        Neighbourhoods::of_part([0, pictures], k, neighbours, anchors, entropy)
    }

    /// The same of some pictures: the number of the first, and how many there are of all.
    pub fn of_part(
        [first, pictures]: [usize; 2],
        k: usize,
        neighbours: Vec<u32>,
        anchors: Vec<bool>,
        entropy: Vec<f32>,
    ) -> Result<Self> {
        let here = anchors.len();
        let check = |what, expected, got| match expected == got {
            true => Ok(()),
            false => Err(Error::Plan(format!(
                "neighbourhoods of {here} pictures with {k} neighbours each: expected {expected} \
                 {what}, got {got}"
            ))),
        };
        check("neighbours", here.saturating_mul(k), neighbours.len())?;
        if k > 0 || !entropy.is_empty() {
            check("entropies", here, entropy.len())?;
        }
        for (picture, of) in (first..).zip(neighbours.chunks_exact(k.max(1))) {
            let wrong = |n: &&u32| **n as usize >= pictures || **n as usize == picture;
            if let Some(neighbour) = of.iter().find(wrong) {
                return Err(Error::Plan(format!(
                    "picture {picture} has the neighbour {neighbour}, which is not another of the \
                     {pictures} pictures"
                )));
            }
        }
        Ok(Neighbourhoods { first, pictures, k, neighbours, anchors, entropy, recall: None })
    }

    /// How many pictures are here.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// How many there are on all processes.
    pub fn pictures(&self) -> usize {
        self.pictures
    }

    /// The number of the first that is here.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Neighbours of each picture.
    pub fn k(&self) -> usize {
        self.k
    }

    /// All neighbours, k for each picture, nearest first.
    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// The neighbours of a picture, by its place among those here, nearest first, whether it is an
    /// anchor or not.
    pub fn neighbours_of(&self, place: usize) -> &[u32] {
        &self.neighbours[place * self.k..(place + 1) * self.k]
    }

    /// Which pictures are anchors.
    pub fn anchors(&self) -> &[bool] {
        &self.anchors
    }

    /// How many pictures are anchors.
    pub fn anchor_count(&self) -> usize {
        self.anchors.iter().filter(|a| **a).count()
    }

    /// The share of true neighbours that an approximate discovery found, of some pictures; nothing
    /// of an exact one.
    pub fn recall(&self) -> Option<f64> {
        self.recall
    }

    /// Each picture's entropy; empty before any discovery.
    pub fn entropy(&self) -> &[f32] {
        &self.entropy
    }

    /// Pictures from the surest to the hardest; what is no number comes last.
    pub fn by_entropy(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.entropy.len() as u32).collect();
        order.sort_by(|a, b| surer(&self.entropy, *a, *b));
        order
    }

    /// What each picture is drawn towards: itself, and its neighbours if it is an anchor.
    pub fn positives(&self) -> Positives {
        let mut positives = Positives::with_capacity(self.len(), self.len() * (self.k + 1));
        for (place, anchor) in self.anchors.iter().enumerate() {
            let neighbours = if *anchor { self.neighbours_of(place) } else { &[] };
            let itself = (self.first + place) as u32;
            positives.push(std::iter::once(itself).chain(neighbours.iter().copied()));
        }
        positives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Neighbourhoods {
        let neighbours = vec![1, 2, 0, 2, 1, 0];
        let entropy = vec![0.1, 0.3, 0.2];
        Neighbourhoods::from_parts(2, neighbours, vec![true, false, true], entropy).unwrap()
    }

    #[test]
    fn only_anchors_bring_their_neighbours() {
        let positives = some().positives();
        assert_eq!(positives.len(), 3);
        assert_eq!(positives.of(2), [2, 1, 0]);
        assert_eq!(positives.of(1), [1]);
        let positives = Neighbourhoods::single(3).positives();
        assert_eq!((positives.len(), positives.of(0)), (3, &[0][..]));
    }

    #[test]
    fn from_the_surest_to_what_is_no_number() {
        let (anchors, entropy) = (vec![false, true, true, false], vec![3.0, 1.0, 1.0, f32::NAN]);
        let found = Neighbourhoods::from_parts(1, vec![1, 0, 0, 0], anchors, entropy).unwrap();
        assert_eq!(found.by_entropy(), [1, 2, 0, 3]);
        assert_eq!(found.neighbours_of(1), [0]);
        assert_eq!(found.anchor_count(), 2);
    }

    #[test]
    fn parts_make_the_same_again() {
        for n in [some(), Neighbourhoods::single(3), Neighbourhoods::single(0)] {
            let parts = (n.neighbours().to_vec(), n.anchors().to_vec(), n.entropy().to_vec());
            let again = Neighbourhoods::from_parts(n.k(), parts.0, parts.1, parts.2);
            assert_eq!(again.unwrap(), n);
        }
    }

    #[test]
    fn broken_parts_are_named() {
        let broken = |k, neighbours: &[u32], pictures, entropies| {
            let parts = (neighbours.to_vec(), vec![false; pictures], vec![0.0; entropies]);
            let error = Neighbourhoods::from_parts(k, parts.0, parts.1, parts.2).unwrap_err();
            error.to_string()
        };
        assert!(broken(1, &[1], 2, 2).contains("expected 2 neighbours, got 1"));
        assert!(broken(1, &[1, 0], 2, 1).contains("expected 2 entropies, got 1"));
        assert!(broken(1, &[2, 0], 2, 2).contains("picture 0 has the neighbour 2"));
        assert!(broken(1, &[1, 1], 2, 2).contains("picture 1 has the neighbour 1"));
        assert!(broken(usize::MAX, &[], 2, 2).contains("got 0"));
    }
}
