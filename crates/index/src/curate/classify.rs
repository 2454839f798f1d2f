//! A few labels carried to all pictures: each picture's nearest labelled ones vote.
//!
//! A labelled picture votes for its class with weight exp(similarity / τ), as in the paper's
//! evaluation. A guess's confidence is its class's share of the votes. To label next are the
//! pictures whose vote was closest, as long as each is unlike the labelled ones and unlike those
//! chosen before it: ten copies of one puzzle teach no more than one.

use anchorhood_engine::vectors::dot_products;
use anchorhood_engine::{Device, Scan};
use rayon::prelude::*;

use crate::SearchError;

/// Of the pictures to choose the next label from, so many for each that is wanted are looked at.
const CONSIDERED: usize = 20;

/// τ of the weights, as in the paper.
const TEMPERATURE: f32 = 0.07;

/// What a picture is held to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The class with the most votes, as a number.
    pub class: u32,
    /// Its share of the votes.
    pub confidence: f32,
    /// The class that came second, where there is one, and its share.
    pub second: Option<(u32, f32)>,
    /// Similarity to the nearest labelled picture.
    pub nearest: f32,
}

/// Guesses the class of every vector by the votes of the `k` nearest of those that are labelled:
/// `labels` has a class for each of them. Labelled pictures do not vote on themselves.
pub fn classify(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    labels: &[Option<u32>],
    k: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Guess>, SearchError> {
    let everybody: Vec<usize> = (0..labels.len()).collect();
    let guess = |_: usize, votes: &[f64], nearest: f32| {
        let guess = Guess::of(votes, |class| class as u32, nearest);
        Guess { second: guess.second.filter(|(_, share)| *share > 0.0), ..guess }
    };
    votes_on(device, vectors, dim, labels, &everybody, k, progress, &guess)
}

/// Asks the `k` nearest labelled pictures about each of `asked`; `make` is given the number of the
/// picture, each class's share of the votes, and the similarity to the nearest labelled picture.
pub(crate) fn votes_on<T: Send>(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    labels: &[Option<u32>],
    asked: &[usize],
    k: usize,
    progress: &(dyn Fn(usize) + Sync),
    make: &(dyn Fn(usize, &[f64], f32) -> T + Sync),
) -> Result<Vec<T>, SearchError> {
    let labelled: Vec<usize> = (0..labels.len()).filter(|i| labels[*i].is_some()).collect();
    let classes = labels.iter().flatten().max().map_or(0, |c| *c as usize + 1);
    if labelled.len() < 2 {
        return Err(SearchError::Impossible(format!(
            "{} labelled picture{}: a vote takes at least 2",
            labelled.len(),
            if labelled.len() == 1 { "" } else { "s" }
        )));
    }
    if k == 0 {
        return Err(SearchError::Impossible("a vote takes a k of at least 1".into()));
    }
    let rows = |of: &[usize]| -> Vec<f32> {
        let rows = of.iter().map(|i| &vectors[i * dim..][..dim]);
        rows.flatten().copied().collect()
    };
    let scan = Scan {
        dim,
        entropy_temperature: None,
        k: (k + 1).min(labelled.len()), // one more, for those that find themselves
        same: false,
    };
    let queries = match asked.len() == labels.len() {
        true => device.upload(vectors)?,
        false => device.upload(&rows(asked))?,
    };
    let keys = device.upload(&rows(&labelled))?;
    let found = device.scan(&queries, &keys, &scan, progress)?.neighbours;
    let ask = |at: usize| {
        let i = asked[at];
        let voters = found.of(at).iter().zip(found.similarities_of(at));
        let voters = voters.map(|(key, similarity)| (labelled[*key as usize], *similarity));
        let voters = voters.filter(|(voter, _)| *voter != i).take(k);
        let voters: Vec<(u32, f32)> =
            voters.filter_map(|(voter, similarity)| Some((labels[voter]?, similarity))).collect();
        let nearest = voters.first().map_or(0.0, |v| v.1);
        make(i, &shares(&voters, nearest, classes), nearest)
    };
    Ok((0..asked.len()).into_par_iter().map(ask).collect())
}

/// Each class's share of the votes.
fn shares(voters: &[(u32, f32)], nearest: f32, classes: usize) -> Vec<f64> {
    let mut votes = vec![0.0_f64; classes];
    for (class, similarity) in voters {
        // Relative to the nearest: the shares are the same, and nothing overflows.
        votes[*class as usize] += f64::from((similarity - nearest) / TEMPERATURE).exp();
    }
    let total: f64 = votes.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    votes.iter_mut().for_each(|v| *v /= total);
    votes
}

impl Guess {
    /// From each class's share; `class` gives its number.
    pub(crate) fn of(shares: &[f64], class: impl Fn(usize) -> u32, nearest: f32) -> Guess {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]).then(a.cmp(b)));
        let named = |at: usize| (class(at), shares[at] as f32);
        let (first, confidence) = named(order[0]);
        Guess { class: first, confidence, second: order.get(1).map(|at| named(*at)), nearest }
    }
}

