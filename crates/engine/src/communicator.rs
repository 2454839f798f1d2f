//! Which process of how many is this one?
//!
//! A stream carries it, and the operations of a stream are the only ones who ask: a method that is written for one
//! process is written for many.

/// The processes that train together, seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communicator {
    rank: usize,
    ranks: usize,
}

impl Communicator {
    /// A process on its own.
    pub fn single() -> Self {
        Communicator { rank: 0, ranks: 1 }
    }

    /// This process's number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }
}
