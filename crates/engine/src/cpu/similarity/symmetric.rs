//! A scan of keys against themselves: every pair of rows is compared once, since s_ij = s_ji.
//!
//! Rows are cut into groups that depend on their number alone. A task compares two groups: a tile
//! tells its columns about its rows and its rows about its columns. What a group learned from each
//! group is put together in the groups' order, so that neither sums nor ties depend on which task
//! came first.

use super::running::{Running, Sums};
use super::scan;
use super::tile::{QUERIES, Tile};
use crate::similarity::Scan;
use pulp::Arch;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Rows in a large group: packed for the tiles' columns, they stay in a core's cache.
const MAX_ROWS: usize = 1024;

/// Whether there are rows enough.
pub(super) fn pays(n: usize) -> bool {
    n >= 8 * QUERIES
}

/// Rows of a group; whole blocks, so that only the last group has one that is not full.
fn group_rows(n: usize) -> usize {
    n.div_ceil(16).next_multiple_of(QUERIES).min(MAX_ROWS)
}

/// See the module. Gives what each row learned, in order.
pub(super) fn scan_itself(
    arch: Arch,
    keys: &[f32],
    scan: &Scan,
    k: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Sums> {
    let n = keys.len() / scan.dim;
    let rows = group_rows(n);
    let groups: Vec<(&[f32], usize)> =
        (keys.chunks(rows * scan.dim)).zip((0..n).step_by(rows)).collect();
    let learned: Vec<Mutex<Learned>> = (groups.iter())
        .map(|(keys, _)| Mutex::new(Learned::new(keys.len() / scan.dim, k)))
        .collect();
    let of = |group: usize| {
        let learned = learned[group].lock();
        learned.expect("no thread panics while adding")
    };
    let learn = |group: usize, from: usize, sums: Vec<Sums>| of(group).add(from, sums);
    let least = |group: usize| of(group).least();
    let count = groups.len();
    let pairs = count * (count + 1) / 2;
    let done = Mutex::new(0);
    // In order (a bridge, not an indexed iterator), so that little waits for its turn.
    let in_order = (0..count).flat_map(|a| (a..count).map(move |b| (a, b)));
    in_order.par_bridge().for_each(|(a, b)| {
        if a == b {
            learn(a, a, scan::pass(arch, groups[a], groups[a], scan, k));
        } else {
            let least = [least(a), least(b)];
            let [of_a, of_b] = compare(arch, groups[a], groups[b], &least, scan, k);
            learn(a, b, of_a);
            learn(b, a, of_b);
        }
        let mut done = done.lock().expect("no thread panics while counting");
        *done += 1;
        progress(*done * n / pairs);
    });
    let whole = |l: Mutex<Learned>| l.into_inner().expect("no thread panicked").sums;
    learned.into_iter().flat_map(whole).collect()
}

/// What a group learned so far, and what must wait until an earlier group's part is there.
struct Learned {
    sums: Vec<Sums>,
    next: usize,
    waiting: BTreeMap<usize, Vec<Sums>>,
}

impl Learned {
    fn new(rows: usize, k: usize) -> Self {
        Learned {
            sums: (0..rows).map(|_| Sums::new(k)).collect(),
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// The k-th best similarity of each row so far: what is less similar is no neighbour, whatever
    /// the order.
    fn least(&self) -> Vec<f32> {
        self.sums.iter().map(|s| s.best.threshold()).collect()
    }

    fn add(&mut self, from: usize, sums: Vec<Sums>) {
        self.waiting.insert(from, sums);
        while let Some(part) = self.waiting.remove(&self.next) {
            self.sums.iter_mut().zip(part).for_each(|(all, part)| all.add(part));
            self.next += 1;
        }
    }
}

/// What the rows of two groups learn from each other, knowing a `least` similarity of neighbours
/// for each row; `a` comes before `b`, so its blocks are full.
fn compare(
    arch: Arch,
    (a, first_a): (&[f32], usize),
    (b, first_b): (&[f32], usize),
    [least_a, least_b]: &[Vec<f32>; 2],
    scan: &Scan,
    k: usize,
) -> [Vec<Sums>; 2] {
    let mut columns = scan::blocks(arch, a, first_a, scan, k);
    for block in &mut columns {
        block.running.expect(&least_a[block.first - first_a..]);
    }
    let mut of_b = Vec::with_capacity(b.len() / scan.dim);
    let mut tile = Tile::new();
    for (t, keys) in b.chunks(QUERIES * scan.dim).enumerate() {
        let (first, count) = (first_b + t * QUERIES, keys.len() / scan.dim);
        let mut rows = Running::new(first, count, scan, k);
        rows.expect(&least_b[first - first_b..]);
        for block in &mut columns {
            let width = block.width;
            tile.fill(arch, keys, scan.dim, &block.packed, width);
            block.running.see_columns(arch, &tile, count, width, first);
            rows.see_rows(arch, &tile, width, block.first);
        }
        of_b.extend(rows.into_sums());
    }
    let of_a = columns.into_iter().flat_map(|b| b.running.into_sums());
    [of_a.collect(), of_b]
}
