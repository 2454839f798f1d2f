//! Several processes do what one does: losses over sharded keys, gradients of whole networks,
//! scans. Ranks are threads here; MPI's are in the tests of `anchorhood-distributed` and of the program.

use anchorhood_distributed::ThreadRank;
use anchorhood_engine::{Communicator, Device, Error, Loss, Scan, Shard};

use crate::common::several::{
    DIM, Left, close, network_steps, on_ranks, own, sharded, softmax_step, together,
};
use crate::common::uniform;

#[test]
fn the_softmax_over_shards_is_that_over_all() {
    // More keys than a range of the kernel has, fewer than there are ranks' worth of, and an odd
    // number.
    for (keys, each) in [(1001, false), (1001, true), (64, false), (3, false)] {
        let whole = softmax_step(&Device::cpu(2), keys, each, None);
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |device| softmax_step(device, keys, each, None));
            for (which, views) in [(0, 2), (1, 2), (2, 1)] {
                let parts: Vec<_> = parts.iter().map(|p| p[which].clone()).collect();
                let what = format!("{which} of {keys} keys, {ranks} ranks");
                close(&together(&parts, views), &whole[which], &what);
            }
        }
    }
}

#[test]
fn a_step_of_several_processes_is_that_of_one() {
    let whole = network_steps(&Device::cpu(2), false, 1);
    for ranks in [1, 2, 4] {
        let parts = on_ranks(ranks, |device| network_steps(device, true, 1));
        for part in &parts {
            part.assert_like(&whole, 1e-5, &format!("{ranks} ranks"));
        }
        // Not a bit apart: they would part further with every step.
        assert_same(&parts);
        let rows: Vec<f32> = parts.iter().flat_map(|p| p.rows.clone()).collect();
        close(&rows, &whole.rows, "rows");
    }
}

fn assert_same(parts: &[Left]) {
    for part in parts {
        assert_eq!(part.losses, parts[0].losses);
        assert_eq!(part.gradients, parts[0].gradients);
        assert_eq!(part.values, parts[0].values);
    }
}

/// Each process normalises by its own rows, and yet all have the same weights and statistics after
/// some steps.
#[test]
fn processes_that_normalise_by_themselves_stay_together() {
    let parts = on_ranks(4, |device| network_steps(device, false, 3));
    assert_same(&parts);
    let synced = on_ranks(4, |device| network_steps(device, true, 3));
    assert_ne!(parts[0].gradients, synced[0].gradients);
}

/// One process that goes the way of several changes nothing.
#[test]
fn one_process_among_itself_is_one_alone() {
    let alone = network_steps(&Device::cpu(1), false, 2);
    let among = ThreadRank::run(1, |rank| {
        let device = Device::cpu(1).among(Communicator::even_alone(rank));
        network_steps(&device, false, 2)
    });
    let (loss, expected) = (among[0].losses[1], alone.losses[1]);
    assert!((loss - expected).abs() < 1e-5 * expected);
    for (got, expected) in among[0].values.iter().zip(&alone.values) {
        close(got, expected, "values");
    }
}

/// A loss that is no number anywhere leaves the weights everywhere as they were.
#[test]
fn a_loss_that_is_no_number_stops_all() {
    let losses = on_ranks(2, |device| {
        let bad = device.communicator().rank() == 1;
        let rows = device.upload(&[if bad { f32::NAN } else { 1.0 }; DIM]).unwrap();
        let target = device.upload(&[1.0; DIM]).unwrap();
        let mut keys = device.upload(&[0.5; DIM]).unwrap();
        let (mut losses, mut gradient) = (device.zeros(1).unwrap(), device.zeros(DIM).unwrap());
        let loss = Loss { rows: &mut losses, gradient: &mut gradient, weight: 1.0 };
        let mut stream = device.stream().unwrap();
        stream.cosine(&rows, &target, DIM, loss).unwrap();
        let which = device.upload_indices(&[0]).unwrap();
        stream.blend_rows(&mut keys, DIM, &which, &target, 1.0).unwrap();
        device.download(&keys).unwrap()
    });
    assert_eq!(losses, [[0.5; DIM], [0.5; DIM]]);
}

#[test]
fn neighbours_over_shards_are_those_over_all() {
    for (n, k) in [(1203, 10), (37, 36), (5, 2), (3, 2)] {
        let rows = uniform(4, n * DIM);
        let scan = Scan { dim: DIM, entropy_temperature: Some(2.0), k, same: true };
        let one = Device::cpu(2);
        let all = one.upload(&rows).unwrap();
        let whole = one.scan(&all, &all, &scan, &|_| {}).unwrap();
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |device| {
                let keys = sharded(device, &rows, DIM);
                device.scan(&keys, &keys, &scan, &|_| {}).unwrap()
            });
            let of = |p: &anchorhood_engine::ScanResult| p.neighbours.indices.clone();
            let indices: Vec<u32> = parts.iter().flat_map(of).collect();
            assert_eq!(indices, whole.neighbours.indices, "{n} rows, {ranks} ranks");
            let similarities = parts.iter().flat_map(|p| p.neighbours.similarities.clone());
            let similarities: Vec<f32> = similarities.collect();
            assert_eq!(similarities, whole.neighbours.similarities);
            let entropy: Vec<f32> = parts.iter().flat_map(|p| p.entropy.clone()).collect();
            close(&entropy, &whole.entropy, "entropies");
        }
    }
}

/// Queries of each process's own, over keys of all.
#[test]
fn queries_meet_all_shards() {
    let (queries, keys) = (uniform(7, 10 * DIM), uniform(8, 33 * DIM));
    let scan = Scan { dim: DIM, entropy_temperature: None, k: 7, same: false };
    let found = |device: &Device| {
        let queries = device.upload(own(device, &queries, DIM)).unwrap();
        let keys = sharded(device, &keys, DIM);
        device.scan(&queries, &keys, &scan, &|_| {}).unwrap().neighbours.indices
    };
    let whole = found(&Device::cpu(1));
    assert_eq!(on_ranks(4, found).concat(), whole);
}

#[test]
fn a_part_that_is_not_this_processs_is_refused() {
    let refused = on_ranks(2, |device| {
        let rows = device.upload(&[0.0; 3 * DIM]).unwrap();
        let mut keys = rows.sharded(Shard { first: 0, rows: 9 });
        let which = device.upload_indices(&[0]).unwrap();
        let queries = device.upload(&[1.0; DIM]).unwrap();
        let mut stream = device.stream().unwrap();
        match stream.blend_rows(&mut keys, DIM, &which, &queries, 0.5) {
            Err(Error::Plan(why)) => why,
            other => panic!("{other:?}"),
        }
    });
    assert!(refused[0].contains("not this process's part of 9"), "{refused:?}");
}
