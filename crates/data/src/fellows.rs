//! Who else opens the same pictures? Of several processes that train together each looks at its own
//! part of the files, and tells the others what it saw; decoded pictures are not kept but by those
//! who need them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Processes that open one data set together, seen from one of them.
pub trait Fellows: fmt::Debug + Send + Sync {
    /// How many there are: more than one.
    fn count(&self) -> usize;

    /// This one's part of so many things.
    fn part(&self, n: usize) -> Range<usize>;

    /// Every process's bytes, in the order of their parts.
    fn share(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, String>;
}

/// The others, if there are any.
pub type FellowReaders = Option<Arc<dyn Fellows>>;
