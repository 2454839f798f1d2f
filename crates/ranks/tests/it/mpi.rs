//! The collectives by threads, by TCP, and by the installed MPI in processes of this test's own
//! binary.

use anchorhood_ranks::{Collectives, Launch, Reduce, ThreadRank, open_mpi};
use anchorhood_testing::as_ranks;

use crate::common::by_tcp;

/// Runs a body as a rank of MPI's, or as threads with and without TCP, and starts the ranks.
fn on_ranks(test: &str, body: impl Fn(&dyn Collectives) + Sync) {
    match Launch::from_environment().unwrap() {
        Some(launch) => body(
            &*open_mpi(&launch, std::time::Duration::from_secs(60), |late| panic!("{late}"))
                .unwrap(),
        ),
        None => {
            ThreadRank::run(3, |rank| body(&*rank));
            by_tcp(3, |rank| body(&*rank.unwrap()));
            let test = format!("mpi::{test}");
            [2, 3].iter().for_each(|ranks| as_ranks(*ranks, &test));
        }
    }
}

#[test]
fn every_collective_does_what_it_says() {
    on_ranks("every_collective_does_what_it_says", |mpi| {
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
    });
}

/// A thread that did not begin MPI may call it.
#[test]
fn any_thread_may_call() {
    on_ranks("any_thread_may_call", |mpi| {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                let mut values = [1.0; 1000];
                mpi.all_reduce(&mut values, Reduce::Sum).unwrap();
                values
            });
            assert_eq!(call.join().unwrap(), [mpi.ranks() as f32; 1000]);
        });
    });
}
