//! Cases of a test, run beside each other.

use anchorhood_engine::Device;

/// Runs each on a thread and a CPU device of its own: networks of tests are so small that one
/// thread is used better than several.
pub fn beside_each_other<T: Send>(
    cases: impl IntoIterator<Item = T>,
    run: impl Fn(&Device, T) + Sync,
) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| run(&Device::cpu(1), case));
        }
    });
}
