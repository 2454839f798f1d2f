//! Memory update, entropy and neighbours on every device, against the naive loops and PyTorch.

use anchorhood_engine::naive::{similarity as naive, widen};
use anchorhood_engine::{Device, Scan};

use crate::common::similarity::{SIZES, blended_on, golden_similarities, scan_on, unit_rows};
use crate::common::{assert_close, every_device, uniform};

every_device!(
    golden,
    blend_rows,
    blend_rows_of_one_index_twice,
    nearest_rows,
    a_query_that_is_no_number_has_no_nearest_row,
    scan,
    scan_breaks_ties_by_index,
    scan_of_more_neighbours_than_keys,
    scan_counts_its_progress,
    a_scan_of_what_is_no_number_is_refused,
);

/// Blends rows on a device and by the naive loops.
fn assert_blended(
    device: &Device,
    keys: &[f32],
    dim: usize,
    (indices, queries, rate): (&[u32], &[f32], f32),
    tolerance: f64,
) -> Vec<f32> {
    let got = blended_on(device, keys, dim, indices, queries, rate);
    let mut expected = widen(keys);
    naive::blend_rows(&mut expected, dim, indices, &widen(queries), f64::from(rate));
    assert_close("rows", &got, &expected, tolerance);
    got
}

fn blend_rows(device: &Device, tolerance: f64) {
    for (i, (b, n, dim)) in SIZES.into_iter().enumerate() {
        let indices: Vec<u32> = (0..b.min(n) as u32).rev().collect();
        let queries = uniform(i as u64, indices.len() * dim);
        let keys = uniform(50 + i as u64, n * dim);
        assert_blended(device, &keys, dim, (&indices, &queries, 0.3), tolerance);
    }
}

fn nearest_on(device: &Device, queries: &[f32], keys: &[f32], dim: usize) -> Vec<f32> {
    let mut stream = device.stream().unwrap();
    let [queries, keys] = [queries, keys].map(|values| device.upload(values).unwrap());
    let mut to = device.hand_over(vec![9.0; queries.len()]).unwrap();
    stream.nearest_rows(&queries, &keys, dim, &mut to).unwrap();
    device.download(&to).unwrap()
}

/// The naive scan's best key, or one that is as near but for rounding; and the same every time.
fn nearest_rows(device: &Device, _: f64) {
    for (i, (b, n, dim)) in SIZES.into_iter().chain([(70, 300, 256)]).enumerate() {
        let queries = uniform(i as u64, b * dim);
        let keys = uniform(50 + i as u64, n * dim);
        let scan = Scan { dim, entropy_temperature: None, k: 1, same: false };
        let expected = naive::scan(&queries, &keys, &scan).neighbours.similarities;
        let got = nearest_on(device, &queries, &keys, dim);
        assert_eq!(got, nearest_on(device, &queries, &keys, dim));
        for (query, row) in got.chunks_exact(dim).enumerate() {
            assert!(keys.chunks_exact(dim).any(|key| key == row), "no key");
            let products = row.iter().zip(&queries[query * dim..][..dim]);
            let similarity: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let worse = f64::from(expected[query]) - similarity;
            assert!(worse < 1e-4, "{b}, {n}, {dim}: query {query} by {worse}");
        }
    }
}

fn a_query_that_is_no_number_has_no_nearest_row(device: &Device, _: f64) {
    let queries = [1.0, 0.0, f32::NAN, 1.0, 0.0, -1.0];
    let keys = [0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0];
    let got = nearest_on(device, &queries, &keys, 2);
    assert_eq!((&got[..2], &got[4..]), (&[1.0, 0.0][..], &[1.0, 0.0][..]));
    assert!(got[2].is_nan() && got[3].is_nan(), "{got:?}");
    let refused = |dim, keys: &[f32], room: usize| {
        let mut stream = device.stream().unwrap();
        let [queries, keys] = [&queries[..], keys].map(|v| device.upload(v).unwrap());
        let mut to = device.zeros(room).unwrap();
        stream.nearest_rows(&queries, &keys, dim, &mut to).is_err()
    };
    assert!(refused(4, &keys, 6) && refused(2, &[], 6) && refused(2, &keys, 5));
}

/// The second blend sees the first; a row that vanishes stays zero instead of turning into NaN.
fn blend_rows_of_one_index_twice(device: &Device, tolerance: f64) {
    let (keys, queries) = ([1.0, 0.0, 3.0, 4.0], [0.0, 1.0, -1.0, 0.0]);
    let got = assert_blended(device, &keys, 2, (&[0, 0], &queries, 0.5), tolerance);
    let got = blended_on(device, &got, 2, &[1], &[-3.0, -4.0], 0.5);
    assert_eq!(got[2..], [0.0, 0.0]);
}

