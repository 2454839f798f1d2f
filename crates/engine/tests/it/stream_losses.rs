//! Losses as a stream's work, on every device, against the naive loops.

use anchorhood_engine::naive::{
    contrastive, cosine, counting, cross_entropy, mean_squared, quantise, quarters,
    similarity::softmax_loss, tiles, uniform as drawn, widen,
};
use anchorhood_engine::{
    Buffer, Counting, Device, Loss, Positives, Result, SoftmaxLoss, Stream, Tiles,
};

use crate::common::{assert_close, every_device, representable, uniform};

every_device!(
    softmax_cross_entropy,
    weighted_classes,
    gathered_rows,
    parts_of_pictures,
    quarters_of_pictures,
    great_logits,
    softmax_between_views,
    contrastive_between_views,
    great_similarities,
    one_picture_in_two_views,
    cosine_with_stop_gradient,
    squared_error,
    means_of_other_views,
    losses_that_do_not_fit_are_refused,
    rows_by_a_codebook,
    right_guesses,
    tiles_of_pictures,
    uniform_numbers,
);

const WEIGHT: f32 = 0.75;

/// What is computed in f32 on every device may be off by.
const TOLERANCE: f64 = 1e-5;

/// Losses of `rows` rows and a gradient of `len` values.
fn losses_of(
    device: &Device,
    (rows, len): (usize, usize),
    run: impl Fn(&mut Stream, Loss) -> Result<()>,
) -> [Vec<f32>; 2] {
    let unwritten = |len| device.hand_over(vec![f32::NAN; len]).unwrap();
    let (mut losses, mut gradient) = (unwritten(rows), unwritten(len));
    let loss = Loss { rows: &mut losses, gradient: &mut gradient, weight: WEIGHT };
    run(&mut device.stream().unwrap(), loss).unwrap();
    [losses, gradient].map(|buffer| device.download(&buffer).unwrap())
}

/// Runs a loss twice, with the same bits, and compares it with the naive one.
fn check(
    device: &Device,
    what: &str,
    shape: (usize, usize),
    run: impl Fn(&mut Stream, Loss) -> Result<()>,
    naive: impl FnOnce(&mut [f64], &mut [f64]),
) {
    check_within(TOLERANCE, device, what, shape, run, naive);
}

/// The same of one that may be computed more coarsely.
fn check_within(
    tolerance: f64,
    device: &Device,
    what: &str,
    (rows, len): (usize, usize),
    run: impl Fn(&mut Stream, Loss) -> Result<()>,
    naive: impl FnOnce(&mut [f64], &mut [f64]),
) {
    let what = |thing| format!("{}: {thing} of {what}, {rows} rows", device.describe());
    let [losses, gradient] = losses_of(device, (rows, len), &run);
    let again = losses_of(device, (rows, len), &run);
    assert!([&losses, &gradient] == again.each_ref(), "{}", what("bits"));
    let mut expected = (vec![f64::NAN; rows], vec![f64::NAN; len]);
    naive(&mut expected.0, &mut expected.1);
    assert_close(&what("losses"), &losses, &expected.0, tolerance);
    // A first row without length has a gradient that dwarfs all others.
    let (got, expected) = (gradient.split_at(len / rows), expected.1.split_at(len / rows));
    assert_gradient(&what("gradient"), got.0, expected.0, tolerance);
    assert_gradient(&what("gradient"), got.1, expected.1, tolerance);
}

/// A gradient, relative to its own size, which the mean over the rows makes small.
#[track_caller]
fn assert_gradient(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1e-9_f64, |m, g| m.max(g.abs()));
    let got: Vec<f32> = (got.iter()).map(|g| (f64::from(*g) / scale) as f32).collect();
    let expected: Vec<f64> = expected.iter().map(|g| g / scale).collect();
    assert_close(what, &got, &expected, tolerance);
}

fn up(device: &Device, values: &[f32]) -> Buffer {
    device.upload(values).unwrap()
}

