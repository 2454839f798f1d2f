//! What a step gathers from all processes. The memory is kept, so that a step allocates none.

use super::similarity::{ShardScratch, ShardSums};
use crate::{Communicator, DevicePositives, Positives, Result};

/// Rows of all processes and what is found about them.
#[derive(Default)]
pub(super) struct Gathered {
    /// One process's after the other's.
    pub(super) rows: Vec<f32>,
    /// The item of each row.
    pub(super) items: Vec<u32>,
    /// What the items of all processes are drawn towards, and which row of it each row has.
    pub(super) positives: Positives,
    pub(super) row_of: Vec<u32>,
    /// The same, view after view: view 0 of all processes, then view 1, and so on.
    pub(super) by_view: Vec<f32>,
    /// A number of each of them, in that order.
    pub(super) log_sums: Vec<f32>,
    pub(super) losses: Vec<f32>,
    pub(super) means: Vec<f32>,
    pub(super) sums: Vec<ShardSums>,
    pub(super) all_sums: Vec<ShardSums>,
    pub(super) shard: ShardScratch,
    asked: Vec<f64>,
}

impl Gathered {
    /// Every process's rows; each has as many.
    pub(super) fn rows(&mut self, communicator: &Communicator, own: &[f32]) -> Result<()> {
        self.rows.resize(communicator.ranks() * own.len(), 0.0);
        communicator.gather(own, &mut self.rows)
    }

    /// Every process's items; each has as many.
    pub(super) fn items(&mut self, communicator: &Communicator, own: &[u32]) -> Result<()> {
        self.items.resize(communicator.ranks() * own.len(), 0);
        communicator.gather(own, &mut self.items)
    }

    /// Every process's rows are items themselves, in order.
    pub(super) fn every_row(&mut self, count: usize) {
        self.items.clear();
        self.items.extend(0..count as u32);
    }

    /// The positives of every process's items, each told by the process that has them: how many,
    /// and which. The rows of a process, so many, are of its items over and over.
    pub(super) fn positives(
        &mut self,
        communicator: &Communicator,
        of: &DevicePositives,
        rows: usize,
    ) -> Result<()> {
        let (known, here, width): (&Positives, _, _) = (of.memory()?, of.here(), of.most() + 1);
        self.asked.clear();
        self.asked.resize(self.items.len() * width, 0.0);
        for (item, told) in self.items.iter().zip(self.asked.chunks_exact_mut(width)) {
            let item = *item as usize;
            if here.contains(&item) {
                let members = known.of(item - here.start);
                told[0] = members.len() as f64;
                let to = told[1..].iter_mut().zip(members);
                to.for_each(|(to, member)| *to = f64::from(*member));
            }
        }
        communicator.sum_f64(&mut self.asked)?;
        self.positives.clear_like(known);
        for told in self.asked.chunks_exact(width) {
            let members = &told[1..=told[0] as usize];
            self.positives.push(members.iter().map(|m| *m as u32));
        }
        let each = self.items.len() / communicator.ranks();
        let row_of = |row: usize| (row / rows * each + row % rows % each) as u32;
        self.row_of.clear();
        self.row_of.extend((0..communicator.ranks() * rows).map(row_of));
        Ok(())
    }

    /// Room for what is found about every process's rows.
    pub(super) fn make_room(&mut self, ranks: usize) {
        let queries = self.row_of.len();
        self.losses.resize(queries, 0.0);
        self.means.resize(self.rows.len(), 0.0);
        self.sums.resize(queries, [0.0; 2]);
        self.all_sums.resize(ranks * queries, [0.0; 2]);
    }

    /// Every process's rows, which are stacked view after view, stacked so again: `each` values a
    /// view and process.
    pub(super) fn views(&mut self, c: &Communicator, own: &[f32], each: usize) -> Result<()> {
        gather_by_view(c, own, each, &mut self.rows, &mut self.by_view)
    }

    /// The same of a number for each row.
    pub(super) fn log_sums(&mut self, c: &Communicator, own: &[f32], each: usize) -> Result<()> {
        gather_by_view(c, own, each, &mut self.rows, &mut self.log_sums)
    }
}

/// From every process's views (`rows`, one process's after the other's) to all processes' view 0,
/// then view 1, and so on.
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
