//! Every query against every key: entropy of the softmax, and the top-k. Which kernel of scan.cu
//! runs how.
//!
//! Queries are taken in as many blocks as the GPU runs at once; where they are fewer, the keys are
//! cut into ranges that several blocks share. Up to 512 neighbours are found in one round over the
//! keys, more in further rounds.

use std::f32::consts::LOG2_E;

use cudarc::driver::{CudaFunction, CudaSlice, DeviceRepr, ValidAsZeroBits};

use super::{Ranges, rows};
use crate::cuda::launch::{Pointer, launch, shape, side_by_side};
use crate::cuda::{Cuda, Doing, allow_shared};
use crate::similarity::{Neighbours, Scan, ScanResult};
use crate::{Error, Result};

/// Queries of a block, and keys of a tile.
const SIDE: usize = 128;
/// Neighbours found in one round.
const PER_ROUND: usize = 512;
/// Candidates that scan_merge sorts in shared memory.
const MOST_MERGED: usize = 8192;
/// More ranges would each collect candidates from nothing, which costs more than idle
/// multiprocessors.
const MOST_RANGES: usize = 32;
/// What scan_merge writes where there is no neighbour.
const NOBODY: u32 = u32::MAX;

/// How a round over the keys is cut, for some queries.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    rows: usize,
    /// Neighbours of this round.
    k: usize,
    blocks: usize,
    ranges: Ranges,
    /// Candidates a query may have before they are sorted out; a power of two.
    capacity: usize,
}

impl Cut {
    fn new(slots: usize, rows: usize, n: usize, k: usize) -> Self {
        let blocks = rows.div_ceil(SIDE);
        let most = MOST_RANGES.min(MOST_MERGED / k.max(1));
        Cut {
            rows,
            k,
            blocks,
            // What is merged, and be it nothing, is written by one range at least.
            ranges: Ranges::new(n.div_ceil(SIDE).max(1), (slots / blocks.max(1)).min(most)),
            // A tile can add a candidate for each of its keys; some room beyond makes sorting rare.
            capacity: (k + SIDE + SIDE / 2).next_power_of_two().max(2 * SIDE),
        }
    }

    /// Tiles of rows or lists being sorted, whichever is more, and the running sums of 256 threads.
    fn tiles_shared(&self) -> usize {
        let tiles = 4 * 8 * (SIDE + 4);
        (tiles.max(16 * self.capacity) + 24 * 256) * 4
    }

    /// Candidates that are put together.
    fn merged(&self) -> usize {
        (self.ranges.count * self.k).next_power_of_two().max(2)
    }
}

/// See [`crate::Device::scan`].
pub(in crate::cuda) fn scan(
    cuda: &Cuda,
    queries: (Pointer, usize),
    keys: (Pointer, usize),
    scan: &Scan,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<ScanResult> {
    let count = rows("queries", queries.1, scan.dim)?;
    let n = rows("keys", keys.1, scan.dim)?;
    let k = scan.k.min(n.saturating_sub(usize::from(scan.same)));
    let entropies = if scan.entropy_temperature.is_some() { count } else { 0 };
    let mut result = ScanResult {
        entropy: vec![0.0; entropies],
        log_sum: vec![0.0; entropies],
        neighbours: Neighbours {
            k,
            indices: vec![0; count * k],
            similarities: vec![0.0; count * k],
        },
    };
    if k == 0 && entropies == 0 {
        progress(count);
        return Ok(result);
    }
    let scanner = Scanner::new(cuda, queries.0, keys.0, n, scan)?;
    let at_once = scanner.slots * SIDE;
    for first in (0..count).step_by(at_once) {
        let here = at_once.min(count - first);
        scanner.scan(first, here, &mut result)?;
        progress(first + here);
    }
    Ok(result)
}

struct Scanner<'a> {
    cuda: &'a Cuda,
    queries: Pointer,
    keys: Pointer,
    n: usize,
    scan: &'a Scan,
    tiles: CudaFunction,
    merge: CudaFunction,
    /// Blocks the GPU runs at once.
    slots: usize,
}

impl<'a> Scanner<'a> {
    fn new(
        cuda: &'a Cuda,
        queries: Pointer,
        keys: Pointer,
        n: usize,
        scan: &'a Scan,
    ) -> Result<Self> {
        let (tiles, merge) =
            (cuda.function("scan", "scan_tiles")?, cuda.function("scan", "scan_merge")?);
        allow_shared(&tiles, Cut::new(1, 1, 1, PER_ROUND).tiles_shared())?;
        allow_shared(&merge, MOST_MERGED * 8)?;
        Ok(Scanner {
            cuda,
            queries,
            keys,
            n,
            scan,
            tiles,
            merge,
            slots: 2 * cuda.multiprocessors()?,
        })
    }

    /// Queries `first..first + count`: round after round until all their neighbours are found.
    fn scan(&self, first: usize, count: usize, result: &mut ScanResult) -> Result<()> {
        let k = result.neighbours.k;
        let mut bounds = None;
        let mut done = 0;
        loop {
            let round = Cut::new(self.slots, count, self.n, PER_ROUND.min(k - done));
            let entropy = self.scan.entropy_temperature.filter(|_| done == 0);
            let found = self.round(first, &round, entropy, bounds.as_ref())?;
            if entropy.is_some() {
                let to = &mut result.entropy[first..first + count];
                self.read(&found.entropy, to)?;
                let to = &mut result.log_sum[first..first + count];
                self.read(&found.log_sum, to)?;
            }
            self.keep(first, done, &round, &found, &mut result.neighbours)?;
            done += round.k;
            bounds = Some(found.bounds);
            if done == k {
                return Ok(());
            }
        }
    }

