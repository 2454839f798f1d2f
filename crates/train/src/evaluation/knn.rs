//! Weighted k-nearest-neighbour classification, as in Wu et al. (CVPR 2018) and the paper: each of
//! a test picture's k most similar training pictures votes for its class with weight exp(similarity
//! / temperature).

use anchorhood_data::Labels;
use anchorhood_engine::{Buffer, Device, Error, Neighbours, Result, Scan};
use serde::{Deserialize, Serialize};

/// How the vote is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnnOptions {
    /// How many neighbours vote.
    pub k: usize,
    /// τ of the weights.
    pub temperature: f64,
}

impl Default for KnnOptions {
    /// The paper's: k = 200, τ = 0.07.
    fn default() -> Self {
        KnnOptions { k: 200, temperature: 0.07 }
    }
}

/// How the vote went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Share of test pictures whose class came first.
    pub top1: f64,
    /// Share whose class was among the first five; nothing where there are no more than five
    /// classes.
    pub top5: Option<f64>,
    /// Test pictures.
    pub n: usize,
    /// Neighbours that voted: fewer than asked for where there were fewer training pictures.
    pub k: usize,
    /// τ of the weights.
    pub temperature: f64,
}

/// Classifies every test feature by the training features in `bank`, both rows of length `dim`.
/// Rows of unit length make the similarity a cosine. A class nobody voted for comes nowhere; of
/// equal classes the lower number comes first. On several processes, each has its part of the rows
/// of both, and all of the labels.
pub fn weighted_knn(
    device: &Device,
    options: &KnnOptions,
    bank: &Buffer,
    dim: usize,
    train_labels: &Labels,
    test: &Buffer,
    test_labels: &Labels,
) -> Result<Accuracy> {
    check_options(options, train_labels, test_labels)?;
    let scan = Scan { dim, entropy_temperature: None, k: options.k, same: false };
    let found = device.scan(test, bank, &scan, &|_| {})?.neighbours;
    let (together, n) = (device.communicator(), test_labels.len());
    let part = together.part(n);
    let here = test.len() / dim.max(1);
    Error::check_length("labels of the test pictures", here, part.len())?;
    if let Some(i) = (found.indices.iter()).find(|i| **i as usize >= train_labels.len()) {
        return Err(Error::Plan(format!(
            "training picture {i} has no label: there are {} labels",
            train_labels.len()
        )));
    }
    let classes = train_labels.classes().len().max(test_labels.classes().len());
    let ranks = ranks(
        &found,
        options.temperature as f32,
        classes,
        train_labels,
        &test_labels.values()[part],
    );
    let hits = |first: usize| {
        let hits = ranks.iter().filter(|r| r.is_some_and(|r| r < first));
        hits.count() as f64
    };
    let mut hits = [hits(1), hits(5)];
    together.sum_f64(&mut hits)?;
    Ok(Accuracy {
        top1: hits[0] / n as f64,
        top5: (classes > 5).then(|| hits[1] / n as f64),
        n,
        k: found.k,
        temperature: options.temperature,
    })
}

fn check_options(options: &KnnOptions, train: &Labels, test: &Labels) -> Result<()> {
    let KnnOptions { k, temperature } = *options;
    if k == 0 {
        return Err(Error::Plan("kNN with k = 0: no one would vote".into()));
    }
    let votes_by = temperature as f32;
    if !(votes_by > 0.0 && votes_by.is_finite()) {
        return Err(Error::Plan(format!(
            "kNN with temperature {temperature}: must be a positive number"
        )));
    }
    if train.is_empty() || test.is_empty() {
        return Err(Error::Plan(format!(
            "kNN needs labelled pictures to train and to test on; there are {} and {}",
            train.len(),
            test.len()
        )));
    }
    Ok(())
}

/// The place of each test picture's true class in the vote, from 0; nothing where it got no vote.
fn ranks(
    found: &Neighbours,
    temperature: f32,
    classes: usize,
    train: &Labels,
    test: &[u32],
) -> Vec<Option<usize>> {
    let mut votes = vec![0.0_f64; classes];
    let rank = |(query, truth): (usize, &u32)| {
        votes.fill(0.0);
        let similarities = found.similarities_of(query);
        for (key, similarity) in found.of(query).iter().zip(similarities) {
            // Relative to the nearest: the order is the same, and nothing overflows.
            let less = f64::from(similarity - similarities[0]);
            votes[train.get(*key as usize) as usize] += (less / f64::from(temperature)).exp();
        }
        place(&votes, *truth as usize)
    };
    test.iter().enumerate().map(rank).collect()
}

/// How many classes come before one.
fn place(votes: &[f64], class: usize) -> Option<usize> {
    let own = votes[class];
    let before = |(other, vote): (usize, &f64)| *vote > own || (*vote == own && other < class);
    (own > 0.0).then(|| votes.iter().enumerate().filter(|v| before(*v)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_ties() {
        let votes = [0.5, 2.0, 0.5, 0.0];
        let places = [0, 1, 2, 3].map(|class| place(&votes, class));
        assert_eq!(places, [Some(1), Some(0), Some(2), None]);
    }
}
