//! Labels that are likely wrong: those that the picture's neighbours contradict, the most confident
//! contradictions first.
//!
//! Each labelled picture is voted on by the others. A class counts where its share of the votes is
//! at least as large as it is, on average, for pictures that have its label (the thresholds of
//! confident learning, Northcutt et al., 2021): where classes look alike, all votes are divided,
//! and a divided one says little. The order is by the margin, the share of the contradicting class
//! less that of the label's own.

use anchorhood_engine::Device;

use crate::SearchError;
use crate::curate::classify::votes_on;

/// A label that is likely wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrongLabel {
    /// Which picture.
    pub picture: usize,
    /// Its label.
    pub given: u32,
    /// What the others say.
    pub likely: u32,
    /// Share of the votes for the label it has.
    pub given_share: f32,
    /// Share of the votes for the other.
    pub likely_share: f32,
    /// Whether the other class's share is as large as with pictures of that class.
    pub confident: bool,
}

/// The labels that the `k` nearest labelled pictures contradict: confident ones first, then by their
/// margin.
pub fn wrong_labels(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    labels: &[Option<u32>],
    k: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<WrongLabel>, SearchError> {
    let labelled: Vec<(usize, u32)> =
        (0..labels.len()).filter_map(|i| Some((i, labels[i]?))).collect();
    let asked: Vec<usize> = labelled.iter().map(|(i, _)| *i).collect();
    let keep = |_: usize, shares: &[f64], _: f32| shares.to_vec();
    let votes = votes_on(device, vectors, dim, labels, &asked, k, progress, &keep)?;
    let usual = usual_shares(&labelled, &votes);
    let mut found = vec![];
    for ((picture, given), shares) in labelled.iter().zip(&votes) {
        let others = (0..shares.len()).filter(|class| *class != *given as usize);
        let likely = others.max_by(|a, b| shares[*a].total_cmp(&shares[*b]).then(b.cmp(a)));
        let Some(likely) = likely else { continue };
        if shares[likely] > shares[*given as usize] {
            found.push(WrongLabel {
                picture: *picture,
                given: *given,
                likely: likely as u32,
                given_share: shares[*given as usize] as f32,
                likely_share: shares[likely] as f32,
                confident: shares[likely] >= usual[likely],
            });
        }
    }
    let margin = |w: &WrongLabel| w.likely_share - w.given_share;
    found.sort_by(|a, b| {
        let confident = b.confident.cmp(&a.confident);
        confident.then(margin(b).total_cmp(&margin(a))).then(a.picture.cmp(&b.picture))
    });
    Ok(found)
}

/// For each class its mean share of the votes on pictures that have its label.
fn usual_shares(labelled: &[(usize, u32)], votes: &[Vec<f64>]) -> Vec<f64> {
    let classes = votes.first().map_or(0, Vec::len);
    let mut sums = vec![(0.0, 0.0); classes];
    for ((_, given), shares) in labelled.iter().zip(votes) {
        let (sum, count) = &mut sums[*given as usize];
        *sum += shares[*given as usize];
        *count += 1.0;
    }
    sums.iter().map(|(sum, count)| sum / f64::max(*count, 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_amid_others_is_found_and_borders_come_after_it() {
        // Two groups of angles; the fourth of the first has the second's label, and one lies
        // between them.
        let angles = [0.0_f32, 0.1, 0.2, 0.15, 0.05, 2.0, 2.1, 2.2, 2.05, 1.1];
        let labels = [0, 0, 0, 1, 0, 1, 1, 1, 1, 0].map(Some);
        let vectors: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        let found =
            |labels: &[Option<u32>]| wrong_labels(&Device::cpu(1), &vectors, 2, labels, 4, &|_| {});
        let unlabelled = labels.map(|_| None);
        assert!(found(&unlabelled).is_err());
        let found = found(&labels).unwrap();
        assert_eq!((found[0].picture, found[0].given, found[0].likely), (3, 1, 0));
        assert!(found[0].confident && found[0].likely_share > 0.9);
        assert!(found.len() <= 2, "{found:?}");
    }
}
