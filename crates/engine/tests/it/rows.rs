//! What lies around losses: rows copied, counted, told apart and drawn, and parts of pictures. The
//! naive loops against PyTorch (tools/golden/losses.py), and every device against them.

use anchorhood_engine::naive::losses::{mean_of_others, quantise, tally};
use anchorhood_engine::naive::quarters::quarters;
use anchorhood_engine::naive::tiles::{Cut, tiles};
use anchorhood_engine::naive::{uniform as drawn, widen};
use anchorhood_engine::{Buffer, Device, Result, Stream, Tiles};

use super::losses::golden::assert_same;
use crate::common::losses::TOLERANCE;
use crate::common::training::gathered;
use crate::common::{assert_close, every_device, uniform};

every_device!(
    gathered_rows,
    quarters_of_pictures,
    means_of_other_views,
    rows_by_a_codebook,
    right_guesses,
    tiles_of_pictures,
    uniform_numbers,
    copies_that_do_not_fit_are_refused,
);

#[derive(serde::Deserialize)]
struct Golden {
    mean_of_others: Vec<Case>,
    quarters: Vec<Case>,
    tiles: Vec<Case>,
    quantise: Vec<Case<u32>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Case<T = f64> {
    x: Vec<f64>,
    #[serde(alias = "targets")]
    to: Vec<T>,
    dim: usize,
    views: usize,
    normalise: bool,
    size: usize,
    channels: usize,
    side: usize,
    places: Vec<u32>,
    codebook: Vec<f64>,
}

#[test]
fn naive_rows_are_those_of_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/losses.json")).unwrap();
    for c in golden.mean_of_others {
        assert_same("targets", &mean_of_others(&c.x, c.dim, c.views, c.normalise), &c.to);
    }
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
}

fn up(device: &Device, values: &[f32]) -> Buffer {
    device.upload(values).unwrap()
}

fn words(device: &Device, words: &[u32]) -> Buffer<u32> {
    device.upload_indices(words).unwrap()
}

/// What work writes to so many values, by a stream that is at this step.
fn written(
    device: &Device,
    len: usize,
    step: u64,
    work: impl FnOnce(&mut Stream, &mut Buffer) -> Result<()>,
) -> Vec<f32> {
    let (mut to, mut stream) = (up(device, &vec![f32::NAN; len]), device.stream().unwrap());
    stream.set_step(step, 0.0).unwrap();
    work(&mut stream, &mut to).unwrap();
    device.download(&to).unwrap()
}

fn gathered_rows(device: &Device, _: f64) {
    for (count, dim) in [(1, 1), (7, 3), (40, 128)] {
        let values = uniform(1, 50 * dim);
        let items: Vec<u32> = (0..count).map(|i| (i * 13 % 50) as u32).collect();
        let (from, which) = (up(device, &values), words(device, &items));
        let got = written(device, count * dim, 0, |s, to| s.gather_rows(&from, dim, &which, to));
        assert_eq!(got, gathered(&values, dim, &items));
        let (beyond, mut stream) = (words(device, &vec![50; count]), device.stream().unwrap());
        let to = |len| up(device, &vec![0.0; len]);
        assert!(stream.gather_rows(&from, dim, &beyond, &mut to(count * dim)).is_err());
        assert!(stream.gather_rows(&from, dim, &which, &mut to(count * dim - 1)).is_err());
    }
}

fn quarters_of_pictures(device: &Device, _: f64) {
    for (pictures, size, channels) in [(1, 2, 1), (2, 3, 3), (3, 8, 3), (2, 33, 3)] {
        let pixels = uniform(1, pictures * size * size * channels);
        let from = up(device, &pixels);
        let len = 5 * pixels.len();
        let got = written(device, len, 0, |s, to| s.quarters(&from, size, channels, to));
        let expected = quarters(&widen(&pixels), size, channels);
        assert_close("quarters", &got, &expected, TOLERANCE);
        let mut stream = device.stream().unwrap();
        for (size, len) in [(size + 1, len), (1, len), (size, pixels.len())] {
            let mut to = up(device, &vec![0.0; len]);
            assert!(stream.quarters(&from, size, channels, &mut to).is_err());
        }
    }
}

fn means_of_other_views(device: &Device, _: f64) {
    for (views, batch, dim) in [(2, 1, 3), (3, 7, 33), (4, 20, 128)] {
        for normalise in [false, true] {
            let rows = uniform(7, views * batch * dim);
            let from = up(device, &rows);
            let got = written(device, rows.len(), 0, |s, to| {
                s.mean_of_others(&from, views, dim, normalise, to)
            });
            let expected = mean_of_others(&widen(&rows), dim, views, normalise);
            assert_close("means of other views", &got, &expected, TOLERANCE);
        }
    }
}

