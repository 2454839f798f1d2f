//! Losses and scans of slices, on any device.

use anchorhood_engine::{Device, Loss, Positives, Scan, ScanResult, SoftmaxLoss};

/// Losses, and the gradient of their mean.
pub fn loss_on(
    device: &Device,
    queries: &[f32],
    keys: &[f32],
    dim: usize,
    temperature: f32,
    positives: &Positives,
) -> (Vec<f32>, Vec<f32>) {
    let unwritten = |len| device.hand_over(vec![f32::NAN; len]).unwrap();
    let (mut rows, mut gradient) = (unwritten(queries.len() / dim), unwritten(queries.len()));
    let up = |values| device.upload(values).unwrap();
    let positives = device.positives(positives, keys.len() / dim).unwrap();
    let of = SoftmaxLoss {
        queries: &up(queries),
        keys: &up(keys),
        dim,
        temperature,
        positives: &positives,
        items: None,
    };
    let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 1.0 };
    device.stream().unwrap().softmax_loss(&of, loss).unwrap();
    let down = |of| device.download(of).unwrap();
    (down(&rows), down(&gradient))
}

/// What becomes of keys when some of them are blended with queries.
pub fn blended_on(
    device: &Device,
    keys: &[f32],
    dim: usize,
    indices: &[u32],
    queries: &[f32],
    rate: f32,
) -> Vec<f32> {
    let (mut keys, queries) = (device.upload(keys).unwrap(), device.upload(queries).unwrap());
    let (indices, mut stream) = (device.upload_indices(indices).unwrap(), device.stream().unwrap());
    stream.blend_rows(&mut keys, dim, &indices, &queries, rate).unwrap();
    drop(stream);
    device.download(&keys).unwrap()
}

/// What a scan finds. Keys that are the queries are one buffer on the device.
pub fn scan_on(device: &Device, queries: &[f32], keys: &[f32], scan: &Scan) -> ScanResult {
    let queries = device.upload(queries).unwrap();
    if scan.same {
        return device.scan(&queries, &queries, scan, &|_| {}).unwrap();
    }
    let keys = device.upload(keys).unwrap();
    device.scan(&queries, &keys, scan, &|_| {}).unwrap()
}
