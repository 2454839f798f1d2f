//! Which approximate index finds how many of the true neighbours, how fast, and how long does it take to build?
//!
//! `cargo run --release -- [VECTORS] [THREADS]`: vectors of unit length and 128 values around 1,000 centres, 1,000 queries
//! drawn alike, recall@10 against an exhaustive search.

use std::time::Instant;

use hnsw_rs::prelude::{AnnT, DistDot, Hnsw};
use rayon::prelude::*;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

const DIM: usize = 128;
const K: usize = 10;
const CENTRES: usize = 1000;
const QUERIES: usize = 1000;

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

fn vectors(n: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut draws = Draws(7);
    let centres: Vec<Vec<f32>> = (0..CENTRES)
        .map(|_| unit((0..DIM).map(|_| draws.normal()).collect()))
        .collect();
    let one = |i: usize| {
        let mut draws = Draws(seed.wrapping_mul(1 << 40).wrapping_add(i as u64 * 1000));
        let centre = &centres[draws.next() as usize % CENTRES];
        unit(centre.iter().map(|c| c + 0.08 * draws.normal()).collect())
    };
    (0..n).into_par_iter().map(one).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum()
}

fn exact(keys: &[Vec<f32>], query: &[f32]) -> Vec<usize> {
    let mut found: Vec<(f32, usize)> = keys.iter().map(|k| dot(k, query)).zip(0..).collect();
    found.select_nth_unstable_by(K, |a, b| b.0.total_cmp(&a.0));
    found[..K].iter().map(|f| f.1).collect()
}

fn recall(truth: &[Vec<usize>], found: &[Vec<usize>]) -> f64 {
    let hits = |(t, f): (&Vec<usize>, &Vec<usize>)| t.iter().filter(|i| f.contains(i)).count();
    truth.iter().zip(found).map(hits).sum::<usize>() as f64 / (truth.len() * K) as f64
}

fn report(name: &str, build: f64, queries: &[Vec<f32>], truth: &[Vec<usize>], search: impl Fn(&[f32]) -> Vec<usize>) {
    let start = Instant::now();
    let found: Vec<Vec<usize>> = queries.iter().map(|q| search(q)).collect();
    let each = start.elapsed().as_secs_f64() / queries.len() as f64;
    println!(
        "{name:28} build {build:7.1} s  query {:7.3} ms  recall@10 {:.3}",
        each * 1e3,
        recall(truth, &found)
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let n: usize = args.next().map_or(200_000, |a| a.parse().expect("a number of vectors"));
    let threads: usize = args.next().map_or(2, |a| a.parse().expect("a number of threads"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("a pool");
    let keys = vectors(n, 1);
    let queries = vectors(QUERIES, 2);
    let truth: Vec<Vec<usize>> = queries.par_iter().map(|q| exact(&keys, q)).collect();
    println!("{n} vectors of {DIM}, {threads} threads to build, one query at a time");

    let start = Instant::now();
    let options = IndexOptions {
        dimensions: DIM,
        metric: MetricKind::IP,
        quantization: ScalarKind::F32,
        ..IndexOptions::default()
    };
    let index = Index::new(&options).expect("an index");
    index.reserve_capacity_and_threads(n, threads).expect("memory");
    keys.par_iter().enumerate().for_each(|(i, k)| index.add(i as u64, k).expect("room"));
    let build = start.elapsed().as_secs_f64();
    for ef in [64, 200] {
        index.change_expansion_search(ef);
        report(&format!("usearch ef {ef}"), build, &queries, &truth, |q| {
            let found = index.search(q, K).expect("neighbours");
            found.keys.iter().map(|k| *k as usize).collect()
        });
    }
    drop(index);

    let start = Instant::now();
    let index: Hnsw<f32, DistDot> = Hnsw::new(16, n, 16, 128, DistDot);
    let data: Vec<(&Vec<f32>, usize)> = keys.iter().zip(0..).collect();
    index.parallel_insert(&data);
    let build = start.elapsed().as_secs_f64();
    for ef in [64, 200] {
        report(&format!("hnsw_rs ef {ef}"), build, &queries, &truth, |q| {
            index.search(q, K, ef).iter().map(|f| f.d_id).collect()
        });
    }
}
