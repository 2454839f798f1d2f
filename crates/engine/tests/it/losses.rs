//! Every loss over rows: the naive loops against PyTorch (tools/golden/losses.py) and against
//! central finite differences in f64, for the oracle is judged before it judges; then every device
//! against the naive loops, any number of threads against one, and several processes against them.

use std::cell::RefCell;

use anchorhood_engine::naive::widen;
use anchorhood_engine::{
    Buffer, Counting, Device, DevicePositives, Error, Loss, Positives, Result, SimdLevel,
    SoftmaxLoss, Stream,
};

use crate::common::losses::{LossCase, LossKind, Softmax, TOLERANCE, WEIGHT};
use crate::common::similarity::{
    GoldenSimilarity, SIZES, golden_similarities, some_positives, unit_rows,
};
use crate::common::{assert_close, cpu, every_device, representable, uniform};
use crate::sampled_loss;

every_device!(
    cross_entropies,
    losses_between_views,
    losses_of_two_matrices,
    softmaxes_over_keys,
    what_is_not_finite_shows_in_its_loss,
    great_logits,
    great_similarities,
    one_picture_in_two_views,
    one_key,
    distances_of_counting,
    what_does_not_fit_is_refused,
);

fn wide(seed: u64, len: usize) -> Vec<f64> {
    widen(&uniform(seed, len))
}

fn labelled(batch: usize, classes: usize, scale: f64, weights: Option<Vec<f64>>) -> LossCase {
    let kind = LossKind::CrossEntropy {
        labels: (0..100).map(|i| (i * 7 % classes) as u32).collect(),
        items: (0..batch).map(|i| (i * 13 % 100) as u32).collect(),
        weights,
    };
    let logits = wide(1, batch * classes).iter().map(|v| scale * v).collect();
    LossCase::new(kind, logits, [1, classes])
}

fn cross_entropy_cases() -> Vec<LossCase> {
    let sizes = [(1, 1), (1, 2), (3, 7), (33, 10), (64, 100), (5, 1003), (2, 100_000)];
    let plain = sizes.map(|(batch, classes)| labelled(batch, classes, 8.0, None));
    let weighted = [(1, 2), (3, 7), (33, 10), (5, 1003)].map(|(batch, classes)| {
        let weights = (0..classes).map(|c| (c % 5) as f64 / 2.0).collect();
        labelled(batch, classes, 1.0, Some(weights))
    });
    plain.into_iter().chain(weighted).collect()
}

/// Contrastive: rows of length one. With as many views as a tile has keys and one more, the second
/// tile is one row, and for that row nothing but itself. Counting: some of the other pictures are
/// within the margin, some beyond.
fn view_cases() -> Vec<LossCase> {
    let contrastive = [
        (2, 1, 5, 0.5),
        (2, 3, 5, 0.5),
        (3, 3, 5, 0.5),
        (2, 5, 16, 0.5),
        (2, 12, 32, 0.5),
        (3, 12, 32, 0.5),
        (3, 23, 16, 0.1),
        (65, 1, 20, 0.1),
        (97, 1, 20, 0.1),
        (2, 97, 33, 0.07),
        (4, 65, 130, 0.2),
        (2, 64, 128, 0.5),
    ];
    let contrastive = contrastive.map(|(views, batch, dim, temperature)| {
        let rows = widen(&unit_rows(3, views * batch, dim));
        LossCase::new(LossKind::Contrastive { temperature }, rows, [views, dim])
    });
    let counting = [
        (2, 2, 1, 2.0 / 3.0),
        (2, 2, 5, 0.1),
        (2, 2, 5, 2.0),
        (2, 2, 5, 8.0),
        (5, 4, 5, 0.1),
        (5, 4, 5, 2.0),
        (5, 4, 5, 8.0),
        (5, 2, 7, 35.0 / 3.0),
        (5, 33, 20, 100.0 / 3.0),
        (3, 40, 130, 130.0),
    ];
    let counting = counting.map(|(views, pictures, dim, margin)| {
        let rows = wide(1, views * pictures * dim);
        LossCase::new(LossKind::Counting { margin }, rows, [views, dim])
    });
    contrastive.into_iter().chain(counting).collect()
}

