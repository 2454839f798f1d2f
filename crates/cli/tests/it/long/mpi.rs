//! `mpirun anchorhood train`: one run, several processes; and how they end, whoever started them.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anchorhood::research::Checkpoint;
use anchorhood_testing::mpirun;

use crate::common::{Ran, Sandbox, signal, train_args, trained, wait_for};
use crate::ranks::{AS_ONE, as_one_trains, started};

/// Enough to be killed in their midst.
const EPOCHS: usize = 150;

/// What a program says of processes.
fn asked(program: &str, args: &[&str]) -> String {
    let said = Command::new(program).args(args).output().unwrap();
    String::from_utf8(said.stdout).unwrap()
}

/// The launcher's process that is rank 1, by its environment: numbers of processes begin anew some
/// day, and then the second has the lower one.
fn follower(launcher: &Child) -> u32 {
    let children = asked("pgrep", &["-P", &launcher.id().to_string()]);
    let is_second = |child: &&str| {
        let said = asked("ps", &["eww", "-o", "command=", "-p", child]);
        let second = ["RANK=1", "OMPI_COMM_WORLD_RANK=1"];
        said.split_whitespace().any(|word| second.contains(&word))
    };
    let found = children.lines().find(is_second);
    found.and_then(|id| id.trim().parse().ok()).expect("a process of rank 1")
}

/// Long enough to be interrupted, on two processes, begun and with a first checkpoint; nothing
/// where the launcher is missing.
fn long_run(sandbox: &Sandbox, name: &str, launched: Launcher) -> Option<Child> {
    let long = format!("--name {name} --epochs {EPOCHS} --evaluate-every {EPOCHS}");
    let mut command = launched(sandbox, &train_args(&long))?;
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let last = sandbox.checkpoint(name, "last");
    wait_for("first checkpoint", || {
        assert!(running.try_wait().unwrap().is_none(), "it ended before");
        last.exists()
    });
    Some(running)
}

/// All processes end, within seconds; what was said.
fn ends(running: Child) -> Ran {
    let began = Instant::now();
    let ended = Ran::from(running.wait_with_output().unwrap());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_ne!(ended.code, Some(0), "{ended:?}");
    ended
}

/// The last checkpoint is whole, of somewhere on the way (a busy machine may have gone far before
/// it was interrupted), and one process brings the run to its end.
fn goes_on(sandbox: &Sandbox, name: &str) {
    let last = sandbox.checkpoint(name, "last");
    let saved = Checkpoint::load(&last).unwrap().standing.position;
    assert!(saved.round < 2, "{saved:?}");
    sandbox.run(&format!("train --resume {name}")).succeeded();
    let ended = Checkpoint::load(&last).unwrap();
    assert_eq!(ended.standing.position.round, 2);
    assert_eq!(sandbox.losses(name).len(), 2 * EPOCHS);
}

/// A signal to the launcher, or to one of its processes, ends all within seconds: interrupted, all
/// save together, and it is said once. The run goes on from its last checkpoint.
fn end_together(
    sandbox: &Sandbox,
    launched: Launcher,
    to_launcher: bool,
    name: &str,
) -> Option<Ran> {
    let run = format!("{name}-{to_launcher}");
    let running = long_run(sandbox, &run, launched)?;
    signal(if to_launcher { running.id() } else { follower(&running) }, name);
    let ended = ends(running);
    if name == "INT" {
        assert_eq!(ended.stderr.matches("stopped at").count(), 1, "{ended:?}");
        assert!(!ended.stderr.contains("error: "), "{ended:?}");
    }
    goes_on(sandbox, &run);
    Some(ended)
}

/// `anchorhood` with these arguments as two processes; nothing where that cannot be.
type Launcher = fn(&Sandbox, &str) -> Option<Command>;

/// The same as so many processes of `mpirun`.
fn launched(sandbox: &Sandbox, ranks: usize, args: &str) -> Option<Command> {
    let mut mpirun = mpirun(ranks)?;
    let program = sandbox.command(args);
    mpirun.arg(program.get_program()).args(program.get_args());
    mpirun.current_dir(sandbox.path(""));
    mpirun.env("ANCHORHOOD_CACHE", sandbox.path("cache"));
    Some(mpirun)
}

fn train(sandbox: &Sandbox, ranks: usize, more: &str) -> Option<Ran> {
    launched(sandbox, ranks, &train_args(more)).map(|mut command| Ran::of(&mut command))
}

