//! Loss, memory update, entropy and neighbours on every device, against the naive loops and finite
//! differences.

use anchorhood_engine::naive::{similarity as naive, widen};
use anchorhood_engine::{Buffer, Device, Loss, Positives, Scan, SoftmaxLoss};

use crate::common::similarity::{blended_on, loss_on, scan_on};
use crate::common::{assert_close, every_device, uniform};

every_device!(
    softmax_loss,
    softmax_loss_of_one_key,
    softmax_loss_of_great_logits,
    a_diverged_feature_shows_in_its_loss_alone,
    gradient_by_finite_differences,
    blend_rows,
    blend_rows_of_one_index_twice,
    nearest_rows,
    a_query_that_is_no_number_has_no_nearest_row,
    scan,
    scan_breaks_ties_by_index,
    scan_of_more_neighbours_than_keys,
    scan_counts_its_progress,
    refuses_what_does_not_fit,
);

/// Uneven in every way: (queries, keys, dim). The last cross several ranges and tiles of keys and
/// blocks of queries.
const SIZES: [(usize, usize, usize); 9] = [
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
fn some_positives(queries: usize, keys: usize) -> Positives {
    let mut positives = Positives::with_capacity(queries, 4 * queries);
    for q in 0..queries {
        let own = (q * 7 % keys) as u32;
        let more = [own, (q * 5 % keys) as u32, (q * 3 % keys) as u32];
        positives.push(more.into_iter().take(if q % 3 == 0 { 3 } else { 1 }));
    }
    positives
}

fn assert_loss(
    device: &Device,
    queries: &[f32],
    keys: &[f32],
    dim: usize,
    temperature: f32,
    positives: &Positives,
    tolerance: f64,
) {
    let mut losses = vec![0.0; queries.len() / dim];
    let mut gradient = vec![0.0; queries.len()];
    naive::softmax_loss(queries, keys, dim, temperature, positives, &mut losses, &mut gradient);
    let (got, got_gradient) = loss_on(device, queries, keys, dim, temperature, positives);
    let what = |thing| {
        let (b, n) = (queries.len() / dim, keys.len() / dim);
        format!("{}: {thing}, {b} queries, {n} keys, dim {dim}", device.describe())
    };
    assert_close(&what("losses"), &got, &widen(&losses), tolerance);
    // Relative to the gradient's own size, which the mean over the batch makes small.
    let scale = gradient.iter().fold(1e-9_f32, |m, g| m.max(g.abs()));
    let rescaled = |g: &[f32]| g.iter().map(|g| g / scale).collect::<Vec<f32>>();
    let (got, expected) = (rescaled(&got_gradient), rescaled(&gradient));
    assert_close(&what("gradient"), &got, &widen(&expected), tolerance);
}

fn softmax_loss(device: &Device, tolerance: f64) {
    for (i, (b, n, dim)) in SIZES.into_iter().enumerate() {
        let queries = uniform(i as u64, b * dim);
        let keys = uniform(100 + i as u64, n * dim);
        let positives = some_positives(b, n);
        if n == 1 {
            continue; // the gradient is zero: its own test
        }
        assert_loss(device, &queries, &keys, dim, 0.7, &positives, tolerance);
        let each = positives.counting_each();
        assert_loss(device, &queries, &keys, dim, 0.7, &each, tolerance);
    }
}

fn softmax_loss_of_one_key(device: &Device, tolerance: f64) {
    let mut positives = Positives::with_capacity(1, 1);
    positives.push([0]);
    let (losses, gradient) = loss_on(device, &[0.5, 0.1], &[0.3, -2.0], 2, 0.1, &positives);
    assert_close("loss", &losses, &[0.0], tolerance);
    assert_close("gradient", &gradient, &[0.0, 0.0], tolerance);
}

/// Logits of ±10⁴: nothing overflows, and a loss of thousands is right.
fn softmax_loss_of_great_logits(device: &Device, tolerance: f64) {
    let (b, n, dim) = (5, 700, 4);
    let scaled = |seed, len| -> Vec<f32> { uniform(seed, len).iter().map(|v| v * 50.0).collect() };
    let (queries, keys) = (scaled(1, b * dim), scaled(2, n * dim));
    let positives = some_positives(b, n);
    assert_loss(device, &queries, &keys, dim, 0.5, &positives, 10.0 * tolerance);
}

fn a_diverged_feature_shows_in_its_loss_alone(device: &Device, _: f64) {
    let mut queries = uniform(1, 3 * 4);
    queries[5] = f32::NAN;
    let (losses, _) =
        loss_on(device, &queries, &uniform(2, 200 * 4), 4, 0.1, &some_positives(3, 200));
    assert_eq!(losses.iter().map(|l| l.is_nan()).collect::<Vec<_>>(), [false, true, false]);
}

fn gradient_by_finite_differences(device: &Device, _: f64) {
    let (b, n, dim, temperature, step) = (3, 40, 6, 0.5, 1e-2);
    let (queries, keys) = (uniform(1, b * dim), uniform(2, n * dim));
    let positives = some_positives(b, n);
    let mean = |queries: &[f32]| {
        let losses = loss_on(device, queries, &keys, dim, temperature, &positives).0;
        losses.iter().map(|l| f64::from(*l)).sum::<f64>() / b as f64
    };
    let numeric: Vec<f64> = (0..queries.len())
        .map(|i| {
            let moved = |by: f32| {
                let mut q = queries.clone();
                q[i] += by;
                (mean(&q), f64::from(q[i]))
            };
            let ((up, high), (down, low)) = (moved(step), moved(-step));
            (up - down) / (high - low)
        })
        .collect();
    let (_, gradient) = loss_on(device, &queries, &keys, dim, temperature, &positives);
    assert!(numeric.iter().any(|g| g.abs() > 0.1));
    assert_close("finite differences", &gradient, &numeric, 1e-3);
}

fn blend_rows(device: &Device, tolerance: f64) {
    for (i, (b, n, dim)) in SIZES.into_iter().enumerate() {
        let count = b.min(n);
        let indices: Vec<u32> = (0..count as u32).rev().collect();
        let queries = uniform(i as u64, count * dim);
        let mut expected = uniform(50 + i as u64, n * dim);
        let got = blended_on(device, &expected, dim, &indices, &queries, 0.3);
        naive::blend_rows(&mut expected, dim, &indices, &queries, 0.3);
        assert_close("rows", &got, &widen(&expected), tolerance);
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
    let (mut expected, queries) = ([1.0, 0.0, 3.0, 4.0], [0.0, 1.0, -1.0, 0.0]);
    let got = blended_on(device, &expected, 2, &[0, 0], &queries, 0.5);
    naive::blend_rows(&mut expected, 2, &[0, 0], &queries, 0.5);
    assert_close("rows", &got, &widen(&expected), tolerance);

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

/// Rows of unit length, as features are.
fn unit_rows(seed: u64, rows: usize, dim: usize) -> Vec<f32> {
    let mut values = uniform(seed, rows * dim);
    for row in values.chunks_mut(dim) {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= norm);
    }
    values
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

#[track_caller]
fn says(result: anchorhood_engine::Result<()>, what: &str) {
    let message = result.unwrap_err().to_string();
    assert!(message.contains(what), "{message}");
}

fn refuses_what_does_not_fit(device: &Device, _: f64) {
    let up = |values: &[f32]| device.upload(values).unwrap();
    let (two, three) = (up(&[1.0, 2.0]), up(&[1.0, 2.0, 3.0]));
    let mut positives = Positives::with_capacity(1, 1);
    positives.push([1]);
    says(device.positives(&positives, 1).map(drop), "positive 1 of 1 keys");
    let positives = device.positives(&positives, 2).unwrap();
    let mut stream = device.stream().unwrap();
    let mut loss = |queries: &Buffer, keys: &Buffer, temperature, rows| {
        let of =
            SoftmaxLoss { queries, keys, dim: 2, temperature, positives: &positives, items: None };
        let loss =
            Loss { rows: &mut up(&vec![0.0; rows]), gradient: &mut up(&[0.0, 0.0]), weight: 1.0 };
        stream.softmax_loss(&of, loss)
    };
    let four = up(&[0.0; 4]);
    says(loss(&two, &three, 0.1, 1), "keys");
    says(loss(&two, &three, 0.1, 1), "expected 4 values, got 3");
    says(loss(&two, &four, 0.0, 1), "temperature 0");
    says(loss(&two, &four, 0.1, 2), "losses: expected 1 values, got 2");
    says(loss(&four, &four, 0.1, 2), "gradient: expected 4 values, got 2");
    loss(&two, &four, 0.1, 1).unwrap();
    let not_a_number = up(&[f32::NAN; 4]);
    let scan = Scan { dim: 2, entropy_temperature: None, k: 1, same: true };
    let result = device.scan(&not_a_number, &not_a_number, &scan, &|_| {});
    says(result.map(drop), "query 0");
}

/// A GPU cannot look at indices before it uses them, so they carry a bound.
#[test]
fn rows_that_are_not_there_are_not_blended() {
    let device = Device::cpu(1);
    let (mut keys, queries) = (device.zeros(4).unwrap(), device.zeros(2).unwrap());
    let indices = device.upload_indices(&[2]).unwrap();
    let mut stream = device.stream().unwrap();
    says(
        stream.blend_rows(&mut keys, 2, &indices, &queries, 0.5),
        "rows to blend: numbers up to 2, of 2",
    );
}

#[test]
fn thread_count_does_not_change_a_bit() {
    let (b, n, dim) = (70, 3001, 40);
    let (queries, keys) = (uniform(1, b * dim), uniform(2, n * dim));
    let positives = some_positives(b, n);
    let all = |threads| {
        let cpu = Device::cpu(threads);
        let scan = Scan { dim, entropy_temperature: Some(0.1), k: 3, same: true };
        let found = scan_on(&cpu, &keys, &keys, &scan);
        let (losses, gradient) = loss_on(&cpu, &queries, &keys, dim, 0.1, &positives);
        let similarities = found.neighbours.similarities;
        let floats = [losses, gradient, found.entropy, similarities].concat();
        let bits = floats.into_iter().map(f32::to_bits);
        bits.chain(found.neighbours.indices).collect::<Vec<u32>>()
    };
    let one = all(1);
    for threads in [2, 4] {
        assert!(one == all(threads), "{threads} threads");
    }
}
