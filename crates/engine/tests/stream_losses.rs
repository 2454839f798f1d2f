//! Losses as a stream's work, on every device, against the naive loops.

mod common;

use anchorhood_engine::naive::{contrastive, cosine, cross_entropy, mean_squared, widen};
use anchorhood_engine::{Buffer, Device, Loss, Result, Stream};
use common::{assert_close, every_device, uniform};

every_device!(
    softmax_cross_entropy,
    contrastive_between_views,
    cosine_with_stop_gradient,
    squared_error,
    means_of_other_views,
    losses_that_do_not_fit_are_refused,
);

const WEIGHT: f32 = 0.75;

/// Runs a loss over `rows` rows with a gradient of `len` values, and compares it with the naive one. All of it is f32, but
/// for similarities between rows in bf16.
fn check(
    device: &Device,
    what: &str,
    (rows, len): (usize, usize),
    tolerance: f64,
    run: impl FnOnce(&mut Stream, Loss) -> Result<()>,
    naive: impl FnOnce(&mut [f64], &mut [f64]),
) {
    let unwritten = |len| device.hand_over(vec![f32::NAN; len]).unwrap();
    let (mut losses, mut gradient) = (unwritten(rows), unwritten(len));
    let mut stream = device.stream().unwrap();
    let loss = Loss {
        rows: &mut losses,
        gradient: &mut gradient,
        weight: WEIGHT,
    };
    run(&mut stream, loss).unwrap();
    let mut expected = (vec![f64::NAN; rows], vec![f64::NAN; len]);
    naive(&mut expected.0, &mut expected.1);
    let down = |buffer: &Buffer| device.download(buffer).unwrap();
    let what = |thing| format!("{}: {thing} of {what}, {rows} rows", device.describe());
    assert_close(&what("losses"), &down(&losses), &expected.0, tolerance);
    // Relative to the gradient's own size, which the mean over the rows makes small.
    let scale = expected.1.iter().fold(1e-9_f64, |m, g| m.max(g.abs()));
    let got: Vec<f32> = (down(&gradient).iter())
        .map(|g| (f64::from(*g) / scale) as f32)
        .collect();
    let expected: Vec<f64> = expected.1.iter().map(|g| g / scale).collect();
    assert_close(&what("gradient"), &got, &expected, tolerance);
}

fn up(device: &Device, values: &[f32]) -> Buffer {
    device.upload(values).unwrap()
}

fn softmax_cross_entropy(device: &Device, _: f64) {
    for (batch, classes) in [(1, 2), (3, 7), (33, 10), (64, 100), (5, 1003)] {
        let logits: Vec<f32> = uniform(1, batch * classes)
            .iter()
            .map(|v| 5.0 * v)
            .collect();
        let labels: Vec<u32> = (0..100).map(|i| (i * 7 % classes) as u32).collect();
        let items: Vec<u32> = (0..batch).map(|i| (i * 13 % 100) as u32).collect();
        check(
            device,
            "cross-entropy",
            (batch, batch * classes),
            1e-5,
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

fn contrastive_between_views(device: &Device, tolerance: f64) {
    for (views, batch, dim) in [(2, 1, 8), (2, 5, 16), (3, 7, 33), (2, 64, 128), (4, 40, 20)] {
        let rows = uniform(2, views * batch * dim);
        check(
            device,
            "contrastive",
            (views * batch, rows.len()),
            tolerance,
            |stream, loss| stream.contrastive(&up(device, &rows), views, dim, 0.5, loss),
            |losses, gradient| {
                let (rows, weight) = (widen(&rows), f64::from(WEIGHT));
                contrastive::contrastive(&rows, dim, views, 0.5, weight, losses, gradient);
            },
        );
    }
}

fn cosine_with_stop_gradient(device: &Device, _: f64) {
    for (rows, dim) in [(1, 2), (7, 5), (33, 128), (9, 515)] {
        let (p, z) = (uniform(3, rows * dim), uniform(4, rows * dim));
        check(
            device,
            "cosine",
            (rows, rows * dim),
            1e-5,
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
            1e-5,
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
            stream
                .mean_of_others(&up(device, &rows), views, dim, normalise, &mut to)
                .unwrap();
            let mut expected = vec![f64::NAN; rows.len()];
            cosine::mean_of_others(&widen(&rows), dim, views, normalise, &mut expected);
            let got = device.download(&to).unwrap();
            assert_close("means of other views", &got, &expected, 1e-5);
        }
    }
}

fn losses_that_do_not_fit_are_refused(device: &Device, _: f64) {
    let zeros = |len| device.zeros(len).unwrap();
    let (six, four) = (zeros(6), zeros(4));
    let words = |w: &[u32]| device.upload_indices(w).unwrap();
    let mut stream = device.stream().unwrap();
    let mut refused = |rows, len, run: &dyn Fn(&mut Stream, Loss) -> Result<()>| {
        let loss = Loss {
            rows: &mut zeros(rows),
            gradient: &mut zeros(len),
            weight: 1.0,
        };
        assert!(
            run(&mut stream, loss).is_err(),
            "{rows} losses, {len} values"
        );
    };
    refused(2, 6, &|s, loss| s.cosine(&six, &four, 3, loss));
    refused(3, 6, &|s, loss| s.cosine(&six, &six, 3, loss));
    refused(2, 4, &|s, loss| s.mean_squared(&six, &six, 3, loss));
    refused(1, 6, &|s, loss| s.mean_squared(&six, &six, 4, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 1, 1, 0.5, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 4, 1, 0.5, loss));
    refused(6, 6, &|s, loss| s.contrastive(&six, 2, 1, 0.0, loss));
    refused(5, 6, &|s, loss| s.contrastive(&six, 2, 1, 0.5, loss));
    let (labels, two) = (words(&[0, 1, 2]), words(&[0, 1]));
    refused(2, 6, &|s, loss| {
        s.cross_entropy(&four, 3, &labels, &two, loss)
    });
    refused(3, 6, &|s, loss| {
        s.cross_entropy(&six, 3, &labels, &two, loss)
    });
    refused(2, 4, &|s, loss| {
        s.cross_entropy(&six, 3, &labels, &two, loss)
    });
    assert!(
        stream
            .mean_of_others(&six, 4, 1, true, &mut zeros(6))
            .is_err()
    );
    assert!(
        stream
            .mean_of_others(&six, 2, 3, true, &mut zeros(4))
            .is_err()
    );
    assert!(stream.copy(&six, &mut zeros(4)).is_err());
    assert!(stream.add(&six, &mut zeros(4)).is_err());
}
