//! Matrices of rows to be compared, and what a device makes of slices of them.

use anchorhood_engine::{Device, Positives, Scan, ScanResult};

use super::uniform;

/// Uneven in every way: (queries, keys, dim). The last cross several ranges and tiles of keys and
/// blocks of queries.
pub const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (2, 3, 1),
    (3, 2, 7),
    (5, 17, 16),
    (7, 97, 33),
    (33, 95, 130),
    (64, 96, 128),
    (65, 400, 31),
    (131, 1301, 20),
];

/// Each query's own key, and every third query a few more.
pub fn some_positives(queries: usize, keys: usize) -> Positives {
    let mut positives = Positives::with_capacity(queries, 4 * queries);
    for q in 0..queries {
        let own = (q * 7 % keys) as u32;
        let more = [own, (q * 5 % keys) as u32, (q * 3 % keys) as u32];
        positives.push(more.into_iter().take(if q % 3 == 0 { 3 } else { 1 }));
    }
    positives
}

/// Rows of unit length, as features are.
pub fn unit_rows(seed: u64, rows: usize, dim: usize) -> Vec<f32> {
    let mut values = uniform(seed, rows * dim);
    for row in values.chunks_mut(dim) {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= norm);
    }
    values
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

/// What PyTorch makes of some rows (tools/golden/losses.py).
#[derive(serde::Deserialize)]
pub struct GoldenSimilarity {
    pub dim: usize,
    pub temperature: f64,
    pub rate: f32,
    pub k: usize,
    pub queries: Vec<f32>,
    pub keys: Vec<f32>,
    pub positives: Vec<Vec<u32>>,
    pub losses: Vec<f64>,
    pub gradient: Vec<f64>,
    pub indices: Vec<u32>,
    pub blended: Vec<f64>,
    pub entropy: Vec<f64>,
    pub neighbours: Vec<u32>,
    pub similarities: Vec<f64>,
}

pub fn golden_similarities() -> Vec<GoldenSimilarity> {
    #[derive(serde::Deserialize)]
    struct Golden {
        cases: Vec<GoldenSimilarity>,
    }
    let golden: Golden = serde_json::from_str(include_str!("../golden/similarity.json")).unwrap();
    assert_eq!(golden.cases.len(), 3);
    golden.cases
}
