//! Which process of how many is this one, and what do they tell each other?
//!
//! A device carries it, and its streams: the operations of a stream, and scans of rows that are
//! [sharded](crate::Shard) over processes, are the only ones who ask. A method that is written for
//! one process is written for many. A process on its own asks nobody.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use anchorhood_distributed::{Collectives, RanksError, Reduce};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

use crate::{Error, Result};

/// Values that are shown to all at a time.
const PIECE: usize = 1 << 22;

/// The processes that work together, seen from one of them.
#[derive(Clone, Default)]
pub struct Communicator {
    /// Nobody, where there is one process.
    others: Option<Arc<dyn Collectives>>,
}

impl Communicator {
    /// A process on its own.
    pub fn single() -> Self {
        Communicator::default()
    }

    /// One of several.
    pub fn of(collectives: Arc<dyn Collectives>) -> Self {
        Communicator { others: Some(collectives).filter(|c| c.ranks() > 1) }
    }

    /// One of several, or a process on its own that goes the way of several: so that what this
    /// costs can be measured, and what it changes tested.
    pub fn even_alone(collectives: Arc<dyn Collectives>) -> Self {
        Communicator { others: Some(collectives) }
    }

    /// This process's number.
    pub fn rank(&self) -> usize {
        self.others.as_ref().map_or(0, |c| c.rank())
    }

    /// How many there are.
    pub fn ranks(&self) -> usize {
        self.others.as_ref().map_or(1, |c| c.ranks())
    }

    /// Whether it is the one that writes and speaks.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether it has nobody to work with.
    pub fn is_single(&self) -> bool {
        self.others.is_none()
    }

    /// What carries the values, in words; nothing where nothing is carried.
    pub fn describe(&self) -> Option<String> {
        self.others.as_ref().map(|c| c.describe())
    }

    /// This process's part of `n` things that are shared out in order, as evenly as can be.
    pub fn part(&self, n: usize) -> Range<usize> {
        self.part_of(self.rank(), n)
    }

    /// Another one's part.
    pub fn part_of(&self, rank: usize, n: usize) -> Range<usize> {
        let start = |rank: usize| {
            let (each, more) = (n / self.ranks(), n % self.ranks());
            rank * each + rank.min(more)
        };
        start(rank)..start(rank + 1)
    }

    /// Each value becomes the sum of all processes' values in its place: the same bits everywhere.
    pub fn sum(&self, values: &mut [f32]) -> Result<()> {
        self.each(|c| c.all_reduce(values, Reduce::Sum))
    }

    /// The same in f64.
    pub fn sum_f64(&self, values: &mut [f64]) -> Result<()> {
        self.each(|c| c.all_reduce_f64(values, Reduce::Sum))
    }

    /// Each value becomes the greatest.
    pub fn max_f64(&self, values: &mut [f64]) -> Result<()> {
        self.each(|c| c.all_reduce_f64(values, Reduce::Max))
    }

    /// `all` has a part of `own`'s length for each process, in rank order; `own` becomes the sum of
    /// all processes' parts for this one.
    pub fn sum_parts(&self, all: &[f32], own: &mut [f32]) -> Result<()> {
        match &self.others {
            None => own.copy_from_slice(all),
            Some(c) => c.reduce_scatter(all, own).map_err(failed)?,
        }
        Ok(())
    }

    /// `all` takes every process's `own`, in rank order; all are of one length.
    pub fn gather<T: Pod>(&self, own: &[T], all: &mut [T]) -> Result<()> {
        match &self.others {
            None => all.copy_from_slice(own),
            Some(c) => c.all_gather(cast_slice(own), cast_slice_mut(all)).map_err(failed)?,
        }
        Ok(())
    }

