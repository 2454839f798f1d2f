//! Rows that lie in parts on several processes, in rank order: which are whose, and some of them
//! brought to all.

use std::ops::Range;

use crate::{Communicator, Result};

/// The rows of all processes, seen from one of them.
pub(crate) struct SharedRows<'a> {
    together: &'a Communicator,
    own: &'a [f32],
    dim: usize,
    /// The numbers of those that are here, among all.
    here: Range<usize>,
    len: usize,
}

impl<'a> SharedRows<'a> {
    /// Every process brings its own rows of `dim` values, however many.
    pub(crate) fn new(together: &'a Communicator, own: &'a [f32], dim: usize) -> Result<Self> {
        let mut counts = vec![0_u64; together.ranks()];
        let count = own.len() / dim;
        together.gather(&[count as u64], &mut counts)?;
        let first = counts[..together.rank()].iter().sum::<u64>() as usize;
        Ok(SharedRows {
            together,
            own,
            dim,
            here: first..first + count,
            len: counts.iter().sum::<u64>() as usize,
        })
    }

    /// Rows of all processes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of the first row that is here.
    pub(crate) fn first(&self) -> usize {
        self.here.start
    }

    /// Rows by their numbers, one after the other: the same on all processes.
    pub(crate) fn some(&self, which: impl Iterator<Item = usize>) -> Result<Vec<f32>> {
        let mut rows = vec![];
        for number in which {
            let end = rows.len() + self.dim;
            if self.here.contains(&number) {
                let place = number - self.here.start;
                rows.extend_from_slice(&self.own[place * self.dim..][..self.dim]);
            }
            rows.resize(end, 0.0);
        }
        // A row is one process's, and the others' zeros change nothing.
        self.together.sum(&mut rows)?;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_distributed::ThreadRank;

    #[test]
    fn every_process_gets_what_it_asks_for() {
        let all: Vec<f32> = (0..20).map(|i| i as f32 - 5.0).collect();
        let found = ThreadRank::run(3, |rank| {
            let together = Communicator::of(rank);
            // Uneven on purpose: 1, 0 and 9 rows.
            let own = [0..2, 2..2, 2..20][together.rank()].clone();
            let rows = SharedRows::new(&together, &all[own], 2).unwrap();
            assert_eq!(rows.first(), [0, 1, 1][together.rank()]);
            (rows.len(), rows.some([9, 0, 4].into_iter()).unwrap())
        });
        let expected = (10, vec![13.0, 14.0, -5.0, -4.0, 3.0, 4.0]);
        assert!(found.iter().all(|f| *f == expected), "{found:?}");
    }
}
