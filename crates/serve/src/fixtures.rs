//! What the tests of several modules need.

pub(crate) use anchorhood_index::fuzzing::index_of as index;

/// Runs a test that waits.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test)
}
