//! Which pictures show where a network looks: some that it placed well, and one that it did not.

use anchorhood_data::Split;
use anchorhood_train::discovery::Neighbourhoods;
use serde::{Deserialize, Serialize};

/// A training picture to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Its number.
    pub number: usize,
    /// Its class.
    pub class: String,
    /// Whether some of the neighbours found for it are of another class.
    pub failure: bool,
}

/// Pictures that are placed well.
const WELL: usize = 5;

/// The first picture of each of the first five classes that have one whose neighbours in a round
/// are of its class, and the first picture of all, of another class than these if there is one,
/// whose neighbours are not.
pub fn choose(found: Option<&Neighbourhoods>, train: &Split) -> Vec<Chosen> {
    let (Some(found), Some(labels)) = (found, &train.labels) else {
        return vec![];
    };
    let n = labels.len().min(found.len());
    let well = |i: usize| {
        let same = |j: &u32| labels.get(*j as usize) == labels.get(i);
        found.neighbours_of(i).iter().all(same)
    };
    let anchors: Vec<usize> = (0..n).filter(|i| found.anchors()[*i]).collect();
    let chosen = |i: usize, failure| Chosen {
        number: i,
        class: labels.classes()[labels.get(i) as usize].clone(),
        failure,
    };
    let firsts = (0..labels.classes().len() as u32).filter_map(|class| {
        let mut of_class = anchors.iter().filter(|i| labels.get(**i) == class);
        of_class.find(|i| well(**i))
    });
    let mut all: Vec<Chosen> = firsts.take(WELL).map(|i| chosen(*i, false)).collect();
    let failures: Vec<usize> = anchors.iter().copied().filter(|i| !well(*i)).collect();
    let shown = |i: &&usize| {
        let class = &labels.classes()[labels.get(**i) as usize];
        all.iter().any(|c| c.class == *class)
    };
    let failure = failures.iter().find(|i| !shown(i)).or(failures.first());
    all.extend(failure.map(|i| chosen(*i, true)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::{Labels, Pictures};

    #[test]
    fn some_well_placed_and_one_failure() {
        let labels = vec![0, 0, 1, 1, 2, 2];
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let train = Split {
            pictures: Pictures::new(1, 1, vec![0; 18]).unwrap(),
            labels: Some(Labels::new(labels, names)),
            names: vec![],
        };
        let neighbours = vec![2, 0, 3, 4, 0, 1]; // 0: wrong, 1: right, 2: right, 3 to 5: wrong
        let anchors = vec![true, true, true, true, false, true];
        let last = Neighbourhoods::from_parts(1, neighbours, anchors, vec![0.0; 6]).unwrap();
        let found = choose(Some(&last), &train);
        let brief: Vec<_> = found.iter().map(|c| (c.number, c.failure)).collect();
        assert_eq!(brief, [(1, false), (2, false), (5, true)]);
        assert_eq!(found[2].class, "c", "a class that is not shown yet");
        assert!(choose(None, &train).is_empty());
    }
}
