//! kNN on features and pixels against plain loops.

use anchorhood_data::{Labels, Pictures};
use anchorhood_engine::Device;
use anchorhood_engine::vectors::to_unit_length;
use anchorhood_storage::random::{Draws, Stream};
use anchorhood_train::evaluation::{KnnOptions, raw_pixels_within, weighted_knn};

fn labels(values: &[u32], classes: usize) -> Labels {
    let names = (0..classes).map(|c| format!("class {c}")).collect();
    Labels::new(values.to_vec(), names)
}

/// Noisy rows of unit length around a centre for each class.
fn features(seed: u64, values: &[u32], dim: usize) -> Vec<f32> {
    let mut out = vec![];
    for (i, class) in values.iter().enumerate() {
        let (mut centre, mut row) = (vec![0.0; dim], vec![0.0; dim]);
        Draws::new(0, Stream::Test, 0, u64::from(*class)).fill_symmetric(&mut centre, 1.0);
        Draws::new(seed, Stream::Test, 1, i as u64).fill_symmetric(&mut row, 2.5);
        out.extend(row.iter().zip(centre).map(|(r, c)| r + c));
    }
    to_unit_length(&mut out, dim);
    out
}

/// Top-1 and top-5 by sorting everything.
fn naive_knn(
    options: &KnnOptions,
    train: (&[f32], &[u32]),
    test: (&[f32], &[u32]),
    dim: usize,
    classes: usize,
) -> (f64, f64) {
    let mut hits = [0, 0];
    for (x, truth) in test.0.chunks_exact(dim).zip(test.1) {
        let mut near: Vec<(f64, u32)> = (train.0.chunks_exact(dim).zip(train.1))
            .map(|(y, class)| {
                let products = x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y));
                (products.sum::<f64>(), *class)
            })
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut votes: Vec<(f64, u32)> = (0..classes as u32).map(|c| (0.0, c)).collect();
        for (similarity, class) in near.iter().take(options.k) {
            votes[*class as usize].0 += (similarity / options.temperature).exp();
        }
        votes.retain(|v| v.0 > 0.0);
        votes.sort_by(|a, b| b.0.total_cmp(&a.0));
        hits[0] += usize::from(votes.iter().take(1).any(|v| v.1 == *truth));
        hits[1] += usize::from(votes.iter().take(5).any(|v| v.1 == *truth));
    }
    let share = |h: usize| h as f64 / test.1.len() as f64;
    (share(hits[0]), share(hits[1]))
}

#[test]
fn agrees_with_plain_loops() {
    let (classes, dim) = (8, 10);
    let train_values: Vec<u32> = (0..403).map(|i| i * 7 % classes).collect();
    let test_values: Vec<u32> = (0..151).map(|i| i * 5 % classes).collect();
    let (train, test) = (features(1, &train_values, dim), features(2, &test_values, dim));
    let (train_labels, test_labels) = (labels(&train_values, 8), labels(&test_values, 8));
    let device = Device::cpu(2);
    let (bank, queries) = (device.upload(&train).unwrap(), device.upload(&test).unwrap());
    for (k, temperature) in [(1, 0.07), (20, 0.07), (200, 0.5), (1000, 0.1)] {
        let options = KnnOptions { k, temperature };
        let got =
            weighted_knn(&device, &options, &bank, dim, &train_labels, &queries, &test_labels)
                .unwrap();
        let classes = classes as usize;
        let (top1, top5) =
            naive_knn(&options, (&train, &train_values), (&test, &test_values), dim, classes);
        assert!(top1 > 0.2 && top1 < 0.95, "the task is neither trivial nor hopeless: {top1}");
        assert_eq!((got.top1, got.top5), (top1, Some(top5)), "k = {k}");
        assert_eq!((got.n, got.k), (151, k.min(403)));
    }
}

