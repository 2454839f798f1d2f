//! Other people's programs, where they are installed: a Python with the modules that a test asks
//! for.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anchorhood_testing::{python_with, skip};

/// Runs a script of the crate's `tests/clients` with a Python that has `modules`, and what lies
/// beside this file; skips and gives nothing where there is none. A script that fails fails the
/// test.
pub fn python(script: &str, modules: &[&str], args: &[impl AsRef<OsStr>]) -> Option<String> {
    let python = python_with(modules)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/clients");
    let before = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let modules = std::iter::once(shared.into()).chain(std::env::split_paths(&before));
    let modules = std::env::join_paths(modules).expect("paths as they were given");
    let mut command = Command::new(&python);
    command.env("PYTHONPATH", modules);
    let output = command.arg(folder.join(script)).args(args).output();
    let output = output.expect("it started a moment ago");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}:\n{stdout}\n{stderr}");
    println!("{stdout}");
    // A script may find that more is missing than a module.
    for reason in stdout.lines().filter_map(|l| l.strip_prefix("skipped: ")) {
        skip(reason);
    }
    Some(stdout)
}
