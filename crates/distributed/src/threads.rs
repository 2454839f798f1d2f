//! Ranks that are threads of one process: what tests put in MPI's place. Sums are in rank order.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Collectives, RanksError, Reduce};

/// How long a rank waits for the others: one that has failed never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of several threads that work together.
pub struct ThreadRank {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    ranks: usize,
    state: Mutex<State>,
    all_here: Condvar,
}

/// What the ranks have brought to the call under way, or to the last one.
#[derive(Default)]
struct State {
    call: u64,
    brought: Vec<Option<Vec<u8>>>,
    last: Arc<Vec<Vec<u8>>>,
}

impl ThreadRank {
    /// So many of them, to be given to as many threads.
    pub fn all(ranks: usize) -> Vec<Arc<ThreadRank>> {
        let shared = Arc::new(Shared {
            ranks,
            state: Mutex::new(State { brought: vec![None; ranks], ..State::default() }),
            all_here: Condvar::new(),
        });
        let rank = |rank| ThreadRank { rank, shared: shared.clone() };
        (0..ranks).map(rank).map(Arc::new).collect()
    }

    /// Runs a body on a thread for each rank, and gives what they return, in rank order.
    pub fn run<R: Send>(ranks: usize, body: impl Fn(Arc<ThreadRank>) -> R + Sync) -> Vec<R> {
        std::thread::scope(|scope| {
            let start = |rank| scope.spawn(|| body(rank));
            let threads: Vec<_> = ThreadRank::all(ranks).into_iter().map(start).collect();
            let joined = threads.into_iter().map(|t| t.join());
            joined.map(|r| r.expect("a rank has failed")).collect()
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings bytes, and takes what all have brought.
    fn exchange(&self, own: &[u8]) -> Result<Arc<Vec<Vec<u8>>>, RanksError> {
        let mut state = self.state();
        let call = state.call;
        state.brought[self.rank] = Some(own.to_vec());
        if state.brought.iter().all(Option::is_some) {
            let brought: Vec<Vec<u8>> = state.brought.iter_mut().filter_map(Option::take).collect();
            (state.last, state.call) = (Arc::new(brought), call + 1);
            self.shared.all_here.notify_all();
            return Ok(state.last.clone());
        }
        let waited =
            self.shared.all_here.wait_timeout_while(state, PATIENCE, |state| state.call == call);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match timeout.timed_out() {
            false => Ok(state.last.clone()),
            true => Err(RanksError::of(
                "a collective",
                format!("not all ranks came within {PATIENCE:?}"),
            )),
        }
    }

    /// Each value becomes that of all ranks put together in rank order.
    fn fold(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError> {
        let all = self.exchange(bytemuck::cast_slice(values))?;
        for (place, value) in values.iter_mut().enumerate() {
            let of =
                |bytes: &Vec<u8>| bytemuck::pod_read_unaligned::<f64>(&bytes[8 * place..][..8]);
            let all = all.iter().map(of);
            *value = match how {
                Reduce::Sum => all.sum(),
                Reduce::Max => all.fold(f64::NEG_INFINITY, f64::max),
            };
        }
        Ok(())
    }
}

impl Collectives for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks
    }

    fn describe(&self) -> String {
        "threads of one process".into()
    }

    fn all_reduce(&self, values: &mut [f32], how: Reduce) -> Result<(), RanksError> {
        let mut wide: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
        self.fold(&mut wide, how)?;
        values.iter_mut().zip(wide).for_each(|(v, w)| *v = w as f32);
        Ok(())
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError> {
        self.fold(values, how)
    }

    fn reduce_scatter(&self, all: &[f32], own: &mut [f32]) -> Result<(), RanksError> {
        let mut sums = all.to_vec();
        self.all_reduce(&mut sums, Reduce::Sum)?;
        own.copy_from_slice(&sums[self.rank * own.len()..][..own.len()]);
        Ok(())
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) -> Result<(), RanksError> {
        all.copy_from_slice(&self.exchange(own)?.concat());
        Ok(())
    }

    fn broadcast(&self, bytes: &mut [u8], from: usize) -> Result<(), RanksError> {
        bytes.copy_from_slice(&self.exchange(bytes)?[from]);
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        self.exchange(&[]).map(|_| ())
    }

    /// A thread cannot end the others; they end by themselves when this one does not come.
    fn abort(&self, _: i32) {}
}