/// The first row of predictions has no length, but for small ones.
fn pair_cases() -> Vec<LossCase> {
    let cosine = |(rows, dim): (usize, usize)| {
        let (mut p, targets) = (wide(3, rows * dim), wide(4, rows * dim));
        if (rows, dim) != (3, 7) {
            p[..dim].fill(0.0);
        }
        LossCase::new(LossKind::Cosine { targets }, p, [1, dim])
    };
    let squared = |(rows, dim): (usize, usize)| {
        let kind = LossKind::MeanSquared { other: wide(6, rows * dim) };
        LossCase::new(kind, wide(5, rows * dim), [1, dim])
    };
    let all = [(1, 1), (1, 2), (3, 7), (7, 5), (8, 32), (33, 128), (9, 515), (9, 2048)];
    all.map(cosine).into_iter().chain(all.map(squared)).collect()
}

/// As coarse as the device is.
fn softmax_cases(tolerance: f64) -> Vec<LossCase> {
    let mut cases = vec![];
    let of = |keys, temperature, positives| {
        LossKind::Softmax(Softmax { keys, temperature, positives, items: None, sample: None })
    };
    // The gradient over one key is zero: its own test.
    for (i, (b, n, dim)) in SIZES.into_iter().enumerate().filter(|(_, (_, n, _))| *n > 1) {
        for positives in [some_positives(b, n), some_positives(b, n).counting_each()] {
            let kind = of(wide(100 + i as u64, n * dim), 0.7, positives);
            let case = LossCase::new(kind, wide(i as u64, b * dim), [1, dim]);
            cases.push(case.within(tolerance));
        }
    }
    // Logits of ±10⁴: nothing overflows, and a loss of thousands is right.
    let scaled = |seed, len| wide(seed, len).iter().map(|v| v * 50.0).collect();
    let kind = of(scaled(2, 700 * 4), 0.5, some_positives(5, 700));
    cases.push(LossCase::new(kind, scaled(1, 5 * 4), [1, 4]).within(10.0 * tolerance));
    for (views, batch, dim) in [(1, 5, 8), (2, 1, 4), (2, 30, 16), (3, 17, 33), (2, 300, 128)] {
        let values = |seed| widen(&representable(uniform(seed, views * batch * dim), tolerance));
        let kind = LossKind::BetweenViews { keys: values(2), temperature: 0.2 };
        cases.push(LossCase::new(kind, values(1), [views, dim]).within(tolerance));
    }
    cases.extend(sampled_loss::cases(tolerance));
    cases
}

/// All of them, and those that PyTorch has computed.
fn all_cases() -> Vec<LossCase> {
    let own = [cross_entropy_cases(), view_cases(), pair_cases(), softmax_cases(TOLERANCE)];
    let golden = golden::all().into_iter().map(|(case, _)| case);
    own.into_iter().flatten().chain(golden).collect()
}

fn cross_entropies(device: &Device, _: f64) {
    cross_entropy_cases().iter().for_each(|case| case.check(device));
}

fn losses_between_views(device: &Device, _: f64) {
    view_cases().iter().for_each(|case| case.check(device));
}

fn losses_of_two_matrices(device: &Device, _: f64) {
    pair_cases().iter().for_each(|case| case.check(device));
}

/// Those that PyTorch has computed, too: each device is as near to them as it can be.
fn softmaxes_over_keys(device: &Device, tolerance: f64) {
    softmax_cases(tolerance).iter().for_each(|case| case.check(device));
    for (case, expected) in golden::similarity() {
        let case = case.within(tolerance);
        case.assert_like("PyTorch's", &case.on(device), &expected);
    }
}