fn softmax_cross_entropy(device: &Device, _: f64) {
    let sizes = [(1, 1), (1, 2), (3, 7), (33, 10), (64, 100), (5, 1003), (2, 100_000)];
    for (batch, classes) in sizes {
        let logits: Vec<f32> = uniform(1, batch * classes).iter().map(|v| 8.0 * v).collect();
        let labels: Vec<u32> = (0..100).map(|i| (i * 7 % classes) as u32).collect();
        let items: Vec<u32> = (0..batch).map(|i| (i * 13 % 100) as u32).collect();
        check(
            device,
            "cross-entropy",
            (batch, batch * classes),
            |stream, loss| {
                let words = |w| device.upload_indices(w).unwrap();
                let (labels, items) = (words(&labels), words(&items));
                stream.cross_entropy(&up(device, &logits), classes, &labels, &items, loss)
            },
            |losses, gradient| {
                let (logits, weight) = (widen(&logits), f64::from(WEIGHT));
                cross_entropy::cross_entropy(
                    &logits, classes, &labels, &items, weight, losses, gradient,
                );
            },
        );
    }
}

fn weighted_classes(device: &Device, _: f64) {
    for (batch, classes) in [(1, 2), (33, 10), (5, 1003)] {
        let logits = uniform(1, batch * classes);
        let weights: Vec<f32> = (0..classes).map(|c| (c % 5) as f32 / 2.0).collect();
        let labels: Vec<u32> = (0..100).map(|i| (i * 7 % classes) as u32).collect();
        let items: Vec<u32> = (0..batch).map(|i| (i * 13 % 100) as u32).collect();
        check(
            device,
            "weighted cross-entropy",
            (batch, batch * classes),
            |stream, loss| {
                let words = |w| device.upload_indices(w).unwrap();
                let (labels, items) = (words(&labels), words(&items));
                let (logits, weights) = (up(device, &logits), up(device, &weights));
                stream.weighted_cross_entropy(&logits, &labels, &items, &weights, loss)
            },
            |losses, gradient| {
                let (logits, weights) = (widen(&logits), widen(&weights));
                let weight = f64::from(WEIGHT);
                cross_entropy::weighted_cross_entropy(
                    &logits, &weights, &labels, &items, weight, losses, gradient,
                );
            },
        );
    }
}

fn gathered_rows(device: &Device, _: f64) {
    for (count, dim) in [(1, 1), (7, 3), (40, 128)] {
        let values = uniform(1, 50 * dim);
        let items: Vec<u32> = (0..count).map(|i| (i * 13 % 50) as u32).collect();
        let mut to = up(device, &vec![f32::NAN; count * dim]);
        let mut stream = device.stream().unwrap();
        let (from, which) = (up(device, &values), device.upload_indices(&items).unwrap());
        stream.gather_rows(&from, dim, &which, &mut to).unwrap();
        let rows = items.iter().flat_map(|i| &values[*i as usize * dim..][..dim]);
        let expected: Vec<f32> = rows.copied().collect();
        assert_eq!(device.download(&to).unwrap(), expected);
        let beyond = device.upload_indices(&vec![50; count]).unwrap();
        assert!(stream.gather_rows(&from, dim, &beyond, &mut to).is_err());
        let mut short = up(device, &vec![0.0; count * dim - 1]);
        assert!(stream.gather_rows(&from, dim, &which, &mut short).is_err());
    }
}

fn parts_of_pictures(device: &Device, _: f64) {
    for (views, pictures, dim) in [(2, 2, 1), (5, 2, 7), (5, 33, 20), (3, 40, 130)] {
        let rows = uniform(1, views * pictures * dim);
        // Some of the other pictures are within it, some beyond.
        let margin = (views * dim) as f32 / 3.0;
        let distances = |device: &Device| device.zeros(2 * pictures).unwrap();
        check(
            device,
            "counting",
            (pictures, rows.len()),
            |stream, loss| {
                let of = Counting { rows: &up(device, &rows), views, dim, margin };
                stream.counting(&of, &mut distances(device), loss)
            },
            |losses, gradient| {
                let (rows, weight) = (widen(&rows), f64::from(WEIGHT));
                counting::counting(&rows, dim, views, margin.into(), weight, losses, gradient);
            },
        );
        let mut found = distances(device);
        let of = Counting { rows: &up(device, &rows), views, dim, margin };
        let (mut losses, mut gradient) =
            (device.zeros(pictures).unwrap(), device.zeros(rows.len()).unwrap());
        let loss = Loss { rows: &mut losses, gradient: &mut gradient, weight: 1.0 };
        let mut stream = device.stream().unwrap();
        stream.counting(&of, &mut found, loss).unwrap();
        let found = device.download(&found).unwrap();
        for (two, loss) in found.chunks(2).zip(device.download(&losses).unwrap()) {
            let expected = f64::from(-two[1]) + f64::from(margin + two[0]).max(0.0);
            assert_close("a loss of its distances", &[loss], &[expected], TOLERANCE);
        }
    }
}

