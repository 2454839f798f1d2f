//! How often is a discovered neighbourhood of one class?

use crate::discovery::Neighbourhoods;
use anchorhood_data::Labels;
use serde::{Deserialize, Serialize};

/// Counts over the anchors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consistency {
    /// Anchors all of whose neighbours carry their label.
    pub consistent_anchors: usize,
    /// Pictures that are anchors.
    pub anchors: usize,
    /// Pairs of an anchor and a neighbour that share a label.
    pub consistent_pairs: usize,
    /// Such pairs in all.
    pub pairs: usize,
}

impl Consistency {
    /// Share of anchors whose neighbours all carry their label; nothing without anchors.
    pub fn share(&self) -> Option<f64> {
        (self.anchors > 0).then(|| self.consistent_anchors as f64 / self.anchors as f64)
    }
}

/// Compares the label of every anchor that is here with its neighbours'. Panics unless there is a
/// label for each picture.
pub fn consistency(found: &Neighbourhoods, labels: &Labels) -> Consistency {
    assert_eq!(found.pictures(), labels.len(), "a label for each picture");
    let mut c = Consistency::default();
    for (place, _) in found.anchors().iter().enumerate().filter(|(_, a)| **a) {
        let (neighbours, own) = (found.neighbours_of(place), found.first() + place);
        let same = |n: &&u32| labels.get(**n as usize) == labels.get(own);
        let alike = neighbours.iter().filter(same).count();
        c.anchors += 1;
        c.consistent_anchors += usize::from(alike == neighbours.len());
        c.pairs += neighbours.len();
        c.consistent_pairs += alike;
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_anchors_and_pairs() {
        let labels = Labels::new(vec![0, 0, 1, 0], vec!["a".into(), "b".into()]);
        let neighbours = vec![1, 3, 0, 2, 0, 1, 1, 0];
        let anchors = vec![true, true, false, true];
        let found = Neighbourhoods::from_parts(2, neighbours, anchors, vec![0.0; 4]).unwrap();
        let c = consistency(&found, &labels);
        assert_eq!((c.anchors, c.consistent_anchors), (3, 2));
        assert_eq!((c.pairs, c.consistent_pairs), (6, 5));
        assert_eq!(c.share(), Some(2.0 / 3.0));
        assert_eq!(consistency(&Neighbourhoods::single(4), &labels).share(), None);
    }
}