#[test]
fn naive_losses_are_those_of_pytorch() {
    for (case, expected) in golden::all() {
        for (got, expected) in case.naively(&case.x).iter().zip(&expected) {
            golden::assert_same(&case.what(), got, expected);
        }
    }
}

/// The gradient of weight · mean(losses), beside differences of it.
#[test]
fn naive_gradients_are_slopes() {
    let mut kinds = std::collections::HashSet::new();
    for case in all_cases() {
        // What has no length has no slope.
        if case.x.len() <= 256 && case.x[..case.dim].iter().any(|v| *v != 0.0) {
            case.check_slope();
            kinds.insert(std::mem::discriminant(&case.kind));
        }
    }
    assert_eq!(kinds.len(), 7, "every kind");
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    for case in all_cases() {
        let bits = |threads, level| {
            case.on(&cpu(threads, level)).map(|v| v.into_iter().map(f32::to_bits).collect())
        };
        for level in SimdLevel::available() {
            let one: [Vec<u32>; 2] = bits(1, level);
            for threads in [2, 4] {
                assert!(one == bits(threads, level), "{}, {level}, {threads}", case.what());
            }
        }
    }
}

/// Means are over the rows of all processes, of which each has as many; keys are everybody's.
#[test]
fn several_processes_find_what_the_naive_loops_do() {
    let alone = |case: &LossCase| {
        matches!(case.kind, LossKind::Counting { .. } | LossKind::BetweenViews { .. })
    };
    let mut met = [0; 3];
    for case in all_cases().iter().filter(|case| !alone(case)) {
        for (met, ranks) in met.iter_mut().zip([1, 2, 4]) {
            if case.losses() % (case.views * ranks) == 0 {
                case.check_on_ranks(ranks);
                *met += 1;
            }
        }
    }
    assert!(met.iter().all(|met| *met >= 8), "{met:?}");
}

/// A value of one row that is not finite: that row's loss is not finite, and it alone where rows
/// are not compared with each other.
fn what_is_not_finite_shows_in_its_loss(device: &Device, _: f64) {
    const ROWS: usize = 6;
    const DIM: usize = 20;
    for bad in [f64::NAN, f64::INFINITY] {
        let fine = wide(3, ROWS * DIM);
        let mut x = wide(4, ROWS * DIM);
        x[3 * DIM + 7] = bad;
        let words: Vec<u32> = (0..ROWS as u32).collect();
        let (labels, items) = (words.clone(), words);
        let kinds = [
            (LossKind::CrossEntropy { labels, items, weights: None }, &x),
            (LossKind::Contrastive { temperature: 0.5 }, &x),
            (LossKind::Cosine { targets: fine.clone() }, &x),
            (LossKind::Cosine { targets: x.clone() }, &fine),
            (LossKind::MeanSquared { other: fine.clone() }, &x),
        ];
        for (kind, x) in kinds {
            let compared = matches!(kind, LossKind::Contrastive { .. });
            let views = if compared { 2 } else { 1 };
            assert_bad_row(device, &LossCase::new(kind, x.clone(), [views, DIM]), 3, compared);
        }
    }
    let mut queries = wide(1, 3 * 4);
    queries[5] = f64::NAN;
    let of = Softmax {
        keys: wide(2, 200 * 4),
        temperature: 0.1,
        positives: some_positives(3, 200),
        items: None,
        sample: None,
    };
    assert_bad_row(device, &LossCase::new(LossKind::Softmax(of), queries, [1, 4]), 1, false);
}

#[track_caller]
fn assert_bad_row(device: &Device, case: &LossCase, bad: usize, compared: bool) {
    let [losses, _] = case.on(device);
    let finite = losses.iter().filter(|l| l.is_finite()).count();
    let what = format!("{}: {}: {losses:?}", device.describe(), case.what());
    assert!(!losses[bad].is_finite(), "{what}");
    assert!(finite == losses.len() - 1 || compared, "{what}");
}