fn quarters_of_pictures(device: &Device, _: f64) {
    for (pictures, size, channels) in [(1, 2, 1), (2, 3, 3), (3, 8, 3), (2, 33, 3)] {
        let pixels = uniform(1, pictures * size * size * channels);
        let mut to = up(device, &vec![f32::NAN; 5 * pixels.len()]);
        let mut stream = device.stream().unwrap();
        let from = up(device, &pixels);
        stream.quarters(&from, size, channels, &mut to).unwrap();
        let got = device.download(&to).unwrap();
        let expected = quarters::quarters(&widen(&pixels), size, channels);
        assert_close("quarters", &got, &expected, TOLERANCE);
        assert!(stream.quarters(&from, size + 1, channels, &mut to).is_err());
        assert!(stream.quarters(&from, 1, channels, &mut to).is_err());
        let mut short = up(device, &pixels);
        assert!(stream.quarters(&from, size, channels, &mut short).is_err());
    }
}

/// Logits whose exponentials no f32 holds.
fn great_logits(device: &Device, _: f64) {
    let words = |w: &[u32]| device.upload_indices(w).unwrap();
    let (labels, items) = (words(&[1, 1]), words(&[0, 1]));
    let logits = up(device, &[1e4, -1e4, 3e38, 0.0]);
    let [losses, gradient] = losses_of(device, (2, 4), |stream, loss| {
        stream.cross_entropy(&logits, 2, &labels, &items, loss)
    });
    assert_eq!(losses, [2e4, 3e38]);
    let half = f64::from(WEIGHT) / 2.0;
    assert_close("gradient", &gradient, &[half, -half, half, -half], 1e-6);
}

/// The queries of each view over the keys of the next one, each picture's own key being the
/// positive; similarities are as coarse as the device is.
fn softmax_between_views(device: &Device, tolerance: f64) {
    for (views, batch, dim) in [(1, 5, 8), (2, 1, 4), (2, 30, 16), (3, 17, 33), (2, 300, 128)] {
        let len = views * batch * dim;
        let [queries, keys] = [1, 2].map(|seed| representable(uniform(seed, len), tolerance));
        let mut itself = Positives::default();
        (0..batch as u32).for_each(|picture| itself.push([picture]));
        let positives = device.positives(&itself, batch).unwrap();
        let run = |stream: &mut Stream, loss: Loss| {
            let of = SoftmaxLoss {
                queries: &up(device, &queries),
                keys: &up(device, &keys),
                dim,
                temperature: 0.2,
                positives: &positives,
                items: None,
            };
            stream.softmax_between_views(&of, views, loss)
        };
        let what = format!("softmax between {views} views");
        let shape = (views * batch, len);
        check_within(tolerance, device, &what, shape, run, |losses, gradient| {
            for view in 0..views {
                let of = |values: &[f32], view: usize| {
                    values[view * batch * dim..][..batch * dim].to_vec()
                };
                let (queries, keys) = (of(&queries, view), of(&keys, (view + 1) % views));
                let (mut l, mut g) = (vec![0.0; batch], vec![0.0; batch * dim]);
                softmax_loss(&queries, &keys, dim, 0.2, &itself, &mut l, &mut g);
                for (i, l) in l.iter().enumerate() {
                    losses[view * batch + i] = f64::from(*l);
                }
                let share = f64::from(WEIGHT) / views as f64;
                for (i, g) in g.iter().enumerate() {
                    gradient[view * batch * dim + i] = share * f64::from(*g);
                }
            }
        });
    }
    let (four, mut stream) = (up(device, &[0.0; 4]), device.stream().unwrap());
    let mut itself = Positives::default();
    itself.push([0]);
    let positives = device.positives(&itself, 1).unwrap();
    let mut refused = |keys: &Buffer, views| {
        let of = SoftmaxLoss {
            queries: &four,
            keys,
            dim: 2,
            temperature: 0.2,
            positives: &positives,
            items: None,
        };
        let loss = Loss {
            rows: &mut up(device, &[0.0; 2]),
            gradient: &mut up(device, &[0.0; 4]),
            weight: 1.0,
        };
        let result = stream.softmax_between_views(&of, views, loss);
        result.unwrap_err().to_string()
    };
    let fewer = refused(&up(device, &[0.0; 2]), 2);
    assert!(fewer.contains("as many as queries"), "{fewer}");
    let more = refused(&four, 3);
    assert!(more.contains("queries of all views"), "{more}");
}

