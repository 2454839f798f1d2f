//! GPUs that work together by NCCL. One process among itself has the bits of one alone; two
//! processes on one GPU, which NCCL allows from 2.30 on (NCCL_MULTI_RANK_GPU_ENABLE=1), take the
//! first step of one.

mod common;

use std::net::TcpListener;
use std::process::{Command, Stdio};

use anchorhood_distributed::{Launch, ThreadRank, join};
use anchorhood_engine::{Communicator, Device, Precision, Scan, find_nccl};
use common::several::{
    DIM, close_within, contrast, network_steps, own, sharded, softmax_step, together,
};
use common::uniform;

/// Enough for a step to run call by call, to be recorded, and to be replayed.
const STEPS: usize = 6;

fn gpu(precision: Precision) -> Device {
    Device::cuda(0, precision).unwrap()
}

/// What a body gives on a GPU alone, and by NCCL among itself.
fn both<R>(precision: Precision, body: impl Fn(&Device) -> R) -> [R; 2] {
    let alone = body(&gpu(precision));
    let rank = ThreadRank::all(1).remove(0);
    let device = gpu(precision).among(Communicator::even_alone(rank));
    let among = body(&device);
    device.leave();
    [alone, among]
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn one_rank_has_the_bits_of_one_process() {
    for precision in [Precision::F32, Precision::Bf16] {
        let [alone, among] = both(precision, |device| network_steps(device, false, STEPS));
        assert_eq!(alone, among, "{precision}");
        for (each, sample) in [(false, None), (true, None), (false, Some(200)), (true, Some(200))] {
            let step = |device: &Device| softmax_step(device, 1001, each, sample);
            let [alone, among] = both(precision, step);
            assert_eq!(alone, among, "{precision}");
        }
        let [alone, among] = both(precision, |device| contrast(device, 3));
        assert_eq!(alone, among, "{precision}");
    }
}

/// Statistics that are put together, of one process alone, are those that were taken apart, but for
/// rounding.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn one_rank_that_synchronises_norms_takes_the_same_step() {
    let alone = network_steps(&gpu(Precision::F32), false, 1);
    let [_, among] = both(Precision::F32, |device| network_steps(device, true, 1));
    among.assert_like(&alone, NEAR, "one rank");
}

/// A replayed graph sums what its calls sum.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn losses_of_one_rank_that_synchronises_norms_fall_as_those_of_one_process() {
    let alone = network_steps(&gpu(Precision::F32), false, STEPS);
    let [_, among] = both(Precision::F32, |device| network_steps(device, true, STEPS));
    for (got, expected) in among.losses.iter().zip(&alone.losses) {
        assert!((got - expected).abs() < 1e-3 * expected, "{got} for {expected}");
    }
}

/// As near as two batch sizes of one convolution are.
const NEAR: f32 = 1e-4;

fn near(got: &[f32], expected: &[f32], what: &str) {
    close_within(NEAR, got, expected, what);
}

/// The logarithms by which parts of a scan are put together, against the CPU's.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_scan_tells_the_logarithm_of_its_sum() {
    let rows = uniform(4, 1203 * DIM);
    let scan = Scan { dim: DIM, entropy_temperature: Some(2.0), k: 10, same: true };
    let of = |device: &Device| {
        let all = device.upload(&rows).unwrap();
        device.scan(&all, &all, &scan, &|_| {}).unwrap().log_sum
    };
    let (got, expected) = (of(&gpu(Precision::F32)), of(&Device::cpu(2)));
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(&expected) {
        assert!((g - e).abs() <= 1e-5 * e.abs().max(1.0), "{g} for {e}");
    }
}

/// This test's own binary as two processes on one GPU.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn two_ranks_on_one_gpu_take_the_first_step_of_one() {
    if let Some(launch) = Launch::from_environment().unwrap() {
        return as_rank(&launch);
    }
    let (version, _) = find_nccl().unwrap();
    let numbers: Vec<u32> = version.split('.').filter_map(|n| n.parse().ok()).collect();
    if numbers < vec![2, 30] {
        let why = format!("NCCL {version} has no two ranks on one GPU; 2.30 has");
        return anchorhood_testing::skip(&why);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "two_ranks_on_one_gpu_take_the_first_step_of_one";
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
        command.env("MASTER_ADDR", "127.0.0.1");
        command.env("MASTER_PORT", port.to_string());
        command.env("NCCL_MULTI_RANK_GPU_ENABLE", "1");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running = [0, 1].map(start);
    for ended in running.map(|process| process.wait_with_output().unwrap()) {
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&ended.stdout), said(&ended.stderr));
        assert!(ended.status.success(), "{out}\n{err}");
        assert!(out.contains("1 passed"), "{out}\n{err}");
    }
}

fn as_rank(launch: &Launch) {
    let others = join(launch, |late| panic!("{late}")).unwrap();
    let alone = gpu(Precision::F32);
    let device = gpu(Precision::F32).among(Communicator::of(others));
    let gather = |own: Vec<f32>, n: usize, each: usize| -> Vec<f32> {
        device.communicator().gather_parts(&own, n, each).unwrap()
    };
    let whole = network_steps(&alone, false, 1);
    network_steps(&device, true, 1).assert_like(&whole, NEAR, "two ranks");
    // Recorded and replayed, each normalising by its own rows: not a bit apart.
    let left = network_steps(&device, false, STEPS);
    let own: Vec<f32> = left.values.concat();
    let both = gather(own.clone(), 2 * own.len(), 1);
    assert_eq!(both[..own.len()], both[own.len()..]);
    let stacked = |here: &[f32], len: usize, views: usize| {
        let parts = gather(here.to_vec(), len, 1);
        let parts: Vec<_> = parts.chunks(len / 2).map(<[f32]>::to_vec).collect();
        together(&parts, views)
    };
    for (each, sample) in [(false, None), (true, None), (false, Some(200)), (true, Some(200))] {
        let [whole, here] = [&alone, &device].map(|on| softmax_step(on, 1001, each, sample));
        near(&stacked(&here[0], whole[0].len(), 2), &whole[0], "losses");
        near(&stacked(&here[1], whole[1].len(), 2), &whole[1], "gradient");
        near(&gather(here[2].clone(), 1001, DIM), &whole[2], "rows");
    }
    let [whole, here] = [&alone, &device].map(|on| contrast(on, 3));
    near(&stacked(&here[1], whole[1].len(), 3), &whole[1], "contrastive gradient");
    scan_like_one(&device, &alone);
    device.leave();
}

/// Neighbours over both parts are those over all.
fn scan_like_one(device: &Device, alone: &Device) {
    let rows = uniform(4, 1203 * DIM);
    let scan = Scan { dim: DIM, entropy_temperature: Some(2.0), k: 10, same: true };
    let all = alone.upload(&rows).unwrap();
    let whole = alone.scan(&all, &all, &scan, &|_| {}).unwrap();
    let keys = sharded(device, &rows, DIM);
    let here = device.scan(&keys, &keys, &scan, &|_| {}).unwrap();
    let expected = device.communicator().part(1203);
    let k = here.neighbours.k;
    let of = expected.start * k..expected.end * k;
    assert_eq!(here.neighbours.indices, whole.neighbours.indices[of]);
    near(&here.entropy, &whole.entropy[expected], "entropies");
    assert_eq!(own(device, &rows, DIM).len(), keys.len());
}