/// Entropies and similarities are close; each key found is as similar as it is said to be, and
/// found once.
fn assert_scan(device: &Device, queries: &[f32], keys: &[f32], scan: &Scan, tolerance: f64) {
    let expected = naive::scan(queries, keys, scan);
    let got = scan_on(device, queries, keys, scan);
    let what = |thing| format!("{}: {thing} of {scan:?}", device.describe());
    assert_close(&what("entropy"), &got.entropy, &widen(&expected.entropy), tolerance);
    let (got, expected) = (got.neighbours, expected.neighbours);
    assert_eq!(got.k, expected.k, "{}", what("k"));
    let similarities = widen(&expected.similarities);
    assert_close(&what("similarities"), &got.similarities, &similarities, tolerance);
    let mut exact = vec![];
    for query in 0..queries.len() / scan.dim {
        let found = got.of(query);
        let mut once = found.to_vec();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), got.k, "{}", what("distinct keys"));
        assert!(!(scan.same && found.contains(&(query as u32))), "{}", what("self"));
        exact.extend(found.iter().map(|key| {
            let row = |m: &[f32], i: usize| widen(&m[i * scan.dim..(i + 1) * scan.dim]);
            let (q, k) = (row(queries, query), row(keys, *key as usize));
            q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()
        }));
    }
    assert_close(&what("keys found"), &got.similarities, &exact, tolerance);
}

fn scan(device: &Device, tolerance: f64) {
    for (i, (b, n, dim)) in SIZES.into_iter().enumerate() {
        let queries = unit_rows(i as u64, b, dim);
        let keys = unit_rows(200 + i as u64, n, dim);
        for (k, entropy_temperature) in [(1, Some(0.3)), (0, Some(1.0)), (5, None), (50, Some(0.1))]
        {
            let same = |same| Scan { dim, entropy_temperature, k, same };
            assert_scan(device, &queries, &keys, &same(false), tolerance);
            let few = &keys[..n.min(700) * dim]; // the naive loops are slow
            assert_scan(device, few, few, &same(true), tolerance);
        }
    }
}

/// Rows of small whole numbers make exact sums and many ties: every index must be the
/// specification's.
fn scan_breaks_ties_by_index(device: &Device, _: f64) {
    let (n, dim) = (517, 9);
    let keys: Vec<f32> = uniform(5, n * dim).iter().map(|v| (v * 1.5).round()).collect();
    for k in [1, 2, 10, 300] {
        let scan = Scan { dim, entropy_temperature: None, k, same: true };
        let got = scan_on(device, &keys, &keys, &scan).neighbours;
        let expected = naive::scan(&keys, &keys, &scan).neighbours;
        assert!(got == expected, "k = {k}");
    }
}

fn scan_of_more_neighbours_than_keys(device: &Device, tolerance: f64) {
    let keys = uniform(6, 5 * 3);
    for same in [false, true] {
        let scan = Scan { dim: 3, entropy_temperature: None, k: 9, same };
        assert_scan(device, &keys, &keys, &scan, tolerance);
        let got = scan_on(device, &keys, &keys, &scan).neighbours;
        assert_eq!(got.k, if same { 4 } else { 5 });
    }
}

fn scan_counts_its_progress(device: &Device, _: f64) {
    let seen = std::sync::Mutex::new(vec![]);
    let keys = device.upload(&uniform(1, 1000)).unwrap();
    let scan = Scan { dim: 2, entropy_temperature: None, k: 1, same: true };
    device.scan(&keys, &keys, &scan, &|done| seen.lock().unwrap().push(done)).unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&500), "{seen:?}");
}

/// What PyTorch computes (tools/golden/losses.py).
fn golden(device: &Device, tolerance: f64) {
    for c in golden_similarities() {
        let blended = blended_on(device, &c.keys, c.dim, &c.indices, &c.queries, c.rate);
        assert_close("memory", &blended, &c.blended, tolerance);
        let entropy_temperature = Some(c.temperature as f32);
        let scan = Scan { dim: c.dim, entropy_temperature, k: c.k, same: true };
        let found = scan_on(device, &c.keys, &c.keys, &scan);
        assert_close("entropy", &found.entropy, &c.entropy, tolerance);
        assert_eq!(found.neighbours.indices, c.neighbours);
        assert_close("similarities", &found.neighbours.similarities, &c.similarities, tolerance);
    }
}

/// A scan needs numbers.
fn a_scan_of_what_is_no_number_is_refused(device: &Device, _: f64) {
    let not_a_number = device.upload(&[f32::NAN; 4]).unwrap();
    let scan = Scan { dim: 2, entropy_temperature: None, k: 1, same: true };
    let refused = device.scan(&not_a_number, &not_a_number, &scan, &|_| {}).unwrap_err();
    assert!(refused.to_string().contains("query 0"), "{refused}");
}

/// A GPU cannot look at indices before it uses them, so they carry a bound.
#[test]
fn rows_that_are_not_there_are_not_blended() {
    let device = Device::cpu(1);
    let (mut keys, queries) = (device.zeros(4).unwrap(), device.zeros(2).unwrap());
    let indices = device.upload_indices(&[2]).unwrap();
    let mut stream = device.stream().unwrap();
    let refused = stream.blend_rows(&mut keys, 2, &indices, &queries, 0.5).unwrap_err();
    assert_eq!(refused.to_string(), "rows to blend: numbers up to 2, of 2");
}

#[test]
fn thread_count_does_not_change_a_bit() {
    let (n, dim) = (3001, 40);
    let keys = uniform(2, n * dim);
    let scan = Scan { dim, entropy_temperature: Some(0.1), k: 3, same: true };
    let all = |threads| {
        let found = scan_on(&Device::cpu(threads), &keys, &keys, &scan);
        let floats = [found.entropy, found.neighbours.similarities].concat();
        let bits = floats.into_iter().map(f32::to_bits);
        bits.chain(found.neighbours.indices).collect::<Vec<u32>>()
    };
    let one = all(1);
    for threads in [2, 4] {
        assert!(one == all(threads), "{threads} threads");
    }
}
