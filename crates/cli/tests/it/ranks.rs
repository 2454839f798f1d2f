//! `mpirun anchorhood train`: one run, several processes.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anchorhood::train::Checkpoint;
use anchorhood_testing::mpirun;

use crate::common::{Ran, Sandbox, losses, train_args};
use crate::folders;

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
    let args = ["neighbours", ".", "a.png"].map(String::from);
    let several = launched(&sandbox, 2, &args).unwrap().output().unwrap();
    Ran::from(several).failed(2, &["work for one process"]);
}

fn wait_until(what: &str, child: &mut Child, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a program says of processes.
fn asked(program: &str, args: &[&str]) -> String {
    let said = Command::new(program).args(args).output().unwrap();
    String::from_utf8(said.stdout).unwrap()
}

/// The launcher's process that is rank 1, by its environment: numbers of processes begin anew some
/// day, and then the second has the lower one.
fn follower(launcher: &Child) -> String {
    let children = asked("pgrep", &["-P", &launcher.id().to_string()]);
    let is_second = |child: &&str| {
        let said = asked("ps", &["eww", "-o", "command=", "-p", child]);
        let second = ["RANK=1", "OMPI_COMM_WORLD_RANK=1"];
        said.split_whitespace().any(|word| second.contains(&word))
    };
    let found = children.lines().find(is_second);
    found.expect("a process of rank 1").to_string()
}

/// Long enough to be interrupted, on two processes, begun and with a first checkpoint; nothing
/// where there is no `mpirun`.
fn long_run(sandbox: &Sandbox, name: &str) -> Option<Child> {
    long_run_by(sandbox, name, |args| launched(sandbox, 2, args))
}

/// The same, by any launcher.
fn long_run_by(
    sandbox: &Sandbox,
    name: &str,
    launched: impl Fn(&[String]) -> Option<Command>,
) -> Option<Child> {
    let epochs = EPOCHS.to_string();
    let long = ["--name", name, "--epochs", &epochs, "--evaluate-every", &epochs];
    let mut command = launched(&train_args(&long))?;
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let last = sandbox.path(&format!("runs/{name}/checkpoints/last.safetensors"));
    wait_until("first checkpoint", &mut running, || last.exists());
    Some(running)
}

fn signal(which: &str, process: &str) {
    let sent = Command::new("kill").args([which, process]).status();
    assert!(sent.unwrap().success());
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
    let run = sandbox.path(&format!("runs/{name}"));
    let last = run.join("checkpoints/last.safetensors");
    let saved = Checkpoint::load(&last).unwrap().standing.position;
    assert!(saved.round < 2, "{saved:?}");
    sandbox.run(&["train", "--resume", name]).succeeded();
    let ended = Checkpoint::load(&last).unwrap();
    assert_eq!(ended.standing.position.round, 2);
    assert_eq!(losses(&run).len(), 2 * EPOCHS);
}

/// A process that is killed ends all within seconds, and the run goes on from its last checkpoint.
#[test]
fn a_killed_process_stops_all_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    let Some(running) = long_run(&sandbox, "long") else {
        return;
    };
    signal("-KILL", &follower(&running));
    ends(running);
    goes_on(&sandbox, "long");
}

/// Ctrl-C at the launcher, or a signal to any one process: all save together, and it is said once.
#[test]
fn an_interrupted_run_is_saved_by_all() {
    let sandbox = Sandbox::new();
    for name in ["launcher", "process"] {
        let Some(running) = long_run(&sandbox, name) else {
            return;
        };
        let whom = match name {
            "launcher" => running.id().to_string(),
            _ => follower(&running),
        };
        signal("-INT", &whom);
        let ended = ends(running);
        assert_eq!(ended.stderr.matches("stopped at").count(), 1, "{ended:?}");
        assert!(!ended.stderr.contains("error: "), "{ended:?}");
        goes_on(&sandbox, name);
    }
}

/// A disk that is full where the first process writes, here by a limit on the size of its files:
/// one sentence, and what was saved stays.
#[test]
fn a_full_disk_stops_all_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "full"]).succeeded();
    let file = |name: &str| sandbox.path(&format!("runs/full/checkpoints/{name}.safetensors"));
    std::fs::copy(file("round-0"), file("last")).unwrap();
    let Some(mut mpirun) = mpirun(1) else {
        return;
    };
    let program = sandbox.command(&["train", "--resume", "full"]);
    let program: Vec<_> =
        std::iter::once(program.get_program()).chain(program.get_args()).collect();
    let limited = r#"trap "" XFSZ; ulimit -f 40; exec "$0" "$@""#;
    mpirun.args(["sh", "-c", limited]).args(&program).args([":", "-n", "1"]).args(&program);
    mpirun.current_dir(sandbox.path(""));
    mpirun.env("OMPI_MCA_btl", "self,tcp"); // shared memory is a file, too
    mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = ends(mpirun.spawn().unwrap());
    let ended = ended.failed(1, &["cannot write the checkpoint", "The one before is kept"]);
    assert_eq!(ended.stderr.matches("error: ").count(), 1, "{ended:?}");
    assert_eq!(Checkpoint::load(&file("last")).unwrap().standing.position.round, 1);
    sandbox.run(&["train", "--resume", "full"]).succeeded();
    assert_eq!(Checkpoint::load(&file("last")).unwrap().standing.position.round, 2);
}