/// Logits whose exponentials no f32 holds.
fn great_logits(device: &Device, _: f64) {
    let (labels, items) = (vec![1, 1], vec![0, 1]);
    let kind = LossKind::CrossEntropy { labels, items, weights: None };
    let case = LossCase::new(kind, vec![1e4, -1e4, 3e38, 0.0], [1, 2]);
    let [losses, gradient] = case.on(device);
    assert_eq!(losses, [2e4, 3e38]);
    let half = f64::from(WEIGHT) / 2.0;
    assert_close("gradient", &gradient, &[half, -half, half, -half], 1e-6);
}

/// Similarities whose exponentials no f32 holds, and whose own last digits are coarse.
fn great_similarities(device: &Device, _: f64) {
    let rows = uniform(5, 60).iter().map(|v| f64::from(100.0 * v)).collect();
    let case = LossCase::new(LossKind::Contrastive { temperature: 1.0 }, rows, [2, 5]);
    let ([losses, gradient], expected) = (case.on(device), case.expected());
    assert_close("losses", &losses, &expected[0], TOLERANCE);
    assert_close("gradient", &gradient, &expected[1], 1e-2);
}

/// The softmax over one other row is 1, and that row is the positive.
fn one_picture_in_two_views(device: &Device, _: f64) {
    let kind = LossKind::Contrastive { temperature: 0.5 };
    let got = LossCase::new(kind, vec![0.6, 0.8, 1.0, 0.0], [2, 2]).on(device);
    for got in got.iter().flatten() {
        assert!(got.abs() < 1e-6, "{got}");
    }
}

/// The softmax over one key is 1.
fn one_key(device: &Device, tolerance: f64) {
    let positives = some_positives(1, 1);
    let (keys, temperature) = (vec![0.3, -2.0], 0.1);
    let of = Softmax { keys, temperature, positives, items: None, sample: None };
    let case = LossCase::new(LossKind::Softmax(of), vec![0.5, 0.1], [1, 2]);
    for got in case.on(device) {
        assert_close("loss and gradient", &got, &vec![0.0; got.len()], tolerance);
    }
}

/// What a picture's loss is made of is told, too.
fn distances_of_counting(device: &Device, _: f64) {
    for case in view_cases() {
        let LossKind::Counting { margin } = case.kind else { continue };
        let (margin, pictures) = (margin as f32, case.losses());
        let zeros = |len| device.zeros(len).unwrap();
        let (mut found, mut rows, mut gradient) =
            (zeros(2 * pictures), zeros(pictures), zeros(case.x.len()));
        let x = device.upload(&uniform(1, case.x.len())).unwrap();
        let of = Counting { rows: &x, views: case.views, dim: case.dim, margin };
        let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 1.0 };
        device.stream().unwrap().counting(&of, &mut found, loss).unwrap();
        let found = device.download(&found).unwrap();
        for (two, loss) in found.chunks(2).zip(device.download(&rows).unwrap()) {
            let expected = f64::from(-two[1]) + f64::from(margin + two[0]).max(0.0);
            assert_close("a loss of its distances", &[loss], &[expected], TOLERANCE);
        }
    }
}

fn softmax<'a>(
    queries: &'a Buffer,
    keys: &'a Buffer,
    temperature: f32,
    positives: &'a DevicePositives,
) -> SoftmaxLoss<'a> {
    SoftmaxLoss { queries, keys, dim: 2, temperature, positives, items: None }
}

