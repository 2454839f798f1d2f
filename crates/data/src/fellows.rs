//! Who else opens the same pictures? Of several processes that train together each looks at its own
//! part of the files, and tells the others what it saw; decoded pictures are not kept but by those
//! who need them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Processes that open one data set together, seen from one of them.
pub trait Fellows: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// This one's part of so many things.
    fn part(&self, n: usize) -> Range<usize>;

    /// Every process's bytes, in the order of their parts.
    fn share(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, String>;
}

/// The others, if there are any. Who else reads is no part of what is read: all are equal.
#[derive(Clone, Default)]
pub struct FellowReaders(Option<Arc<dyn Fellows>>);

impl FellowReaders {
    /// Some others; nobody where there is one process.
    pub fn new(fellows: Arc<dyn Fellows>) -> Self {
        FellowReaders(Some(fellows).filter(|f| f.count() > 1))
    }

    pub(crate) fn get(&self) -> Option<&dyn Fellows> {
        self.0.as_deref()
    }
}

impl PartialEq for FellowReaders {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for FellowReaders {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let count = self.get().map_or(1, Fellows::count);
        write!(f, "{count} readers")
    }
}
