//! Everything that can happen to a program's files, once each: every operation fails in every way,
//! and the power is cut after every one.

use std::sync::Arc;

use crate::{Fault, FileSystem, Forgetful, Survives};

/// What may be left after a power cut, beside what a kill leaves.
const CUTS: [Survives; 5] =
    [Survives::Synced, Survives::Names, Survives::Bytes, Survives::Mix(1), Survives::Mix(2)];

/// Lets `work` run on a copy of `start` once for every operation and every way in which it can go
/// wrong, and has `check` look at what is left each time, together with what the work had promised
/// by then. Says how many faults there were.
pub fn attack<P>(
    start: &Forgetful,
    work: impl Fn(Arc<dyn FileSystem>) -> P,
    check: impl Fn(&Forgetful, &P, &str),
) -> usize {
    let whole = start.copy();
    work(whole.shared());
    let mut faults = 0;
    for (n, operation) in whole.log().into_iter().enumerate() {
        for fault in Fault::ALL.into_iter().filter(|f| f.concerns(operation)) {
            let disk = start.failing(n, fault);
            let promised = work(disk.shared());
            let what = format!("operation {n} ({operation:?}): {fault:?}");
            faults += 1;
            check(&disk.copy(), &promised, &what);
            if fault == Fault::Killed {
                for cut in CUTS {
                    faults += 1;
                    let left = disk.power_cut(cut);
                    check(&left, &promised, &format!("{what}, power cut, {cut:?}"));
                }
            }
        }
    }
    faults
}
