//! What a step gathers from all processes. The memory is kept, so that a step allocates none.

use super::similarity::{ShardScratch, ShardSums};
use crate::{Communicator, Result};

/// Rows of all processes and what is found about them.
#[derive(Default)]
pub(super) struct Gathered {
    /// One process's after the other's.
    pub(super) rows: Vec<f32>,
    /// The item of each row.
    pub(super) items: Vec<u32>,
    /// The same, view after view: view 0 of all processes, then view 1, and so on.
    pub(super) by_view: Vec<f32>,
    /// A number of each of them, in that order.
    pub(super) log_sums: Vec<f32>,
    pub(super) losses: Vec<f32>,
    pub(super) means: Vec<f32>,
    pub(super) sums: Vec<ShardSums>,
    pub(super) all_sums: Vec<ShardSums>,
    pub(super) shard: ShardScratch,
    own_items: Vec<u32>,
}

impl Gathered {
    /// Every process's rows; each has as many.
    pub(super) fn rows(&mut self, communicator: &Communicator, own: &[f32]) -> Result<()> {
        self.rows.resize(communicator.ranks() * own.len(), 0.0);
        communicator.gather(own, &mut self.rows)
    }

    /// The items of every process's rows: those of a process are so many rows of `own`, over and over.
    pub(super) fn items(
        &mut self,
        communicator: &Communicator,
        own: &[u32],
        rows: usize,
    ) -> Result<()> {
        self.own_items.clear();
        self.own_items.extend(own.iter().cycle().take(rows));
        self.items.resize(communicator.ranks() * rows, 0);
        communicator.gather(&self.own_items, &mut self.items)
    }

    /// Room for what is found about every process's rows.
    pub(super) fn make_room(&mut self, ranks: usize) {
        let queries = self.items.len();
        self.losses.resize(queries, 0.0);
        self.means.resize(self.rows.len(), 0.0);
        self.sums.resize(queries, [0.0; 2]);
        self.all_sums.resize(ranks * queries, [0.0; 2]);
    }

    /// Every process's rows, which are stacked view after view, stacked so again: `each` values a view and process.
    pub(super) fn views(&mut self, c: &Communicator, own: &[f32], each: usize) -> Result<()> {
        gather_by_view(c, own, each, &mut self.rows, &mut self.by_view)
    }

    /// The same of a number for each row.
    pub(super) fn log_sums(&mut self, c: &Communicator, own: &[f32], each: usize) -> Result<()> {
        gather_by_view(c, own, each, &mut self.rows, &mut self.log_sums)
    }
}

/// From every process's views (`rows`, one process's after the other's) to all processes' view 0, then view 1, and so on.
fn gather_by_view(
    c: &Communicator,
    own: &[f32],
    each: usize,
    rows: &mut Vec<f32>,
    to: &mut Vec<f32>,
) -> Result<()> {
    let (views, ranks) = (own.len() / each, c.ranks());
    rows.resize(ranks * own.len(), 0.0);
    to.resize(ranks * own.len(), 0.0);
    c.gather(own, rows)?;
    for (place, from) in rows.chunks_exact(each).enumerate() {
        let (rank, view) = (place / views, place % views);
        to[(view * ranks + rank) * each..][..each].copy_from_slice(from);
    }
    Ok(())
}
