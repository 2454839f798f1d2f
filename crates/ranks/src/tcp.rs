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

use crate::{Collectives, Launch, RanksError, Reduce};
use frame::{Call, receive, send};
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

    /// The first rank puts all values together, in rank order, and gives each rank what `part` says
    /// of the result.
    fn fold<T: Number>(
        &self,
        (kind, how): (u8, Reduce),
        values: &[T],
        own: &mut [T],
        part: impl Fn(usize) -> std::ops::Range<usize>,
    ) -> Result<(), RanksError> {
        let mut bytes = T::to_bytes(values);
        let mut answer = vec![0; own.len() * T::BYTES];
        self.call(kind, |connections, call| {
            if !self.is_first() {
                send(&mut connections[0], call, &bytes)?;
                return receive(&mut connections[0], call, &mut answer);
            }
            let mut folded: Vec<f64> = values.iter().map(|v| v.widen()).collect();
            for connection in connections.iter_mut() {
                receive(connection, call, &mut bytes)?;
                let theirs = bytes.chunks_exact(T::BYTES).map(T::from_bytes);
                for (all, value) in folded.iter_mut().zip(theirs) {
                    *all = match how {
                        Reduce::Sum => *all + value.widen(),
                        Reduce::Max => all.max(value.widen()),
                    };
                }
            }
            let folded: Vec<T> = folded.into_iter().map(T::narrow).collect();
            let bytes = |rank| T::to_bytes(&folded[part(rank)]);
            for (connection, rank) in connections.iter_mut().zip(1..) {
                send(connection, call, &bytes(rank))?;
            }
            answer = bytes(0);
            Ok(())
        })?;
        let read = answer.chunks_exact(T::BYTES).map(T::from_bytes);
        own.iter_mut().zip(read).for_each(|(o, v)| *o = v);
        Ok(())
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
        self.fold((1, how), &given, values, |_| all.clone())
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError> {
        let (given, all) = (values.to_vec(), 0..values.len());
        self.fold((2, how), &given, values, |_| all.clone())
    }

    fn reduce_scatter(&self, all: &[f32], own: &mut [f32]) -> Result<(), RanksError> {
        let each = own.len();
        check_lengths(each, all.len(), self.ranks)?;
        let part = |rank| rank * each..(rank + 1) * each;
        self.fold((3, Reduce::Sum), all, own, part)
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

/// What can be put together, in f64.
trait Number: Copy {
    const BYTES: usize;
    fn widen(self) -> f64;
    fn narrow(wide: f64) -> Self;
    fn to_bytes(values: &[Self]) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($type:ident) => {
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();
            fn widen(self) -> f64 {
                self as f64
            }
            fn narrow(wide: f64) -> Self {
                wide as $type
            }
            fn to_bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|v| v.to_le_bytes()).collect()
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                $type::from_le_bytes(bytes.try_into().expect("as many bytes as a number has"))
            }
        }
    };
}
number!(f32);
number!(f64);

fn check_lengths(own: usize, all: usize, ranks: usize) -> Result<(), RanksError> {
    match all == own * ranks {
        true => Ok(()),
        false => Err(RanksError::Call {
            call: "a collective by TCP",
            why: format!("{all} values for {ranks} ranks of {own}"),
        }),
    }
}
