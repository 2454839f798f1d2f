//! One run, several processes that the program starts itself.
#![cfg(unix)]

use std::process::Command;

use crate::common::{Ran, Sandbox, train_args, trained};
use crate::folders;

/// The program starts two processes itself.
pub fn started(sandbox: &Sandbox, args: &str) -> Command {
    let mut command = sandbox.command(args);
    command.env("ANCHORHOOD_PROCESSES", "2");
    command
}

/// Settings of a run that several processes train as one does.
pub const AS_ONE: &str = "--sync-norm true --batch 48";

/// A run is the same as one process's, but for the order of sums.
pub fn as_one_trains(sandbox: &Sandbox, run: &str) {
    let (one, two) = (trained(AS_ONE).losses("a"), sandbox.losses(run));
    assert_eq!(one.len(), two.len());
    assert!((one[0] - two[0]).abs() < 1e-5 * one[0], "{one:?} {two:?}");
}

/// Without any launcher: the same run, told once; what is wrong is said once, with its exit code.
#[test]
fn the_program_starts_processes_itself() {
    let sandbox = Sandbox::new();
    let train = |more: &str| Ran::of(&mut started(&sandbox, &train_args(more)));
    let two = train(&format!("--name two {AS_ONE}")).succeeded();
    let told = two.stderr.matches("2 processes train together").count();
    assert_eq!(told, 1, "{two:?}");
    assert_eq!(two.stdout.matches("The model is").count(), 1, "{two:?}");
    as_one_trains(&sandbox, "two");
    train("--batch 15").failed(2, "a batch of 15 pictures");
}

/// GPUs that are not there, by a sentence.
#[test]
fn gpus_that_are_not_there_are_named() {
    let sandbox = Sandbox::new();
    for device in ["cuda", "cuda:0,61", "cuda:all"] {
        let mut command = sandbox.command(&train_args(&format!("--device {device}")));
        // None is shown, whatever the machine has.
        let ran = Ran::of(command.env("CUDA_VISIBLE_DEVICES", ""));
        let code = ran.code.unwrap();
        assert!([1, 2].contains(&code), "{ran:?}");
        ran.failed(code, "");
        assert!(!sandbox.path("runs").exists(), "no run is left behind");
    }
}

/// A shard may be embedded under any launcher; a whole folder is work for one process.
#[test]
fn one_process_for_what_is_not_training() {
    let sandbox = trained("");
    folders::fill(&sandbox.path("pictures"), 4);
    let launched = |more: &str| {
        let mut command = sandbox.command(&format!("embed --model a pictures -o v.csv {more}"));
        let command = command.env("SLURM_PROCID", "1").env("SLURM_LOCALID", "1");
        Ran::of(command.env("SLURM_STEP_NUM_TASKS", "2"))
    };
    launched("--shard 1/2").succeeded();
    launched("").failed(2, "embed; --shard");
}
