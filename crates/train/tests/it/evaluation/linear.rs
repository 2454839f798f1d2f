//! The linear classifier on rows that can be separated and rows that cannot; layers extracted
//! through taps.

use std::cell::RefCell;
use std::sync::Mutex;

use anchorhood_data::{Labels, Pictures, normalise};
use anchorhood_engine::{Device, NetworkOptions};
use anchorhood_models::{ALEXNET, RESNET18};
use anchorhood_storage::random::{Draws, Stream};
use anchorhood_train::evaluation::{
    LinearOptions, LinearSet, Rows, average, extract_layer, pooled,
};

fn noise(item: u64, len: usize, limit: f32) -> Vec<f32> {
    let mut values = vec![0.0; len];
    Draws::new(3, Stream::Test, 0, item).fill_symmetric(&mut values, limit);
    values
}

fn labels(values: Vec<u32>, classes: usize) -> Labels {
    Labels::new(values, (0..classes).map(|c| c.to_string()).collect())
}

/// Rows whose class shows in the direction of a few values, in the midst of noise and on another
/// scale.
fn set(n: usize, first: u64, classes: usize, signal: f32) -> (Rows, Labels) {
    let (dim, channels) = (24, 12);
    let mut values = vec![];
    let truth: Vec<u32> = (0..n).map(|i| (i * 5 % classes) as u32).collect();
    for (i, class) in truth.iter().enumerate() {
        let centre = noise(1000 + u64::from(*class), dim, signal);
        let row = noise(2000 + first + i as u64, dim, 1.0);
        let both = row.iter().zip(centre).enumerate();
        values.extend(both.map(|(j, (r, c))| (r + c) * 100.0_f32.powi((j % 3) as i32 - 1) + 5.0));
    }
    let rows = Rows { dim, channels, values };
    (rows, labels(truth, classes))
}

fn accuracy(signal: f32, options: &LinearOptions) -> (f64, Option<f64>) {
    let (train, train_labels) = set(700, 0, 7, signal);
    let (test, test_labels) = set(210, 5000, 7, signal);
    let device = Device::cpu(2);
    let set = LinearSet::new(&device, train, &train_labels, test, &test_labels).unwrap();
    let told = Mutex::new(vec![]);
    let tell = |epoch, loss| told.lock().unwrap().push((epoch, loss));
    let result = set.classify(options, &tell).unwrap();
    let told = told.into_inner().unwrap();
    assert_eq!((told.len(), result.n, result.dim), (options.epochs, 210, 24));
    assert_eq!(told.last(), Some(&(options.epochs, result.train_loss)));
    (result.top1, result.top5)
}

#[test]
fn separable_rows_are_told_apart_and_noise_is_not() {
    let options = LinearOptions { epochs: 20, batch: 64, ..LinearOptions::default() };
    let (top1, top5) = accuracy(2.0, &options);
    assert!(top1 > 0.97 && top5.unwrap() > 0.99, "{top1} {top5:?}");
    let (top1, top5) = accuracy(0.0, &options);
    assert!(top1 < 0.3 && top5.unwrap() < 0.9, "{top1} {top5:?}");
}

#[test]
fn the_seed_decides_and_threads_do_not() {
    let (train, train_labels) = set(300, 0, 7, 0.4);
    let (test, test_labels) = set(100, 5000, 7, 0.4);
    let loss = |threads, seed| {
        let (train, test, device) = (train.clone(), test.clone(), Device::cpu(threads));
        let set = LinearSet::new(&device, train, &train_labels, test, &test_labels).unwrap();
        let options = LinearOptions { epochs: 5, batch: 64, seed, ..LinearOptions::default() };
        let result = set.classify(&options, &|_, _| {});
        result.unwrap().train_loss
    };
    assert_eq!(loss(1, 0), loss(3, 0));
    assert_ne!(loss(1, 0), loss(1, 1));
}

#[test]
fn divergence_is_said() {
    let (train, train_labels) = set(300, 0, 7, 0.0);
    let (test, device) = (train.clone(), Device::cpu(1));
    let set = LinearSet::new(&device, train, &train_labels, test, &train_labels).unwrap();
    let options = LinearOptions { rate: f32::MAX, ..LinearOptions::default() };
    let error = set.classify(&options, &|_, _| {});
    let error = error.unwrap_err().to_string();
    assert!(error.contains("smaller learning rate"), "{error}");
}

/// Rows of every tap are what the layer gives for each picture by itself, averaged; a last batch
/// may be short.
#[test]
fn layers_are_extracted_through_taps() {
    let device = Device::cpu(2);
    for architecture in [&ALEXNET, &RESNET18] {
        let graph = architecture.graph(16, 2, 8).unwrap();
        let pixels: Vec<u8> = (0..5 * 16 * 16 * 3).map(|i| (i * 31 % 251) as u8).collect();
        let pictures = Pictures::new(16, 16, pixels).unwrap();
        let (mean, std) = ([0.4, 0.5, 0.6], [0.2, 0.3, 0.4]);
        for (name, node) in graph.taps() {
            let network = |batch| {
                let options = NetworkOptions { keep: vec![*node], ..NetworkOptions::new(batch) };
                let mut network = device.network(&graph, &options).unwrap();
                network.initialise(1).unwrap();
                network
            };
            let told = RefCell::new(vec![]);
            let tell = |done| told.borrow_mut().push(done);
            let rows =
                extract_layer(&mut network(2), *node, &pictures, mean, std, 100, &tell).unwrap();
            assert_eq!((rows.len(), told.into_inner()), (5, vec![2, 4, 5]));
            assert_ne!(rows.row(0), rows.row(1), "{name}");
            assert!(rows.dim <= 100 && rows.dim.is_multiple_of(rows.channels), "{name}");
            let mut single = network(1);
            for i in 0..5 {
                let mut seen = vec![0.0; 16 * 16 * 3];
                normalise(pictures.picture(i), mean, std, &mut seen);
                single.infer(&seen, &mut [0.0; 8]).unwrap();
                let from = graph.shape(*node);
                let mut expected = vec![0.0; rows.dim];
                let map = single.kept(*node, 1).unwrap();
                average(&map, from, pooled(from, 100), &mut expected);
                for (got, expected) in rows.row(i).iter().zip(&expected) {
                    assert!((got - expected).abs() < 1e-5, "{architecture} {name}");
                }
            }
        }
    }
}
