//! Losses and scans of slices, on any device.

use anchorhood_engine::{Device, Positives, Scan, ScanResult};

/// Losses, and the gradient of their mean.
pub fn loss_on<D: Device>(
    device: &D,
    queries: &[f32],
    keys: &[f32],
    dim: usize,
    temperature: f32,
    positives: &Positives,
) -> (Vec<f32>, Vec<f32>) {
    let mut losses = vec![f32::NAN; queries.len() / dim];
    let mut gradient = device.upload(&vec![f32::NAN; queries.len()]).unwrap();
    let (queries, keys) = (
        device.upload(queries).unwrap(),
        device.upload(keys).unwrap(),
    );
    device
        .softmax_loss(
            &queries,
            &keys,
            dim,
            temperature,
            positives,
            &mut losses,
            &mut gradient,
        )
        .unwrap();
    (losses, device.download(&gradient).unwrap())
}

/// What a scan finds. Keys that are the queries are one buffer on the device.
pub fn scan_on<D: Device>(device: &D, queries: &[f32], keys: &[f32], scan: &Scan) -> ScanResult {
    let queries = device.upload(queries).unwrap();
    if scan.same {
        return device.scan(&queries, &queries, scan, &|_| {}).unwrap();
    }
    let keys = device.upload(keys).unwrap();
    device.scan(&queries, &keys, scan, &|_| {}).unwrap()
}