fn check_contrastive(
    device: &Device,
    rows: &[f32],
    (views, dim): (usize, usize),
    temperature: f32,
) {
    check(
        device,
        &format!("contrastive between {views} views of length {dim}"),
        (rows.len() / dim, rows.len()),
        |stream, loss| stream.contrastive(&up(device, rows), views, dim, temperature, loss),
        |losses, gradient| {
            let (rows, weight) = (widen(rows), f64::from(WEIGHT));
            let temperature = f64::from(temperature);
            contrastive::contrastive(&rows, dim, views, temperature, weight, losses, gradient);
        },
    );
}

/// Rows of length one. With as many views as a tile has keys and one more, the second tile is one
/// row, and for that row nothing but itself.
fn contrastive_between_views(device: &Device, _: f64) {
    let sizes = [
        (2, 3, 5, 0.5),
        (2, 5, 16, 0.5),
        (3, 23, 16, 0.1),
        (65, 1, 20, 0.1),
        (97, 1, 20, 0.1),
        (2, 97, 33, 0.07),
        (4, 65, 130, 0.2),
        (2, 64, 128, 0.5),
    ];
    for (views, batch, dim, temperature) in sizes {
        let mut rows = uniform(3, views * batch * dim);
        for row in rows.chunks_exact_mut(dim) {
            let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            row.iter_mut().for_each(|v| *v /= length);
        }
        check_contrastive(device, &rows, (views, dim), temperature);
    }
}

/// Similarities whose exponentials no f32 holds, and whose own last digits are coarse.
fn great_similarities(device: &Device, _: f64) {
    let values: Vec<f32> = uniform(5, 60).iter().map(|v| 100.0 * v).collect();
    let rows = up(device, &values);
    let [losses, gradient] =
        losses_of(device, (12, 60), |stream, loss| stream.contrastive(&rows, 2, 5, 1.0, loss));
    let (mut expected, mut direction) = ([f64::NAN; 12], [f64::NAN; 60]);
    let (rows, weight) = (widen(&values), f64::from(WEIGHT));
    contrastive::contrastive(&rows, 5, 2, 1.0, weight, &mut expected, &mut direction);
    assert_close("losses", &losses, &expected, TOLERANCE);
    assert_close("gradient", &gradient, &direction, 1e-2);
}

/// The softmax over one other row is 1, and that row is the positive.
fn one_picture_in_two_views(device: &Device, _: f64) {
    let rows = up(device, &[0.6, 0.8, 1.0, 0.0]);
    let got = losses_of(device, (2, 4), |stream, loss| stream.contrastive(&rows, 2, 2, 0.5, loss));
    for got in got.iter().flatten() {
        assert!(got.abs() < 1e-6, "{got}");
    }
}

fn cosine_with_stop_gradient(device: &Device, _: f64) {
    for (rows, dim) in [(1, 1), (1, 2), (7, 5), (33, 128), (9, 515), (9, 2048)] {
        let (mut p, z) = (uniform(3, rows * dim), uniform(4, rows * dim));
        p[..dim].fill(0.0); // a row without length
        check(
            device,
            "cosine",
            (rows, rows * dim),
            |stream, loss| stream.cosine(&up(device, &p), &up(device, &z), dim, loss),
            |losses, gradient| {
                let weight = f64::from(WEIGHT);
                cosine::cosine(&widen(&p), &widen(&z), dim, weight, losses, gradient);
            },
        );
    }
}

fn squared_error(device: &Device, _: f64) {
    for (rows, dim) in [(1, 1), (7, 5), (33, 128), (9, 515)] {
        let (a, b) = (uniform(5, rows * dim), uniform(6, rows * dim));
        check(
            device,
            "mean squared error",
            (rows, rows * dim),
            |stream, loss| stream.mean_squared(&up(device, &a), &up(device, &b), dim, loss),
            |losses, gradient| {
                let weight = f64::from(WEIGHT);
                mean_squared::mean_squared(&widen(&a), &widen(&b), dim, weight, losses, gradient);
            },
        );
    }
}

