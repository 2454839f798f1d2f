//! What is asked of a device about similarities between rows of two matrices.

use std::any::Any;
use std::ops::Range;

use anchorhood_storage::random::{Draws, Stream};

use crate::buffer::of_another_device;
use crate::{Error, Result, Shard};

/// For each query, the keys that count as the same thing as it.
#[derive(Clone, Debug, PartialEq)]
pub struct Positives {
    starts: Vec<u32>,
    members: Vec<u32>,
    each: bool,
}

impl Default for Positives {
    fn default() -> Self {
        Positives::with_capacity(0, 0)
    }
}

impl Positives {
    /// No queries yet, room for some.
    pub fn with_capacity(queries: usize, members: usize) -> Self {
        let mut starts = Vec::with_capacity(queries + 1);
        starts.push(0);
        Positives { starts, members: Vec::with_capacity(members), each: false }
    }

    /// Every one of a query's positives counts as much: the loss is the mean of −log p over them.
    /// Otherwise they count together, −log Σ p, and the likeliest counts most.
    pub fn counting_each(self) -> Self {
        Positives { each: true, ..self }
    }

    /// Whether every positive counts as much.
    pub fn count_each(&self) -> bool {
        self.each
    }

    /// Forgets all queries, keeps the memory.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        self.members.clear();
    }

    /// Forgets all queries; those to come count as another's.
    pub(crate) fn clear_like(&mut self, other: &Positives) {
        self.clear();
        self.each = other.each;
    }

    /// Adds a query's positives; a key named twice counts once.
    pub fn push(&mut self, members: impl IntoIterator<Item = u32>) {
        let start = self.members.len();
        for m in members {
            if !self.members[start..].contains(&m) {
                self.members.push(m);
            }
        }
        self.starts.push(self.members.len() as u32);
    }

    /// How many queries.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One query's positives.
    pub fn of(&self, query: usize) -> &[u32] {
        &self.members[self.starts[query] as usize..self.starts[query + 1] as usize]
    }

    /// Where each query's positives start among the members (and the last's end), and the members:
    /// for a device to read.
    pub(crate) fn parts(&self) -> (&[u32], &[u32]) {
        (&self.starts, &self.members)
    }

    /// How many the query has that has most.
    pub(crate) fn most(&self) -> usize {
        let counts = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        counts.max().unwrap_or(0) as usize
    }

    /// Every query has a positive and none points beyond the keys.
    pub fn check(&self, queries: usize, keys: usize) -> Result<()> {
        Error::check_length("positives", queries, self.len())?;
        Error::refuse((0..queries).any(|q| self.of(q).is_empty()), || {
            "a query has no positive".into()
        })?;
        match self.members.iter().find(|m| **m as usize >= keys) {
            Some(m) => Err(Error::Plan(format!("positive {m} of {keys} keys"))),
            None => Ok(()),
        }
    }
}

/// So many rows that stand for all in a loss; other ones in each step, and the same whatever the
/// number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowSample {
    /// How many are drawn; those that are positives of the batch count with these.
    pub rows: usize,
    /// Decides which.
    pub seed: u64,
}

impl RowSample {
    /// The rows of a step among so many, each drawn evenly and by itself: a row may come twice.
    pub fn draw(self, step: u64, among: usize) -> impl Iterator<Item = u32> {
        let draws = Draws::new(self.seed, Stream::LossRows, 0, step);
        let words = (0..self.rows.div_ceil(4) as u32).flat_map(move |block| draws.block(block));
        let row = move |word: u32| ((u64::from(word) * among as u64) >> 32) as u32;
        words.take(self.rows).map(row)
    }
}

/// Positives on a device: a row of keys for each item, or for each query; on several processes, of
/// this one's part of them.
pub struct DevicePositives {
    shard: Shard,
    here: usize,
    most: usize,
    keys: usize,
    memory: Box<dyn Any + Send + Sync>,
}

impl DevicePositives {
    /// Rows of so many keys, in memory of a device's own kind; none has more than `most`.
    pub fn new(rows: usize, most: usize, keys: usize, memory: impl Any + Send + Sync) -> Self {
        DevicePositives {
            shard: Shard { first: 0, rows },
            here: rows,
            most,
            keys,
            memory: Box::new(memory),
        }
    }

    /// As those of some of the rows; on no process has a row more than `most`.
    pub(crate) fn sharded(self, shard: Shard, most: usize) -> Self {
        DevicePositives { shard, most, ..self }
    }

    /// For how many items or queries there are any, on all processes.
    pub fn len(&self) -> usize {
        self.shard.rows
    }

    /// Whose are here.
    pub(crate) fn here(&self) -> Range<usize> {
        self.shard.first..self.shard.first + self.here
    }

    /// How many a row has at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Among how many keys they are.
    pub fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) fn memory<M: Any>(&self) -> Result<&M> {
        self.memory.downcast_ref().ok_or_else(of_another_device)
    }
}

/// A comparison of every query with every key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    /// Length of a row of either matrix.
    pub dim: usize,
    /// Divides similarities in the softmax; `None` leaves the entropy out.
    pub entropy_temperature: Option<f32>,
    /// How many of the most similar keys to find (fewer when there are fewer keys).
    pub k: usize,
    /// Query i is key i, and is not its own neighbour (it does count in the entropy).
    pub same: bool,
}

impl Scan {
    /// What every device checks alike, of so many values of queries and keys.
    pub(crate) fn check(&self, queries: usize, keys: usize) -> Result<()> {
        rows("queries", queries, self.dim)?;
        let n = rows("keys", keys, self.dim)?;
        if let Some(t) = self.entropy_temperature {
            check_temperature(t)?;
            Error::refuse(n == 0, || "entropy over no keys".into())?;
        }
        match self.same {
            true => Error::check_length("queries that are the keys", keys, queries),
            false => Ok(()),
        }
    }
}

/// How many rows of length `dim` a matrix of `len` values has.
pub(crate) fn rows(what: &str, len: usize, dim: usize) -> Result<usize> {
    Error::refuse(dim == 0, || format!("{what}: rows of length 0"))?;
    let n = len / dim;
    Error::check_length(what, n * dim, len)?;
    Ok(n)
}

/// A temperature divides: it is positive and finite.
pub(crate) fn check_temperature(temperature: f32) -> Result<()> {
    if temperature > 0.0 && temperature.is_finite() {
        return Ok(());
    }
    Err(Error::Plan(format!("temperature {temperature}: must be a positive number")))
}

/// The most similar keys of each query, most similar first; of equal ones the lower index first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbours {
    /// Keys per query.
    pub k: usize,
    /// Which keys, query after query.
    pub indices: Vec<u32>,
    /// How similar.
    pub similarities: Vec<f32>,
}

impl Neighbours {
    /// One query's keys.
    pub fn of(&self, query: usize) -> &[u32] {
        &self.indices[query * self.k..(query + 1) * self.k]
    }

    /// One query's similarities.
    pub fn similarities_of(&self, query: usize) -> &[f32] {
        &self.similarities[query * self.k..(query + 1) * self.k]
    }
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanResult {
    /// −Σ p ln p of each query's softmax; empty when not asked for.
    pub entropy: Vec<f32>,
    /// ln Σ e^(similarity / temperature) of each query, beside the entropy; empty where a device
    /// does not tell it.
    pub log_sum: Vec<f64>,
    /// The top-k.
    pub neighbours: Neighbours,
}
