//! Processes that no MPI started find each other at MASTER_ADDR:MASTER_PORT: the first listens, the
//! others come.
//!
//! Made for GPUs, whose values NCCL carries: what goes this way is small. All of it goes through
//! the first process, which puts values together in rank order; so CPUs can train by it too, but
//! MPI's ways are shorter. A second connection of each process, the [lifeline](lifeline), carries
//! nothing but signs of life: who is lost, or fails, ends all.

mod frame;
mod lifeline;
mod rendezvous;

use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use crate::{Collectives, Launch, RanksError, Reduce};
use frame::{CALL, Call, receive, send};
use lifeline::Lifelines;

/// Several processes, each connected with the first one.
pub(crate) struct TcpRanks {
    rank: usize,
    ranks: usize,
    place: String,
    /// To all others in rank order, or to the first; and the number of the next call.
    connections: Mutex<(Vec<TcpStream>, u64)>,
    lifelines: Lifelines,
}

/// Begins to work with the other processes of a launch, waiting for them so long at most.
pub fn open_tcp(launch: &Launch, patience: Duration) -> Result<Arc<dyn Collectives>, RanksError> {
    let met = rendezvous::meet(launch, patience)?;
    Ok(Arc::new(TcpRanks {
        rank: launch.rank,
        ranks: launch.ranks,
        lifelines: Lifelines::watch(launch.rank, met.lifelines)?,
        connections: Mutex::new((met.connections, 0)),
        place: met.place,
    }))
}

impl TcpRanks {
    /// One call: its turn among all calls, and the connections.
    fn call<R>(
        &self,
        kind: u8,
        work: impl FnOnce(&mut [TcpStream], Call) -> Result<R, RanksError>,
    ) -> Result<R, RanksError> {
        let mut turn: MutexGuard<_> =
            self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let (connections, number) = &mut *turn;
        let call = Call { kind, number: *number };
        *number += 1;
        work(connections, call)
    }

    fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// What all ranks bring, in rank order, on all ranks.
    fn exchange(&self, kind: u8, own: &[u8], all: &mut [u8]) -> Result<(), RanksError> {
        let each = own.len();
        self.call(kind, |connections, call| {
            if !self.is_first() {
                send(&mut connections[0], call, own)?;
                return receive(&mut connections[0], call, all);
            }
            all[..each].copy_from_slice(own);
            for (connection, rank) in connections.iter_mut().zip(1..) {
                receive(connection, call, &mut all[rank * each..][..each])?;
            }
            connections.iter_mut().try_for_each(|c| send(c, call, all))
        })
    }

    /// The first rank puts all values together in f64, in rank order, and gives each rank what
    /// `part` says of the result. Values are sent as they lie in memory.
    fn fold<T: Pod + Into<f64>>(
        &self,
        (kind, how): (u8, Reduce),
        narrow: fn(f64) -> T,
        values: &[T],
        own: &mut [T],
        part: impl Fn(usize) -> std::ops::Range<usize>,
    ) -> Result<(), RanksError> {
        self.call(kind, |connections, call| {
            if !self.is_first() {
                send(&mut connections[0], call, cast_slice(values))?;
                return receive(&mut connections[0], call, cast_slice_mut(own));
            }
            let mut folded: Vec<f64> = values.iter().map(|v| (*v).into()).collect();
            let mut theirs = values.to_vec();
            for connection in connections.iter_mut() {
                receive(connection, call, cast_slice_mut(&mut theirs))?;
                for (all, value) in folded.iter_mut().zip(&theirs) {
                    let value: f64 = (*value).into();
                    *all = match how {
                        Reduce::Sum => *all + value,
                        Reduce::Max => all.max(value),
                    };
                }
            }
            let folded: Vec<T> = folded.into_iter().map(narrow).collect();
            for (connection, rank) in connections.iter_mut().zip(1..) {
                send(connection, call, cast_slice(&folded[part(rank)]))?;
            }
            own.copy_from_slice(&folded[part(0)]);
            Ok(())
        })
    }
}

impl Collectives for TcpRanks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn describe(&self) -> String {
        format!("TCP, meeting at {}", self.place)
    }

    fn all_reduce(&self, values: &mut [f32], how: Reduce) -> Result<(), RanksError> {
        let (given, all) = (values.to_vec(), 0..values.len());
        self.fold((1, how), |v| v as f32, &given, values, |_| all.clone())
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError> {
        let (given, all) = (values.to_vec(), 0..values.len());
        self.fold((2, how), |v| v, &given, values, |_| all.clone())
    }

    fn reduce_scatter(&self, all: &[f32], own: &mut [f32]) -> Result<(), RanksError> {
        let each = own.len();
        check_lengths(each, all.len(), self.ranks)?;
        let part = |rank| rank * each..(rank + 1) * each;
        self.fold((3, Reduce::Sum), |v| v as f32, all, own, part)
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) -> Result<(), RanksError> {
        check_lengths(own.len(), all.len(), self.ranks)?;
        self.exchange(4, own, all)
    }

    fn broadcast(&self, bytes: &mut [u8], from: usize) -> Result<(), RanksError> {
        self.call(5, |connections, call| {
            if !self.is_first() {
                return match from == self.rank {
                    true => send(&mut connections[0], call, bytes),
                    false => receive(&mut connections[0], call, bytes),
                };
            }
            if from > 0 {
                receive(&mut connections[from - 1], call, bytes)?;
            }
            let others = connections.iter_mut().zip(1..);
            others.filter(|(_, rank)| *rank != from).try_for_each(|(c, _)| send(c, call, bytes))
        })
    }

    fn barrier(&self) -> Result<(), RanksError> {
        self.exchange(6, &[], &mut [])
    }

    fn abort(&self, code: i32) {
        self.lifelines.abort(code);
    }
}

fn check_lengths(own: usize, all: usize, ranks: usize) -> Result<(), RanksError> {
    match all == own * ranks {
        true => Ok(()),
        false => Err(RanksError::of(CALL, format!("{all} values for {ranks} ranks of {own}"))),
    }
}
