//! Discovery and loss together, against the paper's equations written out.

use anchorhood_engine::vectors::to_unit_length;
use anchorhood_engine::{Device, Loss};
use anchorhood_storage::random::{Draws, Stream};
use anchorhood_train::discovery::{
    Curriculum, DiscoverBy, MemoryBank, Neighbourhoods, neighbourhood_loss,
};

const TAU: f32 = 0.1;

fn unit_rows(seed: u64, rows: usize, dim: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows * dim];
    Draws::new(seed, Stream::Test, 0, 0).fill_symmetric(&mut values, 1.0);
    to_unit_length(&mut values, dim);
    values
}

fn discover(device: &Device, bank: &MemoryBank, k: usize, share: f64) -> Neighbourhoods {
    Neighbourhoods::discover(device, bank, DiscoverBy::Exact, k, TAU, share, &|_| {}).unwrap()
}

/// Eq. 2: p_ij.
fn probabilities(feature: &[f32], bank: &[f32]) -> Vec<f64> {
    let similarity = |row: &[f32]| -> f64 {
        let products = feature.iter().zip(row).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum::<f64>()
    };
    let e: Vec<f64> = (bank.chunks_exact(feature.len()))
        .map(|row| (similarity(row) / f64::from(TAU)).exp())
        .collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|e| e / sum).collect()
}

#[test]
fn a_round_follows_the_equations() {
    let (n, dim, k) = (150, 12, 3);
    let device = Device::cpu(2);
    let values = unit_rows(1, n, dim);
    let bank = MemoryBank::from_values(&device, &values, dim).unwrap();
    let share = Curriculum::Linear.share(2, 5);
    let found = discover(&device, &bank, k, share);

    // Eq. 5, and Eq. 1 by sorting.
    let mut entropy = vec![];
    for (i, row) in values.chunks_exact(dim).enumerate() {
        let p = probabilities(row, &values);
        entropy.push(-p.iter().map(|p| p * p.ln()).sum::<f64>());
        let mut others: Vec<u32> = (0..n as u32).filter(|j| *j != i as u32).collect();
        others.sort_by(|a, b| p[*b as usize].total_cmp(&p[*a as usize]));
        assert_eq!(found.neighbours_of(i), &others[..k], "picture {i}");
    }
    for (got, expected) in found.entropy().iter().zip(&entropy) {
        assert!((f64::from(*got) - expected).abs() < 1e-4);
    }
    // Eq. 6.
    assert_eq!(found.anchor_count(), 60);
    let (mut highest_anchor, mut lowest_single) = (f64::MIN, f64::MAX);
    for (entropy, anchor) in entropy.iter().zip(found.anchors()) {
        match anchor {
            true => highest_anchor = entropy.max(highest_anchor),
            false => lowest_single = entropy.min(lowest_single),
        }
    }
    assert!(highest_anchor <= lowest_single);

    // Eq. 7.
    let batch: Vec<u32> = (0..n as u32).step_by(7).collect();
    let features = unit_rows(2, batch.len(), dim);
    let expected: Vec<f64> = (batch.iter().zip(features.chunks_exact(dim)))
        .map(|(i, x)| {
            let p = probabilities(x, &values);
            let i = *i as usize;
            let anchored: f64 = found.neighbours_of(i).iter().map(|j| p[*j as usize]).sum();
            -(p[i] + if found.anchors()[i] { anchored } else { 0.0 }).ln()
        })
        .collect();
    let positives = device.positives(&found.positives(), n).unwrap();
    let items = device.upload_indices(&batch).unwrap();
    let mut rows = device.zeros(batch.len()).unwrap();
    let mut gradient = device.zeros(features.len()).unwrap();
    let features = device.upload(&features).unwrap();
    let mut stream = device.stream().unwrap();
    let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 1.0 };
    neighbourhood_loss(&mut stream, &features, &bank, TAU, &positives, &items, None, loss).unwrap();
    let losses = device.download(&rows).unwrap();
    for (got, expected) in losses.iter().zip(&expected) {
        assert!((f64::from(*got) - expected).abs() < 1e-4);
    }
}

#[test]
fn clusters_find_themselves() {
    let (clusters, each, dim) = (6, 20, 16);
    let centres = unit_rows(3, clusters, dim);
    let noise = unit_rows(4, clusters * each, dim);
    let mut values = vec![];
    for (i, noise) in noise.chunks_exact(dim).enumerate() {
        let centre = &centres[i % clusters * dim..][..dim];
        values.extend(centre.iter().zip(noise).map(|(c, n)| c + 0.2 * n));
    }
    to_unit_length(&mut values, dim);
    let device = Device::cpu(2);
    let bank = MemoryBank::from_values(&device, &values, dim).unwrap();
    let found = discover(&device, &bank, 5, 1.0);
    for i in 0..found.len() {
        let of = found.neighbours_of(i);
        assert!(of.iter().all(|j| *j as usize % clusters == i % clusters), "{i}: {of:?}");
    }
}

#[test]
fn fewer_others_than_neighbours() {
    let device = Device::cpu(1);
    let bank = MemoryBank::new(&device, 3, 4, 0).unwrap();
    let found = discover(&device, &bank, 10, 1.0);
    assert_eq!((found.k(), found.neighbours().len()), (2, 6));
    let alone = MemoryBank::new(&device, 1, 4, 0).unwrap();
    let found = discover(&device, &alone, 1, 1.0);
    assert_eq!((found.k(), found.anchor_count()), (0, 1));
}
