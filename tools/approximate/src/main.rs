//! Which approximate index finds how many of the true neighbours, how fast, and how long does it take to build?
//!
//! `cargo run --release -- [VECTORS] [THREADS]`: vectors of unit length and 128 values around 1,000 centres, 1,000 queries
//! drawn alike, recall@10 against an exhaustive search.

mod drawn;

use std::time::Instant;

use drawn::{DIM, vectors};
use hnsw_rs::prelude::{AnnT, DistDot, Hnsw};
use rayon::prelude::*;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

const K: usize = 10;
const QUERIES: usize = 1000;

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

fn report(
    name: &str,
    build: f64,
    queries: &[Vec<f32>],
    truth: &[Vec<usize>],
    search: impl Fn(&[f32]) -> Vec<usize>,
) {
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
    let n: usize = args
        .next()
        .map_or(200_000, |a| a.parse().expect("a number of vectors"));
    let threads: usize = args
        .next()
        .map_or(2, |a| a.parse().expect("a number of threads"));
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .expect("a pool");
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
    index
        .reserve_capacity_and_threads(n, threads)
        .expect("memory");
    keys.par_iter()
        .enumerate()
        .for_each(|(i, k)| index.add(i as u64, k).expect("room"));
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