    /// Parts of `n` things of `each` values, one from every process ([`Communicator::part`]), put
    /// together in rank order.
    pub fn gather_parts<T: Pod>(&self, own: &[T], n: usize, each: usize) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(n * each);
        self.show_parts(own, n, each, &mut |_, piece| all.extend_from_slice(piece))?;
        Ok(all)
    }

    /// The same for the first process alone; the others get nothing.
    pub fn gather_to_first<T: Pod>(&self, own: &[T], n: usize, each: usize) -> Result<Vec<T>> {
        let mut all = vec![];
        let first = self.is_first();
        self.show_parts(own, n, each, &mut |_, piece| {
            if first {
                all.extend_from_slice(piece);
            }
        })?;
        Ok(all)
    }

    /// Shows every process's part of `n` things of `each` values to every process, in rank order,
    /// piece after piece with the rank it comes from: beside its own part a process needs memory
    /// for one piece.
    pub fn show_parts<T: Pod>(
        &self,
        own: &[T],
        n: usize,
        each: usize,
        see: &mut dyn FnMut(usize, &[T]),
    ) -> Result<()> {
        Error::check_length("values of a part", self.part(n).len() * each, own.len())?;
        let mut piece = vec![];
        for rank in 0..self.ranks() {
            let (here, len) = (rank == self.rank(), self.part_of(rank, n).len() * each);
            for first in (0..len).step_by(PIECE) {
                let count = PIECE.min(len - first);
                piece.clear();
                match here {
                    true => piece.extend_from_slice(&own[first..first + count]),
                    false => piece.resize(count, T::zeroed()),
                }
                self.broadcast(&mut piece, rank)?;
                see(rank, &piece);
            }
        }
        Ok(())
    }

    /// Shows every process's bytes, of any length, to every process, in rank order; no process ever
    /// has more than two processes' at a time.
    pub fn show_bytes(
        &self,
        own: Vec<u8>,
        see: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut lengths = vec![0; self.ranks()];
        self.gather(&[own.len() as u64], &mut lengths)?;
        let mut own = Some(own);
        for (rank, length) in lengths.iter().enumerate() {
            let own = own.take_if(|_| rank == self.rank());
            let mut bytes = own.unwrap_or_else(|| vec![0; *length as usize]);
            self.broadcast(&mut bytes, rank)?;
            see(rank, &bytes)?;
        }
        Ok(())
    }

    /// Values become those of one process.
    pub fn broadcast<T: Pod>(&self, values: &mut [T], from: usize) -> Result<()> {
        self.each(|c| c.broadcast(cast_slice_mut(values), from))
    }

    /// Waits until every process is here.
    pub fn barrier(&self) -> Result<()> {
        self.each(|c| c.barrier())
    }

    /// Ends all other processes, where there are any, with this exit code.
    pub fn abort(&self, code: i32) {
        if let Some(c) = &self.others {
            c.abort(code);
        }
    }

    fn each(&self, call: impl FnOnce(&dyn Collectives) -> Result<(), RanksError>) -> Result<()> {
        match &self.others {
            None => Ok(()),
            Some(c) => call(&**c).map_err(failed),
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.ranks())
    }
}

fn failed(error: RanksError) -> Error {
    Error::Device(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_alone_has_all_and_asks_nobody() {
        let alone = Communicator::single();
        assert_eq!((alone.rank(), alone.ranks(), alone.part(7)), (0, 1, 0..7));
        let (mut values, mut all) = ([1.0, 2.0], [0.0; 2]);
        alone.sum(&mut values).unwrap();
        alone.gather(&values, &mut all).unwrap();
        assert_eq!(all, [1.0, 2.0]);
        assert_eq!(alone.gather_parts(&[1_u32, 2], 2, 1).unwrap(), [1, 2]);
        assert_eq!(alone.gather_to_first(&[1_u32, 2], 1, 2).unwrap(), [1, 2]);
        let mut seen = vec![];
        let mut see = |rank: usize, bytes: &[u8]| {
            seen.push((rank, bytes.to_vec()));
            Ok(())
        };
        alone.show_bytes(vec![7, 8], &mut see).unwrap();
        assert_eq!(seen, [(0, vec![7, 8])]);
    }
}
