//! Threads do not survive a fork: a child process that works on with its parent's would wait for
//! ever. It is told so instead.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::PyResult;

use crate::errors::WorkError;

/// The process that began to work; 0 before any did.
static WORKING: AtomicU32 = AtomicU32::new(0);

/// Refuses to work in a child of a process that has worked. A child of one that has only imported
/// the package may begin.
pub fn check() -> PyResult<()> {
    let here = std::process::id();
    let began = WORKING.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
    match began {
        Ok(_) => Ok(()),
        Err(first) if first == here => Ok(()),
        Err(_) => Err(WorkError::new_err(
            "this process was forked from one that had used anchorhood already, and threads do not survive a fork; start processes by \
             multiprocessing.get_context(\"spawn\") or \"forkserver\", or use anchorhood in one of them alone",
        )),
    }
}