/// A process that never begins is named after a while.
#[test]
fn a_rank_that_never_comes_is_named() {
    let sandbox = Sandbox::new();
    let Some(mut mpirun) = mpirun(1) else {
        return;
    };
    let program = sandbox.command(&train_args(&[]));
    mpirun.arg(program.get_program()).args(program.get_args());
    mpirun.args([":", "-n", "1", "sleep", "60"]);
    mpirun.current_dir(sandbox.path("")).env("ANCHORHOOD_JOIN_SECONDS", "1");
    mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = ends(mpirun.spawn().unwrap());
    let who =
        if cfg!(target_os = "linux") { "rank 1 never came" } else { "not all ranks have come" };
    ended.failed(1, &[who, "rank 0 has waited 1 s for all 2"]);
}

/// By the first one's clock, all train as long.
#[test]
fn minutes_are_those_of_all_processes() {
    let sandbox = Sandbox::new();
    let mut args = train_args(&["--name", "short", "--minutes", "0.1"]);
    let epochs = args.iter().position(|a| a == "--epochs").unwrap();
    args.drain(epochs..epochs + 2);
    let Some(mut command) = launched(&sandbox, 2, &args) else {
        return;
    };
    Ran::from(command.output().unwrap()).succeeded();
    assert!(!losses(&sandbox.path("runs/short")).is_empty());
}

/// The program starts two processes itself.
fn started(sandbox: &Sandbox, args: &[String]) -> Command {
    let mut command = sandbox.command(args);
    command.env("ANCHORHOOD_PROCESSES", "2");
    command
}

/// Without any launcher: the same run, told once.
#[test]
fn the_program_starts_processes_itself() {
    let sandbox = Sandbox::new();
    let settings = ["--sync-norm", "true", "--batch", "48"];
    let named = |name| [&["--name", name], &settings[..]].concat();
    let two = started(&sandbox, &train_args(&named("two"))).output();
    let two = Ran::from(two.unwrap()).succeeded();
    let told = two.stderr.matches("2 processes train together").count();
    assert_eq!(told, 1, "{two:?}");
    assert_eq!(two.stdout.matches("The model is").count(), 1, "{two:?}");
    sandbox.train(&named("one")).succeeded();
    let of = |name: &str| losses(&sandbox.path(&format!("runs/{name}")));
    let (one, two) = (of("one"), of("two"));
    assert_eq!(one.len(), two.len());
    assert!((one[0] - two[0]).abs() < 1e-5 * one[0], "{one:?} {two:?}");
}

/// Its signals are passed on; one that is killed ends all; what is wrong is said once, with its
/// exit code.
#[test]
fn processes_that_the_program_started_end_together() {
    let sandbox = Sandbox::new();
    let long = |name| long_run_by(&sandbox, name, |args| Some(started(&sandbox, args))).unwrap();
    let running = long("interrupted");
    signal("-INT", &running.id().to_string());
    let ended = ends(running);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(ended.stderr.matches("stopped at").count(), 1, "{ended:?}");
    goes_on(&sandbox, "interrupted");
    let running = long("killed");
    signal("-KILL", &follower(&running));
    let ended = ends(running).failed(128 + 9, &["rank 1 is gone"]);
    assert_eq!(ended.stderr.matches("error: ").count(), 1, "{ended:?}");
    goes_on(&sandbox, "killed");
    let uneven = started(&sandbox, &train_args(&["--batch", "15"])).output();
    let said = Ran::from(uneven.unwrap()).failed(2, &["a batch of 15 pictures"]);
    assert_eq!(said.stderr.matches("error: ").count(), 1, "{said:?}");
}

/// GPUs that are not there, by a sentence.
#[test]
fn gpus_that_are_not_there_are_named() {
    let sandbox = Sandbox::new();
    for device in ["cuda:0,61", "cuda:all"] {
        let mut command = sandbox.command(&train_args(&["--device", device]));
        // None is shown, whatever the machine has.
        let ran = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        let ran = Ran::from(ran);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran:?}");
    }
}

/// Commands that use one device refuse several; a shard may be embedded under any launcher.
#[test]
fn one_device_for_what_is_not_training() {
    let sandbox = folders::trained(&[]);
    folders::fill(&sandbox.path("pictures"), 4);
    for device in ["cuda:0,1", "cuda:all"] {
        let words = ["embed", "pictures", "-o", "v.csv", "--device", device];
        sandbox.run(&words).failed(2, &["--device", "--shard"]);
    }
    let words = ["embed", "--model", "a", "pictures", "-o", "v.csv"];
    let launched = |more: &[&str]| {
        let mut command = sandbox.command(&[&words[..], more].concat());
        let command = command.env("SLURM_PROCID", "1").env("SLURM_LOCALID", "1");
        Ran::from(command.env("SLURM_STEP_NUM_TASKS", "2").output().unwrap())
    };
    launched(&["--shard", "1/2"]).succeeded();
    launched(&[]).failed(2, &["embed", "--shard"]);
}