fn means_of_other_views(device: &Device, _: f64) {
    for (views, batch, dim) in [(2, 1, 3), (3, 7, 33), (4, 20, 128)] {
        for normalise in [false, true] {
            let rows = uniform(7, views * batch * dim);
            let mut to = device.hand_over(vec![f32::NAN; rows.len()]).unwrap();
            let mut stream = device.stream().unwrap();
            stream.mean_of_others(&up(device, &rows), views, dim, normalise, &mut to).unwrap();
            let mut expected = vec![f64::NAN; rows.len()];
            cosine::mean_of_others(&widen(&rows), dim, views, normalise, &mut expected);
            let got = device.download(&to).unwrap();
            assert_close("means of other views", &got, &expected, TOLERANCE);
        }
    }
}

fn losses_that_do_not_fit_are_refused(device: &Device, _: f64) {
    let zeros = |len| device.zeros(len).unwrap();
    let (six, four) = (zeros(6), zeros(4));
    let words = |w: &[u32]| device.upload_indices(w).unwrap();
    let mut stream = device.stream().unwrap();
    let mut refused = |rows, len, run: &dyn Fn(&mut Stream, Loss) -> Result<()>| {
        let loss = Loss { rows: &mut zeros(rows), gradient: &mut zeros(len), weight: 1.0 };
        assert!(run(&mut stream, loss).is_err(), "{rows} losses, {len} values");
    };
    refused(2, 6, &|s, loss| s.cosine(&six, &four, 3, loss));
    refused(3, 6, &|s, loss| s.cosine(&six, &six, 3, loss));
    refused(2, 4, &|s, loss| s.mean_squared(&six, &six, 3, loss));
    refused(1, 6, &|s, loss| s.mean_squared(&six, &six, 4, loss));
    refused(2, 6, &|s, loss| s.mean_squared(&six, &six, 0, loss));
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
    let [ten, two_pictures] = [zeros(10), zeros(2)].map(std::cell::RefCell::new);
    for (views, dim, margin) in [(2, 3, 1.0), (1, 1, 1.0), (3, 1, 0.0), (3, 1, f32::NAN)] {
        refused(2, 6, &|s, loss| {
            s.counting(&of(views, dim, margin), &mut two_pictures.borrow_mut(), loss)
        });
    }
    refused(2, 6, &|s, loss| s.counting(&of(3, 1, 1.0), &mut ten.borrow_mut(), loss));
    let three = zeros(3);
    refused(3, 6, &|s, loss| s.weighted_cross_entropy(&six, &labels, &two, &three, loss));
    refused(2, 6, &|s, loss| s.weighted_cross_entropy(&six, &labels, &two, &four, loss));
    assert!(stream.mean_of_others(&six, 4, 1, true, &mut zeros(6)).is_err());
    assert!(stream.mean_of_others(&six, 2, 3, true, &mut zeros(4)).is_err());
    assert!(stream.copy(&six, &mut zeros(4)).is_err());
    assert!(stream.add(&six, &mut zeros(4)).is_err());
}

fn rows_by_a_codebook(device: &Device, _: f64) {
    for (count, entries, dim) in [(1, 1, 1), (7, 3, 2), (1000, 100, 1), (513, 37, 2), (9, 4, 33)] {
        let (rows, codebook) = (uniform(3, count * dim), uniform(4, entries * dim));
        let blank = device.upload_indices(&vec![0; count]).unwrap();
        let mut to = blank.below(entries).unwrap();
        let mut stream = device.stream().unwrap();
        stream.quantise(&up(device, &rows), &up(device, &codebook), dim, &mut to).unwrap();
        let expected = quantise::quantise(&widen(&rows), &widen(&codebook), dim);
        assert_eq!(device.download_indices(&to).unwrap(), expected);
    }
    // Of two that are as near, the first; what is not a number is told by the first of all.
    let mut to = device.upload_indices(&[2, 2]).unwrap();
    let (rows, codebook) = (up(device, &[0.0, f32::NAN]), up(device, &[2.0, 1.0, -1.0]));
    let mut stream = device.stream().unwrap();
    stream.quantise(&rows, &codebook, 1, &mut to).unwrap();
    assert_eq!(device.download_indices(&to).unwrap(), [1, 0]);
    let mut few = device.upload_indices(&[0, 0]).unwrap().below(2).unwrap();
    let refused = stream.quantise(&rows, &codebook, 1, &mut few).unwrap_err();
    assert_eq!(refused.to_string(), "3 entries for numbers below 2");
}

