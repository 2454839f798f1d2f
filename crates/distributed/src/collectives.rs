//! What processes do together, over memory of the host. Every rank makes the same calls in the same
//! order; each returns when the rank's own part is done.

use std::fmt::Display;

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

/// Why processes do not work together: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RanksError(pub String);

impl RanksError {
    /// A call that failed.
    pub(crate) fn of(call: &str, why: impl Display) -> Self {
        RanksError(format!("{call}: {why}"))
    }
}
