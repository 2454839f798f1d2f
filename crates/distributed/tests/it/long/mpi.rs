//! The collectives by the installed MPI, in processes of this test's own binary.

use std::time::Duration;

use anchorhood_distributed::{Collectives, Launch, open_mpi};
use anchorhood_testing::as_ranks;

use crate::collectives::{call_by_another_thread, call_every_one};

/// Runs a body as a rank of MPI's, or starts the ranks.
fn by_mpi(test: &str, body: fn(&dyn Collectives)) {
    match Launch::from_environment().unwrap() {
        Some(launch) => {
            let late = |late| panic!("{late}");
            body(&*open_mpi(&launch, Duration::from_secs(60), late).unwrap());
        }
        None => [2, 3].iter().for_each(|ranks| as_ranks(*ranks, &format!("long::mpi::{test}"))),
    }
}

#[test]
#[ignore = "long: needs an installed MPI"]
fn every_collective_does_what_it_says() {
    by_mpi("every_collective_does_what_it_says", call_every_one);
}

#[test]
#[ignore = "long: needs an installed MPI"]
fn any_thread_may_call() {
    by_mpi("any_thread_may_call", call_by_another_thread);
}
