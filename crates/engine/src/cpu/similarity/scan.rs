//! Every query against every key: entropy of the softmax, and the top-k. Queries are shared out
//! among the threads, and each of them sees all keys in order.

use super::running::{Running, Sums};
use super::symmetric;
use super::tile::{self, KEYS, Tile};
use crate::similarity::{Scan, ScanResult};
use crate::{Error, Result};
use pulp::Arch;
use rayon::prelude::*;
use std::sync::Mutex;

/// See the module.
pub(crate) fn scan(
    arch: Arch,
    queries: &[f32],
    keys: &[f32],
    scan: &Scan,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<ScanResult> {
    let (count, n) = (queries.len() / scan.dim, keys.len() / scan.dim);
    let k = scan.k.min(n.saturating_sub(usize::from(scan.same)));
    let itself = scan.same && std::ptr::eq(queries, keys);
    let sums = if itself && symmetric::pays(n) {
        symmetric::scan_itself(arch, keys, scan, k, progress)
    } else {
        let width = tile::block_width(arch);
        let per_pass = queries_per_pass(count, width) * scan.dim;
        let done = Mutex::new(0);
        (queries.par_chunks(per_pass).enumerate())
            .flat_map_iter(|(p, queries)| {
                let first = p * per_pass / scan.dim;
                let sums = pass(arch, (queries, first), (keys, 0), scan, k);
                let mut done = done.lock().expect("no thread panics while counting");
                *done += sums.len();
                progress(*done);
                sums
            })
            .collect()
    };
    result(sums, scan, k)
}

/// Queries that share a pass over the keys: many, since keys then come from memory less often, yet
/// few enough for all threads to have work. No result depends on it.
fn queries_per_pass(queries: usize, width: usize) -> usize {
    width * (queries / (16 * width)).clamp(1, 8)
}

/// One pass over some keys for some queries; each comes with the number of its first.
pub(super) fn pass(
    arch: Arch,
    (queries, first_query): (&[f32], usize),
    (keys, first_key): (&[f32], usize),
    scan: &Scan,
    k: usize,
) -> Vec<Sums> {
    let mut blocks = blocks(arch, queries, first_query, scan, k);
    let mut tile = Tile::new();
    for (t, keys) in keys.chunks(KEYS * scan.dim).enumerate() {
        for block in &mut blocks {
            tile.fill(arch, keys, scan.dim, &block.packed, block.width);
            let (rows, first) = (keys.len() / scan.dim, first_key + t * KEYS);
            let running = &mut block.running;
            running.see_columns(arch, &tile, rows, block.width, first);
        }
    }
    blocks.into_iter().flat_map(|b| b.running.into_sums()).collect()
}

/// Queries packed as a tile's columns, and what is known of them.
pub(super) struct Block {
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) packed: Vec<f32>,
    pub(super) running: Running,
}

/// Cuts queries into blocks.
pub(super) fn blocks(
    arch: Arch,
    queries: &[f32],
    first: usize,
    scan: &Scan,
    k: usize,
) -> Vec<Block> {
    let full = tile::block_width(arch);
    let block = |(b, queries): (usize, &[f32])| {
        let (first, count) = (first + b * full, queries.len() / scan.dim);
        let width = tile::padded(arch, count);
        let mut packed = vec![0.0; width * scan.dim];
        tile::pack(arch, queries, scan.dim, 1.0, &mut packed);
        Block { first, width, packed, running: Running::new(first, count, scan, k) }
    };
    (queries.chunks(full * scan.dim).enumerate()).map(block).collect()
}

/// Entropies and neighbours out of what the queries learned.
fn result(sums: Vec<Sums>, scan: &Scan, k: usize) -> Result<ScanResult> {
    let mut result = ScanResult::default();
    result.neighbours.k = k;
    for (query, sums) in sums.into_iter().enumerate() {
        if scan.entropy_temperature.is_some() {
            result.entropy.push(sums.entropy());
            result.log_sum.push(sums.log_sum());
        }
        let found = sums.best.sorted();
        if found.len() < k {
            return Err(Error::Device(format!(
                "query {query}: only {} of its similarities are finite numbers, and \
                 {k} neighbours were asked for",
                found.len()
            )));
        }
        for (similarity, key) in found {
            result.neighbours.indices.push(key);
            result.neighbours.similarities.push(similarity);
        }
    }
    Ok(result)
}
