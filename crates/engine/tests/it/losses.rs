//! The naive losses over rows, against PyTorch (tools/golden/losses.py) and against central finite
//! differences, in f64: the oracle is judged before it judges. The devices are compared with it
//! beside their own code.

use anchorhood_engine::naive::contrastive::contrastive;
use anchorhood_engine::naive::cosine::{cosine, mean_of_others};
use anchorhood_engine::naive::counting::counting;
use anchorhood_engine::naive::cross_entropy::{cross_entropy, weighted_cross_entropy};
use anchorhood_engine::naive::mean_squared::mean_squared;
use anchorhood_engine::naive::quantise::quantise;
use anchorhood_engine::naive::quarters::quarters;
use anchorhood_engine::naive::tiles::{Cut, tiles};
use anchorhood_engine::naive::widen;

use crate::common::uniform;

const STEP: f64 = 1e-6;
/// Differences of O(1) numbers over 2e-6 keep some nine digits.
const TOLERANCE: f64 = 1e-8;
const WEIGHT: f64 = 0.75;

#[derive(serde::Deserialize)]
struct Golden {
    cross_entropy: Vec<Case>,
    weighted_cross_entropy: Vec<Case>,
    counting: Vec<Case>,
    contrastive: Vec<Case>,
    cosine: Vec<Case>,
    mean_squared: Vec<Case>,
    mean_of_others: Vec<Means>,
    quarters: Vec<Quarters>,
    tiles: Vec<Tiles>,
    quantise: Vec<Quantise>,
}

#[derive(serde::Deserialize)]
struct Case {
    dim: usize,
    x: Vec<f64>,
    weight: f64,
    losses: Vec<f64>,
    gradient: Vec<f64>,
    #[serde(default)]
    other: Vec<f64>,
    #[serde(default)]
    labels: Vec<u32>,
    #[serde(default)]
    indices: Vec<u32>,
    #[serde(default)]
    views: usize,
    #[serde(default)]
    temperature: f64,
    #[serde(default)]
    margin: f64,
}

