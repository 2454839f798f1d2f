//! Runs the real program in a temporary folder, as a user would.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anchorhood::research::{Checkpoint, RunDir};
use anchorhood::{Event, RunConfig};
use anchorhood_report::read_metrics;

/// Settings that make a run take a moment: few small pictures, a narrow network, an epoch a round.
const TINY: &str = "--method and --shapes-train 48 --shapes-test 16 --size 16 --width 2 \
    --batch 16 --rounds 1 --threads 1";

/// Waits until it is so, for two minutes: other tests take their time too.
#[track_caller]
pub fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let clock = Instant::now();
    while !so() {
        assert!(clock.elapsed() < Duration::from_secs(120), "no {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a process a signal, such as INT.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Makes a pipe that has a name; skips where there are none.
pub fn pipe(path: &Path) -> bool {
    let made = Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success());
    if !made {
        anchorhood_testing::skip("mkfifo is not here");
    }
    made
}

/// A folder of its own, gone when the test ends.
pub struct Sandbox(tempfile::TempDir);

impl Sandbox {
    pub fn new() -> Self {
        Sandbox(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.0.path().join(inside)
    }

    pub fn read(&self, inside: &str) -> Vec<u8> {
        let path = self.path(inside);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn text(&self, inside: &str) -> String {
        String::from_utf8(self.read(inside)).expect("a text")
    }

    /// Writes a file, and the folders it lies in.
    pub fn write(&self, inside: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The program with these words, divided by spaces; not started yet, in this folder.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anchorhood"));
        command.args(words.split_whitespace()).current_dir(self.0.path());
        command
            .env("ANCHORHOOD_CACHE", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("user-data"))
            .env_remove("ANCHORHOOD_CIFAR10")
            .env_remove("ANCHORHOOD_CIFAR100")
            .env_remove("ANCHORHOOD_TOKEN");
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, words: &str) -> Ran {
        Ran::of(&mut self.command(words))
    }

    /// Runs it, which must end well, and gives its standard output.
    #[track_caller]
    pub fn said(&self, words: &str) -> String {
        self.run(words).succeeded().stdout
    }

    /// The same, each line of which is JSON.
    #[track_caller]
    pub fn json(&self, words: &str) -> Vec<serde_json::Value> {
        self.run(words).succeeded().json()
    }

    /// `train` with tiny settings and more.
    pub fn train(&self, more: &str) -> Ran {
        self.run(&train_args(more))
    }

    /// The same, left running.
    pub fn start(&self, more: &str) -> Child {
        let mut command = self.command(&train_args(more));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    pub fn run_folder(&self, run: &str) -> PathBuf {
        self.path("runs").join(run)
    }

    /// A checkpoint of a run, by its name.
    pub fn checkpoint(&self, run: &str, name: &str) -> PathBuf {
        self.run_folder(run).join(format!("checkpoints/{name}.safetensors"))
    }

    pub fn config(&self, run: &str) -> RunConfig {
        RunDir::config_of(&self.run_folder(run)).expect("a run")
    }

    /// The bits of all that training changes, at the end of a run.
    pub fn bits(&self, run: &str) -> Vec<u32> {
        bits(&self.checkpoint(run, "last"))
    }

    /// The epoch losses a run told, exactly as written.
    pub fn losses(&self, run: &str) -> Vec<f64> {
        let log = read_metrics(&self.run_folder(run).join("metrics.jsonl")).expect("metrics");
        let loss = |e: &Event| match e {
            Event::EpochEnded(e) => Some(e.loss),
            _ => None,
        };
        log.events.iter().filter_map(loss).collect()
    }
}

/// `train` with tiny settings and more, but for those that cannot go with what is given.
pub fn train_args(more: &str) -> String {
    let given = |flag: &str| more.split_whitespace().any(|word| word == flag);
    let features = if given("--method") { "" } else { "--features 8" };
    let epochs = if given("--minutes") { "" } else { "--epochs 1" };
    with_settings(&format!("train {more}"), &format!("{TINY} {features} {epochs}"))
}

/// A command line with those settings that it does not give itself: twice would be an error.
pub fn with_settings(line: &str, settings: &str) -> String {
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let given = |flag: &str| line.split_whitespace().any(|word| word == flag);
    let open = settings.chunks(2).filter(|pair| !given(pair[0]));
    open.fold(line.into(), |line, pair| format!("{line} {}", pair.join(" ")))
}

/// A sandbox with a tiny run called `a`. Runs of the same settings are trained once, and copied.
pub fn trained(more: &str) -> Sandbox {
    type Files = BTreeMap<PathBuf, Vec<u8>>;
    static RUNS: Mutex<BTreeMap<String, Arc<OnceLock<Files>>>> = Mutex::new(BTreeMap::new());
    let run = Arc::clone(RUNS.lock().unwrap().entry(more.into()).or_default());
    let files = run.get_or_init(|| {
        let sandbox = Sandbox::new();
        sandbox.train(&format!("--name a --quiet {more}")).succeeded();
        files_below(&sandbox.path("runs"))
    });
    let sandbox = Sandbox::new();
    for (path, bytes) in files {
        sandbox.write(&format!("runs/{}", path.display()), bytes);
    }
    sandbox
}

/// Every file below a folder, by its path from there, and its bytes; links as what they lead to.
pub fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.insert(path.strip_prefix(folder).unwrap().into(), fs::read(path).unwrap());
            }
        }
    }
    files
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
    /// What a program does until its end.
    pub fn of(program: &mut Command) -> Ran {
        Ran::from(program.output().expect("the program starts"))
    }

    /// Its standard output, of which each line is JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<serde_json::Value> {
        let read = |l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"));
        self.stdout.lines().map(read).collect()
    }

    /// It ended well.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// It ended with this code and one sentence that holds all of these, which a `;` divides,
    /// without a trace of a panic.
    #[track_caller]
    pub fn failed(self, code: i32, parts: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        holds(self.error(), parts);
        self
    }

    /// The one error, and what belongs to it; without a trace of a panic.
    #[track_caller]
    pub fn error(&self) -> &str {
        let errors = self.stderr.lines().filter(|l| l.starts_with("error: ")).count();
        assert!(errors == 1 && !self.stderr.contains("panicked"), "{self:#?}");
        let (_, error) = self.stderr.split_once("error: ").expect("it was counted");
        error
    }

    /// stderr holds all of these, which a `;` divides.
    #[track_caller]
    pub fn says(self, parts: &str) -> Self {
        holds(&self.stderr, parts);
        self
    }

    /// stdout holds all of these, which a `;` divides.
    #[track_caller]
    pub fn prints(self, parts: &str) -> Self {
        holds(&self.stdout, parts);
        self
    }
}

/// A text holds all of these, which a `;` divides.
#[track_caller]
pub fn holds(text: &str, parts: &str) {
    for part in parts.split(';').map(|part| part.trim_matches(' ')) {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The bits of all that training changes.
pub fn bits(checkpoint: &Path) -> Vec<u32> {
    let c = Checkpoint::load(checkpoint).expect("a checkpoint");
    let tensors =
        c.weights.iter().chain(c.slots.iter().flat_map(|s| &s.tensors)).map(|t| &t.values);
    let memory = c.memory().map_or(&[][..], |(rows, _)| rows);
    let all = tensors.flatten().chain(memory);
    all.map(|v| v.to_bits()).collect()
}