/// The same run as one process's, but for the order of sums; it goes on with one, and the reverse.
#[test]
#[ignore = "long: needs mpirun"]
fn two_processes_train_what_one_trains() {
    let sandbox = trained(AS_ONE);
    let Some(two) = train(&sandbox, 2, &format!("--name two {AS_ONE}")) else {
        return;
    };
    two.succeeded();
    as_one_trains(&sandbox, "two");
    for (before, after) in [("two", 1), ("a", 2)] {
        let last = sandbox.checkpoint(before, "last");
        std::fs::copy(sandbox.checkpoint(before, "round-0"), &last).unwrap();
        let resume = format!("train --resume {before}");
        Ran::of(&mut launched(&sandbox, after, &resume).unwrap()).succeeded();
        let ended = Checkpoint::load(&last).unwrap();
        assert_eq!(ended.standing.position.round, 2);
        assert_eq!(ended.memory().map(|(rows, dim)| rows.len() / dim), Some(48));
    }
}

/// One sentence, once.
#[test]
#[ignore = "long: needs mpirun"]
fn what_is_wrong_is_said_once() {
    let sandbox = Sandbox::new();
    let Some(ran) = train(&sandbox, 3, "--name uneven") else {
        return;
    };
    ran.failed(2, "a batch of 16 pictures; --batch 15 would do");
    assert!(!sandbox.path("runs/uneven").exists());
    let mut several = launched(&sandbox, 2, "neighbours . a.png").unwrap();
    Ran::of(&mut several).failed(2, "work for one process");
}

/// Ctrl-C at the launcher, a signal to any one process, and one that is killed.
#[test]
#[ignore = "long: needs mpirun"]
fn processes_of_mpirun_end_together() {
    let sandbox = Sandbox::new();
    let mpirun: Launcher = |sandbox, args| launched(sandbox, 2, args);
    for (to_launcher, signal) in [(true, "INT"), (false, "INT"), (false, "KILL")] {
        if end_together(&sandbox, mpirun, to_launcher, signal).is_none() {
            return;
        }
    }
}

/// A disk that is full where the first process writes, here by a limit on the size of its files:
/// one sentence, and what was saved stays.
#[test]
#[ignore = "long: needs mpirun"]
fn a_full_disk_stops_all_and_the_run_goes_on() {
    let sandbox = trained("");
    let file = |name: &str| sandbox.checkpoint("a", name);
    std::fs::copy(file("round-0"), file("last")).unwrap();
    let Some(mut mpirun) = mpirun(1) else {
        return;
    };
    let program = sandbox.command("train --resume a");
    let program: Vec<_> =
        std::iter::once(program.get_program()).chain(program.get_args()).collect();
    let limited = r#"trap "" XFSZ; ulimit -f 40; exec "$0" "$@""#;
    mpirun.args(["sh", "-c", limited]).args(&program).args([":", "-n", "1"]).args(&program);
    mpirun.current_dir(sandbox.path(""));
    mpirun.env("OMPI_MCA_btl", "self,tcp"); // shared memory is a file, too
    mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = ends(mpirun.spawn().unwrap());
    ended.failed(1, "cannot write the checkpoint; The one before is kept");
    assert_eq!(Checkpoint::load(&file("last")).unwrap().standing.position.round, 1);
    sandbox.run("train --resume a").succeeded();
    assert_eq!(Checkpoint::load(&file("last")).unwrap().standing.position.round, 2);
}

/// A process that never begins is named after a while.
#[test]
#[ignore = "long: needs mpirun"]
fn a_rank_that_never_comes_is_named() {
    let sandbox = Sandbox::new();
    let Some(mut mpirun) = mpirun(1) else {
        return;
    };
    let program = sandbox.command(&train_args(""));
    mpirun.arg(program.get_program()).args(program.get_args());
    mpirun.args([":", "-n", "1", "sleep", "60"]);
    mpirun.current_dir(sandbox.path("")).env("ANCHORHOOD_JOIN_SECONDS", "1");
    mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = ends(mpirun.spawn().unwrap());
    let who =
        if cfg!(target_os = "linux") { "rank 1 never came" } else { "not all ranks have come" };
    ended.failed(1, &format!("{who}; rank 0 has waited 1 s for all 2"));
}

/// By the first one's clock, all train as long.
#[test]
#[ignore = "long: needs mpirun"]
fn minutes_are_those_of_all_processes() {
    let sandbox = Sandbox::new();
    let Some(ran) = train(&sandbox, 2, "--name short --minutes 0.3") else {
        return;
    };
    ran.succeeded();
    assert!(!sandbox.losses("short").is_empty());
}

/// Of processes that the program started: its signals are passed on; one that is killed ends all.
#[test]
#[ignore = "long: a campaign of kills"]
fn processes_that_the_program_started_end_together() {
    let sandbox = Sandbox::new();
    let own: Launcher = |sandbox, args| Some(started(sandbox, args));
    let ended = end_together(&sandbox, own, true, "INT").unwrap();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let ended = end_together(&sandbox, own, false, "KILL").unwrap();
    ended.failed(128 + 9, "rank 1 is gone");
}