fn right_guesses(device: &Device, _: f64) {
    for (batch, classes) in [(1, 1), (33, 4), (64, 300), (500, 3)] {
        // Few values, so that some are equal.
        let noise = uniform(5, batch * classes);
        let logits: Vec<f32> = noise.iter().map(|v| (4.0 * v).round()).collect();
        let labels: Vec<u32> = (0..100).map(|i| (i * 7 % classes) as u32).collect();
        let items: Vec<u32> = (0..batch).map(|i| (i * 13 % 100) as u32).collect();
        let words = |w: &[u32]| device.upload_indices(w).unwrap();
        let mut tally = words(&vec![5; classes + 1]);
        let mut stream = device.stream().unwrap();
        let (from, of, which) = (up(device, &logits), words(&labels), words(&items));
        stream.tally(&from, classes, &of, &which, &mut tally).unwrap();
        let mut expected = vec![5; classes + 1];
        quantise::tally(&widen(&logits), classes, &labels, &items, &mut expected);
        assert_eq!(device.download_indices(&tally).unwrap(), expected);
    }
}

fn tiles_of_pictures(device: &Device, _: f64) {
    for (cut, classes, normalise) in [
        ([10, 3, 9, 3, 1], 20, true),
        ([32, 3, 2, 8, 2], 8, false),
        ([5, 1, 1, 5, 0], 1, true),
        ([7, 4, 3, 1, 2], 3, false),
    ] {
        let [size, channels, count, side, jitter] = cut;
        let (pictures, seed, step) = (6, 7 << 33 | 5, 41);
        let pixels = uniform(6, pictures * size * size * channels);
        let room = size - side - jitter + 1;
        let places: Vec<u32> =
            (0..classes * count).map(|i| (i * 7 % (room * room)) as u32).collect();
        let words = |w: &[u32]| device.upload_indices(w).unwrap();
        let (from, table) = (up(device, &pixels), words(&places));
        let of = Tiles {
            pixels: &from,
            size,
            channels,
            places: &table,
            tiles: count,
            side,
            jitter,
            normalise,
            seed,
        };
        let mut labels = words(&vec![0; pictures]).below(classes).unwrap();
        let mut to = up(device, &vec![f32::NAN; count * pixels.len()]);
        let mut stream = device.stream().unwrap();
        stream.set_step(step, 0.0).unwrap();
        stream.tiles(&of, &mut labels, &mut to).unwrap();
        let cut = tiles::Cut { size, channels, tiles: count, side, jitter, normalise, seed };
        let expected = tiles::tiles(&cut, &widen(&pixels), &places, step);
        assert_eq!(device.download_indices(&labels).unwrap(), expected.0);
        let got = device.download(&to).unwrap();
        assert_close("tiles", &got, &expected.1, TOLERANCE);
        let mut few = words(&[0]);
        let refused = stream.tiles(&of, &mut few, &mut to).unwrap_err();
        assert!(refused.to_string().contains("a label for each picture"));
    }
}

/// Every number is the one that its place, the step and the seed say, and others come with another
/// step.
fn uniform_numbers(device: &Device, _: f64) {
    let seed = 3 << 34 | 9;
    for (len, step) in [(1, 0), (7, 5), (5000, (1 << 20) + 5)] {
        let mut to = up(device, &vec![f32::NAN; len]);
        let mut stream = device.stream().unwrap();
        stream.set_step(step, 0.0).unwrap();
        stream.uniform(seed, &mut to).unwrap();
        let got = device.download(&to).unwrap();
        let expected = drawn::uniform(seed, step, len);
        assert!(widen(&got) == expected, "step {step}: {got:?}");
        assert!(got.iter().all(|v| (-1.0..1.0).contains(v)));
        stream.set_step(step + 1, 0.0).unwrap();
        stream.uniform(seed, &mut to).unwrap();
        assert_ne!(device.download(&to).unwrap(), got);
    }
}