    /// One pass over all keys.
    fn round(
        &self,
        first: usize,
        cut: &Cut,
        entropy: Option<f32>,
        bounds: Option<&CudaSlice<u64>>,
    ) -> Result<Found> {
        let lists = if cut.k == 0 { 0 } else { cut.ranges.count * cut.rows * cut.capacity };
        let candidates = self.zeros::<u64>(lists)?;
        let sums =
            self.zeros::<f32>(if entropy.is_some() { cut.ranges.count * cut.rows * 3 } else { 0 })?;
        let found = Found {
            indices: self.zeros(cut.rows * cut.k)?,
            similarities: self.zeros(cut.rows * cut.k)?,
            bounds: self.zeros(cut.rows)?,
            entropy: self.zeros(cut.rows)?,
            log_sum: self.zeros(cut.rows)?,
        };
        let int = |v: usize| v as i32;
        let (first, rows, n, dim) = (int(first), int(cut.rows), int(self.n), int(self.scan.dim));
        let (k, ranges, capacity) = (int(cut.k), int(cut.ranges.count), int(cut.capacity));
        let (per_range, same) = (int(cut.ranges.tiles_each), i32::from(self.scan.same));
        let scale = entropy.map_or(0.0, |t| LOG2_E / t);
        let (cuda, stream) = (self.cuda, self.cuda.stream());
        let [candidates_at, bounds_at] =
            [Some(&candidates), bounds].map(|of| of.map_or(0, |of| cuda.pointer(of)));
        let sums_at = cuda.pointer(&sums);

        let sizes = [first, rows, n, dim];
        let how = (scale, k, same, per_range, capacity);
        let results = [candidates_at, bounds_at, sums_at];
        let arguments = ([self.queries, self.keys], sizes, how, results);
        let grid = [cut.blocks as u32, cut.ranges.count as u32, 1];
        let on_tiles = shape(grid, [256, 1], cut.tiles_shared());
        launch(stream, &self.tiles, on_tiles, "comparing queries with keys", arguments)?;

        let merged = cut.merged();
        let threads = if merged > 64 { 256 } else { 32 };
        let sizes = [rows, ranges, k, capacity, int(merged)];
        let neighbours = [cuda.pointer(&found.indices), cuda.pointer(&found.similarities)];
        let entropy_at = entropy.map_or(0, |_| cuda.pointer(&found.entropy));
        let rest = [cuda.pointer(&found.bounds), entropy_at, cuda.pointer(&found.log_sum)];
        let arguments = (sizes, [candidates_at, sums_at], neighbours, rest);
        let on_rows = shape([side_by_side(cut.rows)?, 1, 1], [threads, 1], merged * 8);
        launch(stream, &self.merge, on_rows, "putting neighbours together", arguments)?;
        Ok(found)
    }

    /// Takes a round's neighbours over into columns `done..` of the result.
    fn keep(
        &self,
        first: usize,
        done: usize,
        cut: &Cut,
        found: &Found,
        to: &mut Neighbours,
    ) -> Result<()> {
        if cut.k == 0 {
            return Ok(());
        }
        let mut indices = vec![0; cut.rows * cut.k];
        let mut similarities = vec![0.0; cut.rows * cut.k];
        self.read(&found.indices, &mut indices)?;
        self.read(&found.similarities, &mut similarities)?;
        if let Some(at) = indices.iter().position(|i| *i == NOBODY) {
            return Err(Error::Device(format!(
                "query {}: only {} of its similarities are finite numbers, and {} \
                 neighbours were asked for",
                first + at / cut.k,
                done + at % cut.k,
                to.k
            )));
        }
        for row in 0..cut.rows {
            let (own, place) = (row * cut.k, (first + row) * to.k + done);
            to.indices[place..place + cut.k].copy_from_slice(&indices[own..own + cut.k]);
            to.similarities[place..place + cut.k].copy_from_slice(&similarities[own..own + cut.k]);
        }
        Ok(())
    }

    fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        self.cuda.zeros(len, "candidates of a scan")
    }

    fn read<T: DeviceRepr>(&self, from: &CudaSlice<T>, to: &mut [T]) -> Result<()> {
        let view = from.slice(..to.len());
        self.cuda.stream().memcpy_dtoh(&view, to).doing("reading what a scan found")
    }
}

/// What a round found, on the device.
struct Found {
    indices: CudaSlice<u32>,
    similarities: CudaSlice<f32>,
    /// The last candidate of each query: the next round goes on below it.
    bounds: CudaSlice<u64>,
    entropy: CudaSlice<f32>,
    log_sum: CudaSlice<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_fits_its_memory() {
        for (rows, n, k) in [
            (1, 1, 0),
            (1, 5, 4),
            (33_792, 50_000, 1),
            (10_000, 50_000, 200),
            (100, 1_281_167, 512),
            (1, 3_000_000, 1),
        ] {
            let cut = Cut::new(264, rows, n, k);
            assert!(cut.merged() <= MOST_MERGED, "{cut:?}");
            assert!(cut.capacity > k + SIDE, "{cut:?}");
            assert!(cut.tiles_shared() <= 96 << 10, "{cut:?}");
        }
    }
}
