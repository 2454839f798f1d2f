//! Loss, memory update, entropy and neighbours on every device, against PyTorch
//! (tools/golden/losses.py).

use anchorhood_engine::{Device, Positives, Scan};

use crate::common::similarity::{blended_on, loss_on, scan_on};
use crate::common::{assert_close, every_device};

every_device!(golden);

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<GoldenCase>,
}

#[derive(serde::Deserialize)]
struct GoldenCase {
    dim: usize,
    temperature: f32,
    rate: f32,
    k: usize,
    queries: Vec<f32>,
    keys: Vec<f32>,
    indices: Vec<u32>,
    positives: Vec<Vec<u32>>,
    losses: Vec<f64>,
    gradient: Vec<f64>,
    blended: Vec<f64>,
    entropy: Vec<f64>,
    neighbours: Vec<u32>,
    similarities: Vec<f64>,
}

fn golden(device: &Device, tolerance: f64) {
    let golden: Golden = serde_json::from_str(include_str!("../golden/similarity.json")).unwrap();
    assert_eq!(golden.cases.len(), 3);
    for case in golden.cases {
        let mut positives = Positives::with_capacity(0, 0);
        case.positives.iter().for_each(|p| positives.push(p.iter().copied()));
        let (losses, gradient) =
            loss_on(device, &case.queries, &case.keys, case.dim, case.temperature, &positives);
        assert_close("losses", &losses, &case.losses, tolerance);
        assert_close("gradient", &gradient, &case.gradient, tolerance);

        let (keys, queries) = (&case.keys, &case.queries);
        let blended = blended_on(device, keys, case.dim, &case.indices, queries, case.rate);
        assert_close("memory", &blended, &case.blended, tolerance);

        let scan = Scan {
            dim: case.dim,
            entropy_temperature: Some(case.temperature),
            k: case.k,
            same: true,
        };
        let found = scan_on(device, &case.keys, &case.keys, &scan);
        assert_close("entropy", &found.entropy, &case.entropy, tolerance);
        assert_eq!(found.neighbours.indices, case.neighbours);
        let similarities = &found.neighbours.similarities;
        assert_close("similarities", similarities, &case.similarities, tolerance);
    }
}