#[derive(serde::Deserialize)]
struct Means {
    dim: usize,
    views: usize,
    normalise: bool,
    x: Vec<f64>,
    targets: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Quarters {
    size: usize,
    channels: usize,
    x: Vec<f64>,
    to: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Tiles {
    size: usize,
    channels: usize,
    side: usize,
    places: Vec<u32>,
    normalise: bool,
    x: Vec<f64>,
    to: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Quantise {
    dim: usize,
    x: Vec<f64>,
    codebook: Vec<f64>,
    to: Vec<u32>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/losses.json")).unwrap()
}

#[track_caller]
fn assert_same(what: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-12, "{what}[{i}]: {got}, expected {expected}");
    }
}

/// Runs the cases of one loss.
fn like_pytorch(cases: Vec<Case>, loss: impl Fn(&Case, &mut [f64], &mut [f64])) {
    assert!(!cases.is_empty());
    for case in cases {
        let (mut losses, mut gradient) =
            (vec![f64::NAN; case.losses.len()], vec![f64::NAN; case.x.len()]);
        loss(&case, &mut losses, &mut gradient);
        assert_same("losses", &losses, &case.losses);
        assert_same("gradient", &gradient, &case.gradient);
    }
}

#[test]
fn what_pytorch_computes() {
    let golden = golden();
    like_pytorch(golden.cross_entropy, |c, losses, gradient| {
        cross_entropy(&c.x, c.dim, &c.labels, &c.indices, c.weight, losses, gradient);
    });
    like_pytorch(golden.weighted_cross_entropy, |c, losses, gradient| {
        weighted_cross_entropy(&c.x, &c.other, &c.labels, &c.indices, c.weight, losses, gradient);
    });
    like_pytorch(golden.counting, |c, losses, gradient| {
        counting(&c.x, c.dim, c.views, c.margin, c.weight, losses, gradient);
    });
    like_pytorch(golden.contrastive, |c, losses, gradient| {
        contrastive(&c.x, c.dim, c.views, c.temperature, c.weight, losses, gradient);
    });
    like_pytorch(golden.cosine, |c, losses, gradient| {
        cosine(&c.x, &c.other, c.dim, c.weight, losses, gradient);
    });
    like_pytorch(golden.mean_squared, |c, losses, gradient| {
        mean_squared(&c.x, &c.other, c.dim, c.weight, losses, gradient);
    });
    for c in golden.quarters {
        assert_same("quarters", &quarters(&c.x, c.size, c.channels), &c.to);
    }
    for c in golden.tiles {
        // One class and no jitter: nothing is drawn.
        let cut = Cut {
            size: c.size,
            channels: c.channels,
            tiles: c.places.len(),
            side: c.side,
            jitter: 0,
            normalise: c.normalise,
            seed: 0,
        };
        let (labels, to) = tiles(&cut, &c.x, &c.places, 0);
        assert!(labels.iter().all(|class| *class == 0));
        assert_same("tiles", &to, &c.to);
    }
    for c in golden.quantise {
        assert_eq!(quantise(&c.x, &c.codebook, c.dim), c.to);
    }
    for c in golden.mean_of_others {
        let mut targets = vec![f64::NAN; c.x.len()];
        mean_of_others(&c.x, c.dim, c.views, c.normalise, &mut targets);
        assert_same("targets", &targets, &c.targets);
    }
}

/// The gradient of WEIGHT · mean(losses) at x, beside differences of it.
fn by_finite_differences(rows: usize, x: &[f64], loss: impl Fn(&[f64], &mut [f64], &mut [f64])) {
    let run = |x: &[f64]| {
        let (mut losses, mut gradient) = (vec![f64::NAN; rows], vec![f64::NAN; x.len()]);
        loss(x, &mut losses, &mut gradient);
        (WEIGHT * losses.iter().sum::<f64>() / rows as f64, gradient)
    };
    let (_, gradient) = run(x);
    let mut moved = x.to_vec();
    for (i, computed) in gradient.into_iter().enumerate() {
        let mut side = |d: f64| {
            moved[i] = x[i] + d;
            run(&moved).0
        };
        let difference = (side(STEP) - side(-STEP)) / (2.0 * STEP);
        side(0.0);
        let error = (computed - difference).abs();
        assert!(error < TOLERANCE, "[{i}]: computed {computed}, difference {difference}");
    }
}

#[test]
fn cross_entropy_by_finite_differences() {
    let (labels, indices) = ([2, 0, 6, 1], [3, 0, 2]);
    by_finite_differences(3, &widen(&uniform(1, 21)), |x, losses, gradient| {
        cross_entropy(x, 7, &labels, &indices, WEIGHT, losses, gradient);
    });
}

#[test]
fn weighted_cross_entropy_by_finite_differences() {
    let (labels, indices) = ([2, 0, 6, 1], [3, 0, 2]);
    let weights = [0.5, 2.0, 1.0, 1.0, 1.0, 1.0, 0.25];
    by_finite_differences(3, &widen(&uniform(1, 21)), |x, losses, gradient| {
        weighted_cross_entropy(x, &weights, &labels, &indices, WEIGHT, losses, gradient);
    });
}

#[test]
fn counting_by_finite_differences() {
    for (views, pictures) in [(2, 2), (5, 4)] {
        let x = widen(&uniform(1, views * pictures * 5));
        for margin in [0.1, 2.0, 8.0] {
            by_finite_differences(pictures, &x, |x, losses, gradient| {
                counting(x, 5, views, margin, WEIGHT, losses, gradient);
            });
        }
    }
}

#[test]
fn contrastive_by_finite_differences() {
    for (views, batch) in [(2, 1), (2, 4), (3, 3)] {
        let x = widen(&uniform(1, views * batch * 5));
        by_finite_differences(views * batch, &x, |x, losses, gradient| {
            contrastive(x, 5, views, 0.5, WEIGHT, losses, gradient);
        });
    }
}

#[test]
fn cosine_by_finite_differences() {
    let z = widen(&uniform(2, 21));
    by_finite_differences(3, &widen(&uniform(1, 21)), |p, losses, gradient| {
        cosine(p, &z, 7, WEIGHT, losses, gradient);
    });
}

#[test]
fn mean_squared_by_finite_differences() {
    let b = widen(&uniform(2, 21));
    by_finite_differences(3, &widen(&uniform(1, 21)), |a, losses, gradient| {
        mean_squared(a, &b, 7, WEIGHT, losses, gradient);
    });
}
