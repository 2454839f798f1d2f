//! Runs the real program in a temporary folder, as a user would.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Settings that make a run take a moment: few small pictures, a narrow network, an epoch a round.
pub const TINY: &[&str] = &[
    "--method",
    "and",
    "--shapes-train",
    "48",
    "--shapes-test",
    "16",
    "--size",
    "16",
    "--width",
    "2",
    "--features",
    "8",
    "--batch",
    "16",
    "--rounds",
    "1",
    "--epochs",
    "1",
    "--threads",
    "1",
];

/// A folder of its own, gone when the test ends.
pub struct Sandbox(tempfile::TempDir);

impl Sandbox {
    pub fn new() -> Self {
        Sandbox(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.0.path().join(inside)
    }

    /// The program, not started yet, in this folder.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anchorhood"));
        command.args(args.iter().map(|a| a.as_ref())).current_dir(self.0.path());
        command
            .env("ANCHORHOOD_CACHE", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("user-data"))
            .env_remove("ANCHORHOOD_CIFAR10")
            .env_remove("ANCHORHOOD_CIFAR100");
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Ran {
        Ran::from(self.command(args).output().expect("the program starts"))
    }

    /// `train` with tiny settings and more.
    pub fn train(&self, more: &[&str]) -> Ran {
        self.run(&train_args(more))
    }

    /// The same, left running.
    pub fn start(&self, more: &[&str]) -> Child {
        let mut command = self.command(&train_args(more));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }
}

/// `train` with tiny settings and more.
pub fn train_args(more: &[&str]) -> Vec<String> {
    // A flag given again would be an error, so one given in `more` is left out of the tiny
    // settings.
    let tiny = TINY.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let args = ["train"].iter().chain(more).chain(tiny.flatten());
    args.map(|a| a.to_string()).collect()
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// It ended well.
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// It ended with this code and one sentence that holds all of these, without a trace of a
    /// panic.
    pub fn failed(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        let error = self.stderr.lines().find(|l| l.starts_with("error: "));
        let error = error.unwrap_or_else(|| panic!("no error line: {self:#?}"));
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// stderr holds all of these.
    pub fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in: {}", self.stderr);
        }
        self
    }
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The bits of all that training changes.
pub fn bits(checkpoint: &Path) -> Vec<u32> {
    let c = anchorhood::train::Checkpoint::load(checkpoint).expect("a checkpoint");
    let tensors =
        c.weights.iter().chain(c.slots.iter().flat_map(|s| &s.tensors)).map(|t| &t.values);
    let memory = c.memory().map_or(&[][..], |(rows, _)| rows);
    let all = tensors.flatten().chain(memory);
    all.map(|v| v.to_bits()).collect()
}

/// The epoch losses a run told, exactly as written.
pub fn losses(run: &Path) -> Vec<f64> {
    let log = anchorhood::report::read_metrics(&run.join("metrics.jsonl")).expect("metrics");
    let loss = |e: &anchorhood::train::Event| match e {
        anchorhood::train::Event::EpochEnded(e) => Some(e.loss),
        _ => None,
    };
    log.events.iter().filter_map(loss).collect()
}
