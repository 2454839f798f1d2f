//! What does a reader do with a file that somebody wrote to harm it?
//!
//! Every reader of the workspace has a [`Target`]: a body that gives it bytes and then does with
//! the result what the program does, and seeds, small whole files. A body may do anything but
//! panic, hang, or take memory without bound; where what was read can be written, it checks that it
//! is read back the same. Checksums are [repaired](repair) before a second reading, so that
//! mutations reach what lies behind them.
//!
//! The bodies are here once. `tests/mutations.rs` runs each over its seeds and [mutations](mutate)
//! of them; the folder `fuzz/` runs the same under libFuzzer, where there is a nightly toolchain.

#![forbid(unsafe_code)]

pub mod mutate;
pub mod repair;
mod scratch;
mod targets;

/// One reader under attack.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it reads.
    pub name: &'static str,
    /// Gives the reader some bytes; nothing where it did not take them. Panics where it broke a
    /// promise.
    pub read: fn(&[u8]) -> Option<()>,
    /// The same bytes with right checksums and lengths, where the format has some.
    pub repair: fn(&[u8]) -> Option<Vec<u8>>,
    /// Whole files, and those that once did harm.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many of them it takes; the others are what once did harm. Not said of requests: a
    /// connection may be closed before its answer is read.
    pub taken: Option<usize>,
}

impl Target {
    /// Reads the bytes as they are, and with their checksums repaired.
    pub fn run(&self, bytes: &[u8]) {
        (self.read)(bytes);
        if let Some(repaired) = (self.repair)(bytes).filter(|repaired| repaired != bytes) {
            (self.read)(&repaired);
        }
    }
}

/// Every reader.
pub const TARGETS: &[Target] = targets::ALL;

/// Runs the target of that name; there must be one.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    target.expect("a target of that name").run(bytes);
}
