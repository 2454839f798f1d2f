//! What processes do together, over memory of the host. Every rank makes the same calls in the same
//! order; each returns when the rank's own part is done.

use crate::join::VARIABLE as PATIENCE;
use crate::mpi::VARIABLE as LIBRARY;

/// How values of all ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// The greatest.
    Max,
}

/// Several processes, seen from one of them.
pub trait Collectives: Send + Sync {
    /// This process's number.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// What carries the values, in words.
    fn describe(&self) -> String;

    /// Each value becomes the sum, or the greatest, of all ranks' values in its place: the same
    /// bits everywhere.
    fn all_reduce(&self, values: &mut [f32], how: Reduce) -> Result<(), RanksError>;

    /// The same in f64.
    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError>;

    /// `all` holds a part of `own`'s length for each rank; `own` becomes the sum of all ranks'
    /// parts for this one.
    fn reduce_scatter(&self, all: &[f32], own: &mut [f32]) -> Result<(), RanksError>;

    /// `all` takes every rank's `own`, in rank order; all are of one length.
    fn all_gather(&self, own: &[u8], all: &mut [u8]) -> Result<(), RanksError>;

    /// `bytes` become those of rank `from`.
    fn broadcast(&self, bytes: &mut [u8], from: usize) -> Result<(), RanksError>;

    /// Waits until every rank is here.
    fn barrier(&self) -> Result<(), RanksError>;

    /// Ends all ranks at once, with this exit code; this one, too.
    fn abort(&self, code: i32);
}

/// Why processes do not work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RanksError {
    /// There is no MPI to be opened.
    #[error(
        "processes work together by MPI, and none was found ({looked}); install it (Debian: \
         openmpi-bin or mpich; Fedora: openmpi; macOS: brew install open-mpi), or name its library \
         by {LIBRARY}"
    )]
    NoMpi {
        /// What was tried.
        looked: String,
    },
    /// The library that the user named is no MPI.
    #[error("{LIBRARY}={place}: {why}")]
    BadMpi {
        /// What it names.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The launcher and MPI see different things.
    #[error(
        "{launcher} says that this is rank {rank} of {ranks}, and MPI ({library}) that it is rank \
         {found} of {of}: library and launcher belong to different MPIs, or the processes were not \
         started by an MPI launcher (mpirun, srun --mpi=pmix); {LIBRARY} names the library to use"
    )]
    OtherRanks {
        /// Who launched.
        launcher: String,
        /// The rank it tells.
        rank: usize,
        /// How many it tells.
        ranks: usize,
        /// MPI's library.
        library: String,
        /// The rank MPI tells.
        found: usize,
        /// How many MPI tells.
        of: usize,
    },
    /// Nobody says where the first process is.
    #[error(
        "{ranks} processes are to work together, and no MPI launcher started them; set MASTER_ADDR \
         and MASTER_PORT to where rank 0 can be reached"
    )]
    NoMaster {
        /// How many processes there are.
        ranks: usize,
    },
    /// Processes that never came.
    #[error(
        "{} of {ranks} did not come within {seconds} seconds; all processes are started with the \
         same MASTER_ADDR, MASTER_PORT and WORLD_SIZE", named(.missing)
    )]
    Missing {
        /// Which.
        missing: Vec<usize>,
        /// How many there should be.
        ranks: usize,
        /// How long was waited.
        seconds: u64,
    },
    /// Processes that do not find each other.
    #[error("{why}")]
    Meeting {
        /// Why.
        why: String,
    },
    /// Somebody was waited for in vain.
    #[error(
        "{who}: rank {rank} has waited {seconds} s for all {ranks} to begin; see what the missing \
         ones say, or wait longer by {PATIENCE} (in seconds)"
    )]
    NeverCame {
        /// Who is missing.
        who: String,
        /// Who has waited.
        rank: usize,
        /// For how many.
        ranks: usize,
        /// For how long.
        seconds: u64,
    },
    /// A call failed.
    #[error("{call}: {why}")]
    Call {
        /// Which.
        call: &'static str,
        /// What MPI says of it.
        why: String,
    },
}

/// Ranks in words, the first few of many.
fn named(ranks: &[usize]) -> String {
    let some: Vec<String> = ranks.iter().take(8).map(usize::to_string).collect();
    let more = match ranks.len() > some.len() {
        true => format!(" and {} more", ranks.len() - some.len()),
        false => String::new(),
    };
    let rank = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{rank} {}{more}", some.join(", "))
}
