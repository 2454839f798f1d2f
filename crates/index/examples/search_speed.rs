//! How long does one search take, and what does searching by clusters gain and miss?
//!
//! `cargo run --release -p anchorhood-index --example search_speed -- [VECTORS] [THREADS]`:
//! vectors of unit length and 128 values around 1,000 centres, queries drawn the same way.

use std::time::Instant;

use anchorhood_engine::vectors::Lists;
use anchorhood_engine::{Device, Scan};
use anchorhood_index::curate::{nearest, nearest_in_lists};
use rayon::prelude::*;

/// Values of each.
const DIM: usize = 128;
const CENTRES: usize = 1000;

/// A plain generator (SplitMix64): figures must not depend on a crate's version.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Nearly normal: the sum of twelve uniforms.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

fn unit(mut v: Vec<f32>) -> Vec<f32> {
    let norm = v.iter().map(|x| x * x).sum::<f32>().sqrt();
    v.iter_mut().for_each(|x| *x /= norm);
    v
}

/// `n` of them; another seed gives others around the same centres.
fn vectors(n: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut draws = Draws(7);
    let centres: Vec<Vec<f32>> =
        (0..CENTRES).map(|_| unit((0..DIM).map(|_| draws.normal()).collect())).collect();
    let one = |i: usize| {
        let mut draws = Draws(seed.wrapping_mul(1 << 40).wrapping_add(i as u64 * 1000));
        let centre = &centres[draws.next() as usize % CENTRES];
        unit(centre.iter().map(|c| c + 0.08 * draws.normal()).collect())
    };
    (0..n).into_par_iter().map(one).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |otherwise| {
        let given = args.next().map(|a| a.parse().expect("a number"));
        given.unwrap_or(otherwise)
    };
    let (n, threads): (usize, usize) = (number(100_000), number(2));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().expect("a pool");
    let keys = vectors(n, 1).concat();
    let queries = vectors(200, 2).concat();
    println!("{n} vectors of {DIM}, {threads} threads, one query at a time, medians of 200");
    let time = |search: &mut dyn FnMut(&[f32])| {
        let each = queries.chunks_exact(DIM).map(|query| {
            let start = Instant::now();
            search(query);
            start.elapsed().as_secs_f64() * 1e3
        });
        median(each.collect())
    };
    for k in [1, 20, 200] {
        let exact = time(&mut |q| _ = nearest(&keys, DIM, q, k));
        println!("exact, k {k:3}                 {exact:8.3} ms");
    }

    let device = Device::cpu(threads);
    let buffer = device.upload(&keys).expect("memory");
    let scan = Scan { dim: DIM, entropy_temperature: None, k: 20, same: false };
    let scanned = time(&mut |q| {
        let query = device.upload(q).expect("memory");
        device.scan(&query, &buffer, &scan, &|_| {}).expect("a scan");
    });
    println!("the device's scan, k  20     {scanned:8.3} ms");

    let start = Instant::now();
    let lists = Lists::build(&device, &keys, DIM, 0, &mut |_| {}).expect("lists");
    let build = start.elapsed().as_secs_f64();
    println!("{} clusters built in {build:.1} s", lists.len());
    for probes in [4, 16, lists.default_probes(), 64] {
        let found = time(&mut |q| _ = nearest_in_lists(&lists, &keys, DIM, q, 10, probes));
        let mut hits = 0;
        for query in queries.chunks_exact(DIM) {
            let truth = nearest(&keys, DIM, query, 10);
            let found = nearest_in_lists(&lists, &keys, DIM, query, 10, probes);
            let has = |t: &&anchorhood_index::curate::Hit| found.iter().any(|f| f.index == t.index);
            hits += truth.iter().filter(has).count();
        }
        let recall = hits as f64 / 2000.0;
        println!("{probes:3} clusters, k 10           {found:8.3} ms  recall@10 {recall:.3}");
    }
}
