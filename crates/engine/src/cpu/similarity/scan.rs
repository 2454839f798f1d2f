//! Every query against every key: entropy of the softmax, and the top-k.
//!
//! With u = s / temperature − max, Z = Σ e^u and T = Σ u·e^u, the entropy is −Σ p ln p = ln Z − T / Z. When the maximum
//! grows by d, Z becomes Z·e^−d and T becomes (T − d·Z)·e^−d.
//!
//! A tile is searched for neighbours of a query only where its greatest similarity passes the query's k-th best so far.

use super::best::Best;
use super::tile::{self, KEYS, Lanes, QUERIES, Tile};
use super::{check_temperature, rows};
use crate::cpu::exp::exp;
use crate::similarity::{Scan, ScanResult};
use crate::{Error, Result};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::sync::Mutex;

/// Queries that share a pass over the keys: many, since keys then come from memory less often, yet few enough for all
/// threads to have work. No result depends on it.
fn queries_per_pass(queries: usize, width: usize) -> usize {
    width * (queries / (16 * width)).clamp(1, 8)
}

/// See the module.
pub(crate) fn scan(
    arch: Arch,
    queries: &[f32],
    keys: &[f32],
    scan: &Scan,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<ScanResult> {
    let count = rows("queries", queries, scan.dim)?;
    let n = rows("keys", keys, scan.dim)?;
    if let Some(t) = scan.entropy_temperature {
        check_temperature(t)?;
        if n == 0 {
            return Err(Error::Plan("entropy over no keys".into()));
        }
    }
    if scan.same {
        Error::check_length("queries that are the keys", keys.len(), queries.len())?;
    }
    let k = scan.k.min(n.saturating_sub(usize::from(scan.same)));
    let task = queries_per_pass(count, tile::block_width(arch));
    let done = Mutex::new(0);
    let parts = (queries.par_chunks(task * scan.dim).enumerate())
        .map(|(t, queries)| {
            let part = pass(arch, queries, t * task, keys, scan, k)?;
            let mut done = done.lock().expect("no thread panics while counting");
            *done += queries.len() / scan.dim;
            progress(*done);
            Ok(part)
        })
        .collect::<Result<Vec<ScanResult>>>()?;
    let mut all = ScanResult::default();
    all.neighbours.k = k;
    for part in parts {
        all.entropy.extend(part.entropy);
        all.neighbours.indices.extend(part.neighbours.indices);
        all.neighbours
            .similarities
            .extend(part.neighbours.similarities);
    }
    Ok(all)
}

/// One pass over the keys for some queries, of which `first` is the number of the first.
fn pass(
    arch: Arch,
    queries: &[f32],
    first: usize,
    keys: &[f32],
    scan: &Scan,
    k: usize,
) -> Result<ScanResult> {
    let width = tile::block_width(arch);
    let mut blocks: Vec<Block> = (queries.chunks(width * scan.dim).enumerate())
        .map(|(b, queries)| Block::new(arch, queries, first + b * width, scan, k))
        .collect();
    let mut tile = Tile::new();
    for (t, keys) in keys.chunks(KEYS * scan.dim).enumerate() {
        for block in &mut blocks {
            block.see(arch, &mut tile, keys, t * KEYS);
        }
    }
    let mut result = ScanResult::default();
    for block in blocks {
        block.finish(k, &mut result)?;
    }
    Ok(result)
}

/// Up to [`QUERIES`] queries and what is known of them so far.
struct Block {
    first: usize,
    dim: usize,
    width: usize,
    packed: Vec<f32>,
    /// Key i is query i, and no neighbour of it.
    same: bool,
    best: Vec<Best>,
    /// One over the temperature, where the entropy is asked for.
    inverse_temperature: Option<f32>,
    max: Lanes,
    z: [f64; QUERIES],
    t: [f64; QUERIES],
}

impl Block {
    fn new(arch: Arch, queries: &[f32], first: usize, scan: &Scan, k: usize) -> Self {
        let count = queries.len() / scan.dim;
        let width = tile::padded(arch, count);
        let mut packed = vec![0.0; width * scan.dim];
        tile::pack(arch, queries, scan.dim, 1.0, &mut packed);
        Block {
            first,
            dim: scan.dim,
            width,
            packed,
            same: scan.same,
            best: (0..count).map(|_| Best::new(k)).collect(),
            inverse_temperature: scan.entropy_temperature.map(f32::recip),
            max: Lanes([f32::NEG_INFINITY; QUERIES]),
            z: [0.0; QUERIES],
            t: [0.0; QUERIES],
        }
    }

    /// Takes in a tile of keys, of which `first_key` is the number of the first.
    fn see(&mut self, arch: Arch, tile: &mut Tile, keys: &[f32], first_key: usize) {
        let here = keys.len() / self.dim;
        tile.fill(arch, keys, self.dim, &self.packed, self.width);
        let greatest = tile.max(arch, here, self.width);
        self.search(tile, here, &greatest, first_key);
        if let Some(scale) = self.inverse_temperature {
            self.raise(&greatest, scale);
            let (mut z, mut t) = (Lanes([0.0; QUERIES]), Lanes([0.0; QUERIES]));
            arch.dispatch(Sums {
                values: &tile.0[..here * self.width],
                scale,
                max: &self.max.0[..self.width],
                z: &mut z.0[..self.width],
                t: &mut t.0[..self.width],
            });
            for lane in 0..QUERIES {
                self.z[lane] += f64::from(z.0[lane]);
                self.t[lane] += f64::from(t.0[lane]);
            }
        }
    }

    /// Offers the tile's keys as neighbours.
    fn search(&mut self, tile: &Tile, here: usize, greatest: &Lanes, first_key: usize) {
        for (lane, best) in self.best.iter_mut().enumerate() {
            if greatest.0[lane] <= best.threshold() {
                continue;
            }
            let query = self.first + lane;
            for (key, row) in (first_key..).zip(tile.0.chunks_exact(self.width).take(here)) {
                if row[lane] > best.threshold() && !(self.same && key == query) {
                    best.push(row[lane], key as u32);
                }
            }
        }
    }

    /// Takes over greater maxima of s / temperature.
    fn raise(&mut self, greatest: &Lanes, scale: f32) {
        for lane in 0..self.width {
            let new = greatest.0[lane] * scale;
            let grown = f64::from(new) - f64::from(self.max.0[lane]);
            if grown > 0.0 {
                self.max.0[lane] = new;
                if self.z[lane] > 0.0 {
                    let factor = (-grown).exp();
                    self.t[lane] = (self.t[lane] - grown * self.z[lane]) * factor;
                    self.z[lane] *= factor;
                }
            }
        }
    }

    /// Appends the queries' entropies and neighbours.
    fn finish(self, k: usize, result: &mut ScanResult) -> Result<()> {
        for (lane, best) in self.best.into_iter().enumerate() {
            if self.inverse_temperature.is_some() {
                let (z, t) = (self.z[lane], self.t[lane]);
                result.entropy.push((z.ln() - t / z) as f32);
            }
            let found = best.sorted();
            if found.len() < k {
                let query = self.first + lane;
                return Err(Error::Device(format!(
                    "query {query}: only {} of its similarities are finite numbers, and {k} neighbours were asked for",
                    found.len()
                )));
            }
            for (similarity, key) in found {
                result.neighbours.indices.push(key);
                result.neighbours.similarities.push(similarity);
            }
        }
        Ok(())
    }
}

/// Adds e^u to z and u·e^u to t over all keys of a tile, where u = scale·s − max.
struct Sums<'a> {
    values: &'a [f32],
    scale: f32,
    max: &'a [f32],
    z: &'a mut [f32],
    t: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, _) = S::as_simd_f32s(self.values);
        let (max, _) = S::as_simd_f32s(self.max);
        let (z, _) = S::as_mut_simd_f32s(self.z);
        let (t, _) = S::as_mut_simd_f32s(self.t);
        let scale = simd.splat_f32s(self.scale);
        for v in 0..max.len() {
            let less_max = simd.neg_f32s(max[v]);
            let (mut sum, mut weighted) = (z[v], t[v]);
            for row in rows.chunks_exact(max.len()) {
                let u = simd.mul_add_e_f32s(row[v], scale, less_max);
                let e = exp(simd, u);
                sum = simd.add_f32s(sum, e);
                weighted = simd.mul_add_e_f32s(u, e, weighted);
            }
            (z[v], t[v]) = (sum, weighted);
        }
    }
}
