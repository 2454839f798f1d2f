//! `mpirun anchorhood train`: one run, several processes.
#![cfg(unix)]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anchorhood::train::Checkpoint;
use anchorhood_testing::mpirun;
use common::{Ran, Sandbox, losses, train_args};

/// Enough to be killed in their midst.
const EPOCHS: usize = 150;

/// `anchorhood` with these arguments as so many processes; nothing where there is no `mpirun`.
fn launched(sandbox: &Sandbox, ranks: usize, args: &[String]) -> Option<Command> {
    let mut mpirun = mpirun(ranks)?;
    let program = sandbox.command(args);
    mpirun.arg(program.get_program()).args(program.get_args());
    mpirun.current_dir(sandbox.path(""));
    mpirun.env("ANCHORHOOD_CACHE", sandbox.path("cache"));
    Some(mpirun)
}

fn train(sandbox: &Sandbox, ranks: usize, more: &[&str]) -> Option<Ran> {
    let mut command = launched(sandbox, ranks, &train_args(more))?;
    Some(Ran::from(command.output().unwrap()))
}

/// The same run as one process's, but for the order of sums; it goes on with one, and the reverse.
#[test]
fn two_processes_train_what_one_trains() {
    let sandbox = Sandbox::new();
    let settings = ["--sync-norm", "true", "--batch", "48"];
    let named = |name| [&["--name", name], &settings[..]].concat();
    let Some(two) = train(&sandbox, 2, &named("two")) else {
        return;
    };
    two.succeeded();
    sandbox.train(&named("one")).succeeded();
    let of = |name: &str| losses(&sandbox.path(&format!("runs/{name}")));
    let (one, two) = (of("one"), of("two"));
    assert_eq!(one.len(), two.len());
    assert!((one[0] - two[0]).abs() < 1e-5 * one[0], "{one:?} {two:?}");
    for (before, after) in [("two", 1), ("one", 2)] {
        let last =
            |file: &str| sandbox.path(&format!("runs/{before}/checkpoints/{file}.safetensors"));
        std::fs::copy(last("round-0"), last("last")).unwrap();
        let resume = ["--resume", before].map(String::from);
        let args = [&["train".to_string()][..], &resume].concat();
        let mut command = launched(&sandbox, after, &args).unwrap();
        Ran::from(command.output().unwrap()).succeeded();
        let ended = Checkpoint::load(&last("last")).unwrap();
        assert_eq!(ended.standing.position.round, 2);
        assert_eq!(ended.memory().map(|(rows, dim)| rows.len() / dim), Some(48));
    }
}

/// One sentence, once.
#[test]
fn what_is_wrong_is_said_once() {
    let sandbox = Sandbox::new();
    let Some(ran) = train(&sandbox, 3, &["--name", "uneven"]) else {
        return;
    };
    let said = ran.failed(2, &["a batch of 16 pictures", "--batch 15 would do"]);
    assert_eq!(said.stderr.matches("error: ").count(), 1, "{said:?}");
    assert!(!sandbox.path("runs/uneven").exists());
    let args = ["index", "."].map(String::from);
    let several = launched(&sandbox, 2, &args).unwrap().output().unwrap();
    Ran::from(several).failed(2, &["work for one process"]);
}

fn wait_until(what: &str, child: &mut Child, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes of a launcher that are ranks, from the second on.
fn followers(launcher: &Child) -> Vec<String> {
    let of = |parent: &str| {
        let found = Command::new("pgrep").args(["-P", parent]).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    let children = of(&launcher.id().to_string());
    children.lines().skip(1).map(String::from).collect()
}

/// A process that is killed ends all within seconds, and the run goes on from its last checkpoint.
#[test]
fn a_killed_process_stops_all_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    let epochs = EPOCHS.to_string();
    let long = [
        "--name",
        "long",
        "--epochs",
        &epochs,
        "--evaluate-every",
        &epochs,
    ];
    let Some(mut command) = launched(&sandbox, 2, &train_args(&long)) else {
        return;
    };
    let mut running = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let last = sandbox.path("runs/long/checkpoints/last.safetensors");
    wait_until("first checkpoint", &mut running, || last.exists());
    let followers = followers(&running);
    assert_eq!(followers.len(), 1, "{followers:?}");
    let killed = Command::new("kill").args(["-KILL", &followers[0]]).status();
    assert!(killed.unwrap().success());
    let began = Instant::now();
    let status = running.wait().unwrap();
    assert!(!status.success());
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let saved = Checkpoint::load(&last).unwrap();
    assert_eq!(saved.standing.position.round, 0);
    // It goes on, by one process this time.
    sandbox.run(&["train", "--resume", "long"]).succeeded();
    let ended = Checkpoint::load(&last).unwrap();
    assert_eq!(ended.standing.position.round, 2);
    assert_eq!(losses(&sandbox.path("runs/long")).len(), 2 * EPOCHS);
}