#[test]
fn no_top5_of_five_classes() {
    let values = [0, 1, 2, 3, 4];
    let device = Device::cpu(1);
    let rows = device.upload(&features(1, &values, 4)).unwrap();
    let labels = labels(&values, 5);
    let options = KnnOptions::default();
    let result = weighted_knn(&device, &options, &rows, 4, &labels, &rows, &labels).unwrap();
    assert_eq!((result.top1, result.top5, result.k), (1.0, None, 5));
}

#[test]
fn says_what_cannot_be() {
    let device = Device::cpu(1);
    let (two, none) = (labels(&[0, 1], 2), labels(&[], 2));
    let rows = device.upload(&[1.0, 0.0, 0.0, 1.0]).unwrap();
    let message = |k, temperature, train: &Labels, test: &Labels| {
        let options = KnnOptions { k, temperature };
        let result = weighted_knn(&device, &options, &rows, 2, train, &rows, test);
        result.unwrap_err().to_string()
    };
    assert!(message(0, 0.1, &two, &two).contains("k = 0"));
    assert!(message(1, -1.0, &two, &two).contains("temperature -1"));
    assert!(message(1, 0.1, &none, &two).contains("there are 0 and 2"));
    assert!(message(2, 0.1, &labels(&[0], 2), &two).contains("no label"));
    assert!(message(1, 0.1, &two, &labels(&[0], 2)).contains("labels of the test pictures"));
}

fn some_pictures(n: usize) -> Pictures {
    let draws = Draws::new(9, Stream::Test, 0, 0);
    let bytes = (0..n as u64 * 4 * 4 * 3).map(|i| draws.word(i) as u8).collect();
    Pictures::new(4, 4, bytes).unwrap()
}

#[test]
fn raw_pixels_are_centred_and_of_unit_length() {
    let pictures = some_pictures(5);
    let mean = [0.5, 0.25, 0.75];
    let rows = raw_pixels_within(&pictures, mean, usize::MAX);
    assert_eq!((rows.dim, rows.len()), (48, 5));
    for (i, row) in rows.values.chunks_exact(48).enumerate() {
        let centred: Vec<f64> = (pictures.picture(i).iter().enumerate())
            .map(|(j, p)| f64::from(*p) / 255.0 - f64::from(mean[j % 3]))
            .collect();
        let norm = centred.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (got, expected) in row.iter().zip(&centred) {
            assert!((f64::from(*got) - expected / norm).abs() < 1e-6);
        }
    }
    let black = Pictures::new(1, 1, vec![0; 3]).unwrap();
    assert_eq!(raw_pixels_within(&black, [0.0; 3], 3).values, [0.0; 3]);
}

/// Of 4×4 pixels, four cells of four each are left.
#[test]
fn many_raw_pixels_are_averaged() {
    let (pictures, mean) = (some_pictures(3), [0.5, 0.25, 0.75]);
    let all = raw_pixels_within(&pictures, mean, usize::MAX);
    assert_eq!(raw_pixels_within(&pictures, mean, 48), all);
    let rows = raw_pixels_within(&pictures, mean, 47);
    assert_eq!((rows.dim, rows.len()), (27, 3));
    let rows = raw_pixels_within(&pictures, mean, 26);
    assert_eq!((rows.dim, rows.len()), (12, 3));
    for i in 0..3 {
        let value = |cell: usize, channel: usize| -> f64 {
            let corner = cell / 2 * 8 + cell % 2 * 2;
            let places = [0, 1, 4, 5].map(|p| 3 * (corner + p) + channel);
            let sum: f64 =
                (places.iter()).map(|p| f64::from(pictures.picture(i)[*p]) / 255.0).sum();
            sum / 4.0 - f64::from(mean[channel])
        };
        let expected: Vec<f64> = (0..12).map(|j| value(j / 3, j % 3)).collect();
        let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (got, expected) in rows.row(i).iter().zip(&expected) {
            assert!((f64::from(*got) - expected / norm).abs() < 1e-6);
        }
    }
}