fn rows_by_a_codebook(device: &Device, _: f64) {
    let nearest = |rows: &[f32], codebook: &[f32], dim| {
        let count = rows.len() / dim;
        let mut to = words(device, &vec![0; count]).below(codebook.len() / dim).unwrap();
        let mut stream = device.stream().unwrap();
        stream.quantise(&up(device, rows), &up(device, codebook), dim, &mut to).unwrap();
        device.download_indices(&to).unwrap()
    };
    for (count, entries, dim) in [(1, 1, 1), (7, 3, 2), (1000, 100, 1), (513, 37, 2), (9, 4, 33)] {
        let (rows, codebook) = (uniform(3, count * dim), uniform(4, entries * dim));
        let expected = quantise(&widen(&rows), &widen(&codebook), dim);
        assert_eq!(nearest(&rows, &codebook, dim), expected);
    }
    // Of two that are as near, the first; what is not a number is told by the first of all.
    assert_eq!(nearest(&[0.0, f32::NAN], &[2.0, 1.0, -1.0], 1), [1, 0]);
    let mut few = words(device, &[0, 0]).below(2).unwrap();
    let (rows, codebook) = (up(device, &[0.0; 2]), up(device, &[2.0, 1.0, -1.0]));
    let refused = device.stream().unwrap().quantise(&rows, &codebook, 1, &mut few).unwrap_err();
    assert_eq!(refused.to_string(), "3 entries for numbers below 2");
}

fn right_guesses(device: &Device, _: f64) {
    for (batch, classes) in [(1, 1), (33, 4), (64, 300), (500, 3)] {
        // Few values, so that some are equal.
        let noise = uniform(5, batch * classes);
        let logits: Vec<f32> = noise.iter().map(|v| (4.0 * v).round()).collect();
        let labels: Vec<u32> = (0..100).map(|i| (i * 7 % classes) as u32).collect();
        let items: Vec<u32> = (0..batch).map(|i| (i * 13 % 100) as u32).collect();
        let mut found = words(device, &vec![5; classes + 1]);
        let (from, of, which) =
            (up(device, &logits), words(device, &labels), words(device, &items));
        let mut stream = device.stream().unwrap();
        stream.tally(&from, classes, &of, &which, &mut found).unwrap();
        let mut expected = vec![5; classes + 1];
        tally(&widen(&logits), classes, &labels, &items, &mut expected);
        assert_eq!(device.download_indices(&found).unwrap(), expected);
    }
}

fn tiles_of_pictures(device: &Device, _: f64) {
    for (cut, classes, normalise) in [
        ([10, 3, 9, 3, 1], 20, true),
        ([32, 3, 2, 8, 2], 8, false),
        ([5, 1, 1, 5, 0], 1, true),
        ([7, 4, 3, 1, 2], 3, false),
    ] {
        let [size, channels, tiles_of_one, side, jitter] = cut;
        let (pictures, seed, step) = (6, 7 << 33 | 5, 41);
        let pixels = uniform(6, pictures * size * size * channels);
        let room = size - side - jitter + 1;
        let places = (0..classes * tiles_of_one).map(|i| (i * 7 % (room * room)) as u32);
        let places: Vec<u32> = places.collect();
        let of = Tiles {
            pixels: &up(device, &pixels),
            size,
            channels,
            places: &words(device, &places),
            tiles: tiles_of_one,
            side,
            jitter,
            normalise,
            seed,
        };
        let mut labels = words(device, &vec![0; pictures]).below(classes).unwrap();
        let len = tiles_of_one * pixels.len();
        let got = written(device, len, step, |s, to| s.tiles(&of, &mut labels, to));
        let cut = Cut { size, channels, tiles: tiles_of_one, side, jitter, normalise, seed };
        let expected = tiles(&cut, &widen(&pixels), &places, step);
        assert_eq!(device.download_indices(&labels).unwrap(), expected.0);
        assert_close("tiles", &got, &expected.1, TOLERANCE);
        let (mut few, mut to) = (words(device, &[0]), up(device, &got));
        let refused = device.stream().unwrap().tiles(&of, &mut few, &mut to).unwrap_err();
        assert!(refused.to_string().contains("a label for each picture"));
    }
}

/// Every number is the one that its place, the step and the seed say, and others come with another
/// step.
fn uniform_numbers(device: &Device, _: f64) {
    let seed = 3 << 34 | 9;
    for (len, step) in [(1, 0), (7, 5), (5000, (1 << 20) + 5)] {
        let of = |step| written(device, len, step, |stream, to| stream.uniform(seed, to));
        let got = of(step);
        assert!(widen(&got) == drawn::uniform(seed, step, len), "step {step}: {got:?}");
        assert!(got.iter().all(|v| (-1.0..1.0).contains(v)));
        assert_ne!(of(step + 1), got);
    }
}

fn copies_that_do_not_fit_are_refused(device: &Device, _: f64) {
    let zeros = |len| device.zeros(len).unwrap();
    let (six, mut stream) = (zeros(6), device.stream().unwrap());
    assert!(stream.mean_of_others(&six, 4, 1, true, &mut zeros(6)).is_err());
    assert!(stream.mean_of_others(&six, 2, 3, true, &mut zeros(4)).is_err());
    assert!(stream.copy(&six, &mut zeros(4)).is_err());
    assert!(stream.add(&six, &mut zeros(4)).is_err());
}
