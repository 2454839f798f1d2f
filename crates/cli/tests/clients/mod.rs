//! Other people's programs, where they are installed: a Python with the modules that a test asks for.

use std::path::Path;
use std::process::Command;

/// Runs a script of the crate's `tests/clients` with a Python that has `modules`, and what lies beside this file; says so and
/// gives nothing where there is none. A script that fails fails the test.
pub fn python(script: &str, modules: &[&str], args: &[&Path]) -> Option<String> {
    let named = std::env::var("ANCHORHOOD_PYTHON").ok();
    let python = named.unwrap_or_else(|| "python3".into());
    let import = format!("import {}", modules.join(", "));
    let tried = Command::new(&python).args(["-c", &import]).output();
    if !tried.is_ok_and(|t| t.status.success()) {
        println!("skipped: {python} has not all of {}", modules.join(", "));
        return None;
    }
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
    Some(stdout)
}