fn what_does_not_fit_is_refused(device: &Device, _: f64) {
    let zeros = |len| device.zeros(len).unwrap();
    let (six, four) = (zeros(6), zeros(4));
    let words = |w: &[u32]| device.upload_indices(w).unwrap();
    let mut stream = device.stream().unwrap();
    let mut refused = |rows, len, run: &dyn Fn(&mut Stream, Loss) -> Result<()>| {
        let loss = Loss { rows: &mut zeros(rows), gradient: &mut zeros(len), weight: 1.0 };
        run(&mut stream, loss).expect_err(&format!("{rows} losses, {len} values"))
    };
    refused(2, 6, &|s, loss| s.cosine(&six, &four, 3, loss));
    refused(3, 6, &|s, loss| s.cosine(&six, &six, 3, loss));
    refused(2, 4, &|s, loss| s.custom_loss(&six, loss, &mut |_, _, _| Ok(())));
    let of_its_own = || Err(Error::Plan("no loss".into()));
    refused(2, 6, &|s, loss| s.custom_loss(&six, loss, &mut |_, _, _| of_its_own()));
    refused(6, 6, &|s, loss| s.contrastive(&six, 1, 1, 0.5, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 2, 0, 0.5, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 4, 1, 0.5, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 2, 1, 0.0, loss));
    refused(5, 6, &|s, loss| s.contrastive(&six, 2, 1, 0.5, loss));
    let (labels, two) = (words(&[0, 1, 2]), words(&[0, 1]));
    refused(2, 6, &|s, loss| s.cross_entropy(&four, 3, &labels, &two, loss));
    refused(3, 6, &|s, loss| s.cross_entropy(&six, 3, &labels, &two, loss));
    refused(2, 4, &|s, loss| s.cross_entropy(&six, 3, &labels, &two, loss));
    let (beyond, far) = (words(&[0, 3]), words(&[0, 5]));
    refused(2, 6, &|s, loss| s.cross_entropy(&six, 3, &beyond, &two, loss));
    refused(2, 6, &|s, loss| s.cross_entropy(&six, 3, &labels, &far, loss));
    refused(2, 6, &|s, loss| s.cross_entropy(&six, 0, &labels, &two, loss));
    let of = |views, dim, margin| Counting { rows: &six, views, dim, margin };
    let [ten, two_pictures] = [zeros(10), zeros(2)].map(RefCell::new);
    for (views, dim, margin) in [(2, 3, 1.0), (1, 1, 1.0), (3, 1, 0.0), (3, 1, f32::NAN)] {
        refused(2, 6, &|s, loss| {
            s.counting(&of(views, dim, margin), &mut two_pictures.borrow_mut(), loss)
        });
    }
    refused(2, 6, &|s, loss| s.counting(&of(3, 1, 1.0), &mut ten.borrow_mut(), loss));
    let three = zeros(3);
    refused(3, 6, &|s, loss| s.weighted_cross_entropy(&six, &labels, &two, &three, loss));
    refused(2, 6, &|s, loss| s.weighted_cross_entropy(&six, &labels, &two, &four, loss));

    let mut positives = Positives::default();
    positives.push([1]);
    let beyond = device.positives(&positives, 1).err().unwrap();
    assert!(beyond.to_string().contains("positive 1 of 1 keys"), "{beyond}");
    let one = device.positives(&positives, 2).unwrap();
    let itself = device.positives(&some_positives(1, 1), 1).unwrap();
    let two = zeros(2);
    let keys_of_three = softmax(&two, &three, 0.1, &one);
    let length = |error, what: &str, numbers| match error {
        Error::Length { what: said, expected, got } => {
            assert!(said.contains(what) && (expected, got) == numbers, "{said}, {expected}, {got}");
        }
        other => panic!("{other}"),
    };
    length(refused(1, 2, &|s, loss| s.softmax_loss(&keys_of_three, loss)), "keys", (4, 3));
    let cold = refused(1, 2, &|s, loss| s.softmax_loss(&softmax(&two, &four, 0.0, &one), loss));
    assert!(matches!(cold, Error::Plan(_)), "{cold}");
    let fits = softmax(&two, &four, 0.1, &one);
    length(refused(2, 2, &|s, loss| s.softmax_loss(&fits, loss)), "losses", (1, 2));
    let wider = softmax(&four, &four, 0.1, &one);
    length(refused(2, 2, &|s, loss| s.softmax_loss(&wider, loss)), "gradient", (4, 2));
    let between = |queries: &Buffer, keys: &Buffer, views| {
        let of = softmax(queries, keys, 0.2, &itself);
        let loss = Loss { rows: &mut zeros(2), gradient: &mut zeros(4), weight: 1.0 };
        device.stream().unwrap().softmax_between_views(&of, views, loss).unwrap_err()
    };
    length(between(&four, &two, 2), "as many as queries", (4, 2));
    length(between(&four, &four, 3), "queries of all views", (3, 2));
    let loss = Loss { rows: &mut zeros(1), gradient: &mut zeros(2), weight: 1.0 };
    stream.softmax_loss(&fits, loss).unwrap();
}

