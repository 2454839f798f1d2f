//! The collectives by threads and by TCP; `long/mpi.rs` has them by the installed MPI.

use anchorhood_distributed::{Collectives, Reduce, ThreadRank};

use crate::common::by_tcp;

/// Runs a body as ranks that are threads, with and without TCP.
fn on_ranks(body: fn(&dyn Collectives)) {
    ThreadRank::run(3, |rank| body(&*rank));
    by_tcp(3, |rank| body(&*rank.unwrap()));
}

#[test]
fn every_collective_does_what_it_says() {
    on_ranks(call_every_one);
}

#[test]
fn any_thread_may_call() {
    on_ranks(call_by_another_thread);
}

pub fn call_every_one(mpi: &dyn Collectives) {
    let (rank, ranks) = (mpi.rank(), mpi.ranks());
    let all = 0..ranks;
    let total = all.clone().sum::<usize>() as f32;

    let mut values = [rank as f32, 1.0, -(rank as f32)];
    mpi.all_reduce(&mut values, Reduce::Sum).unwrap();
    assert_eq!(values, [total, ranks as f32, -total]);
    let mut values = [rank as f32, 1.0, -(rank as f32)];
    mpi.all_reduce(&mut values, Reduce::Max).unwrap();
    assert_eq!(values, [(ranks - 1) as f32, 1.0, 0.0]);
    let mut values = [rank as f64 + 0.5];
    mpi.all_reduce_f64(&mut values, Reduce::Sum).unwrap();
    assert_eq!(values, [f64::from(total) + 0.5 * ranks as f64]);
    mpi.all_reduce_f64(&mut values, Reduce::Max).unwrap();
    assert_eq!(values, [f64::from(total) + 0.5 * ranks as f64]);

    let parts: Vec<f32> = all.clone().flat_map(|to| [to as f32, rank as f32]).collect();
    let mut own = [0.0; 2];
    mpi.reduce_scatter(&parts, &mut own).unwrap();
    assert_eq!(own, [(rank * ranks) as f32, total]);

    let mut gathered = vec![0; 2 * ranks];
    mpi.all_gather(&[rank as u8, 7], &mut gathered).unwrap();
    let expected: Vec<u8> = all.clone().flat_map(|from| [from as u8, 7]).collect();
    assert_eq!(gathered, expected);

    for from in all {
        let mut bytes = [rank as u8; 5];
        mpi.broadcast(&mut bytes, from).unwrap();
        assert_eq!(bytes, [from as u8; 5]);
    }
    mpi.barrier().unwrap();
}

/// A thread that did not begin MPI may call it.
pub fn call_by_another_thread(mpi: &dyn Collectives) {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let mut values = [1.0; 1000];
            mpi.all_reduce(&mut values, Reduce::Sum).unwrap();
            values
        });
        assert_eq!(call.join().unwrap(), [mpi.ranks() as f32; 1000]);
    });
}