/// Share of the labelled pictures that the others would have guessed right: what accuracy to
/// expect, told from the labels alone. Of few labels it is rough.
pub fn leave_one_out(labels: &[Option<u32>], guesses: &[Guess]) -> f64 {
    let labelled = labels.iter().zip(guesses).filter(|(l, _)| l.is_some());
    let right = labelled.clone().filter(|(l, g)| **l == Some(g.class));
    right.count() as f64 / labelled.count().max(1) as f64
}

/// The `count` unlabelled pictures whose labels would help most, the most helpful first.
pub fn label_next(
    vectors: &[f32],
    dim: usize,
    labels: &[Option<u32>],
    guesses: &[Guess],
    count: usize,
) -> Vec<usize> {
    // 1 where the two best classes are even, 0 where nobody contradicted.
    let doubt = |g: &Guess| 1.0 - (g.confidence - g.second.map_or(0.0, |s| s.1));
    // A picture unlike anything labelled is a guess in the dark, however united the few that voted.
    let worth = |i: usize| doubt(&guesses[i]) + (1.0 - guesses[i].nearest).clamp(0.0, 1.0);
    let mut open: Vec<usize> = (0..labels.len()).filter(|i| labels[*i].is_none()).collect();
    open.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)).then(a.cmp(b)));
    open.truncate(count.saturating_mul(CONSIDERED));
    let rows: Vec<f32> =
        open.iter().flat_map(|i| vectors[i * dim..][..dim].iter().copied()).collect();
    let mut apart = vec![1.0_f32; open.len()];
    let mut similar = vec![0.0; open.len()];
    let mut chosen = vec![];
    while chosen.len() < count.min(open.len()) {
        let score = |at: usize| worth(open[at]) * apart[at];
        let best = (0..open.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)).then(b.cmp(a)));
        let Some(best) = best else { break };
        chosen.push(open[best]);
        dot_products(&rows, dim, &rows[best * dim..][..dim], &mut similar);
        for (apart, similar) in apart.iter_mut().zip(&similar) {
            *apart = apart.min((1.0 - similar).max(0.0));
        }
        apart[best] = -1.0; // never again
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(angles: &[f32]) -> Vec<f32> {
        angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect()
    }

    #[test]
    fn labels_spread_to_what_is_near() {
        let vectors = at(&[0.0, 0.1, 0.2, 1.5, 1.6, 1.4, 0.75]);
        let labels = [Some(0), Some(0), None, Some(1), Some(1), None, None];
        let guesses = classify(&Device::cpu(1), &vectors, 2, &labels, 10, &|_| {}).unwrap();
        let classes: Vec<u32> = guesses.iter().map(|g| g.class).collect();
        assert_eq!(classes[..6], [0, 0, 0, 1, 1, 1]);
        assert!(guesses[2].confidence > 0.99 && guesses[6].confidence < 0.9);
        assert_eq!(leave_one_out(&labels, &guesses), 1.0);
        assert_eq!(label_next(&vectors, 2, &labels, &guesses, 1), [6]);
        assert_eq!(label_next(&vectors, 2, &labels, &guesses, 9).len(), 3);
    }

    /// The picture itself is left out of its own vote: a lone label in the midst of others is
    /// outvoted.
    #[test]
    fn nobody_votes_on_himself() {
        let vectors = at(&[0.0, 0.01, 0.02, 2.0]);
        let labels = [Some(0), Some(1), Some(0), Some(1)];
        let guesses = classify(&Device::cpu(1), &vectors, 2, &labels, 2, &|_| {}).unwrap();
        assert_eq!(guesses[1].class, 0);
        assert_eq!(leave_one_out(&labels, &guesses), 0.0);
    }

    /// Copies of one puzzle are not asked for twice before others are.
    #[test]
    fn the_next_are_unlike_each_other() {
        let vectors = at(&[0.0, 3.0, 1.5, 1.5, 1.5, -1.6]);
        let labels = [Some(0), Some(1), None, None, None, None];
        let guesses = classify(&Device::cpu(1), &vectors, 2, &labels, 10, &|_| {});
        let next = label_next(&vectors, 2, &labels, &guesses.unwrap(), 2);
        assert!(next.contains(&5), "{next:?}");
    }

    #[test]
    fn one_label_is_not_enough() {
        let refused = |labels: [Option<u32>; 2], k| {
            let error = classify(&Device::cpu(1), &at(&[0.0, 1.0]), 2, &labels, k, &|_| {});
            error.unwrap_err().is_usage()
        };
        assert!(refused([Some(0), None], 10) && refused([Some(0), Some(1)], 0));
    }
}