/// What PyTorch computes (tools/golden/losses.py).
pub(super) mod golden {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Losses {
        cross_entropy: Vec<Case>,
        weighted_cross_entropy: Vec<Case>,
        counting: Vec<Case>,
        contrastive: Vec<Case>,
        cosine: Vec<Case>,
        mean_squared: Vec<Case>,
    }

    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Case {
        dim: usize,
        x: Vec<f64>,
        weight: f32,
        losses: Vec<f64>,
        gradient: Vec<f64>,
        other: Vec<f64>,
        labels: Vec<u32>,
        indices: Vec<u32>,
        views: Option<usize>,
        temperature: f64,
        margin: f64,
    }

    type Expected = [Vec<f64>; 2];

    type Kind = fn(&Case) -> LossKind;

    /// Losses with theirs and the gradient.
    pub(super) fn all() -> Vec<(LossCase, Expected)> {
        let json = include_str!("../golden/losses.json");
        let of: Losses = serde_json::from_str(json).unwrap();
        let kinds: [(Vec<Case>, Kind); 6] = [
            (of.cross_entropy, |c| labelled(c, None)),
            (of.weighted_cross_entropy, |c| labelled(c, Some(c.other.clone()))),
            (of.counting, |c| LossKind::Counting { margin: c.margin }),
            (of.contrastive, |c| LossKind::Contrastive { temperature: c.temperature }),
            (of.cosine, |c| LossKind::Cosine { targets: c.other.clone() }),
            (of.mean_squared, |c| LossKind::MeanSquared { other: c.other.clone() }),
        ];
        let mut all = similarity();
        for (cases, kind) in kinds {
            assert!(!cases.is_empty());
            all.extend(cases.into_iter().map(|c| {
                let shape = [c.views.unwrap_or(1), c.dim];
                let case = LossCase::new(kind(&c), c.x, shape);
                (LossCase { weight: c.weight, ..case }, [c.losses, c.gradient])
            }));
        }
        all
    }

    fn labelled(c: &Case, weights: Option<Vec<f64>>) -> LossKind {
        LossKind::CrossEntropy { labels: c.labels.clone(), items: c.indices.clone(), weights }
    }

    /// Those of the softmax over keys.
    pub(super) fn similarity() -> Vec<(LossCase, Expected)> {
        let case = |c: GoldenSimilarity| {
            let (keys, mut positives) = (widen(&c.keys), Positives::default());
            let temperature = c.temperature;
            c.positives.into_iter().for_each(|own| positives.push(own));
            let of = Softmax { keys, temperature, positives, items: None, sample: None };
            let case = LossCase::new(LossKind::Softmax(of), widen(&c.queries), [1, c.dim]);
            (LossCase { weight: 1.0, ..case }, [c.losses, c.gradient])
        };
        golden_similarities().into_iter().map(case).collect()
    }

    #[track_caller]
    pub(crate) fn assert_same(what: &str, got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len(), "{what}");
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let error = (got - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-12, "{what}[{i}]: {got}, expected {expected}");
        }
    }
}
