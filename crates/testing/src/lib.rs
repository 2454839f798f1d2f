//! Which tests did not run, and why?
//!
//! A test that lacks another program or a data set passes, but says so through [`skip`]. Where
//! `ANCHORHOOD_SKIPS` names a file, each such test also adds a line to it, the test's name, a tab
//! and the reason, so that whoever runs all tests can count them. Tests that need a GPU are not
//! skipped: they are `#[ignore = "needs an NVIDIA GPU"]`, and fail where they are asked for
//! (`--ignored`) without one. Nor are long ones: they are `#[ignore = "long: WHY"]`, in a module
//! called `long`.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// Says that the test on this thread does not run, or not in full, and counts it.
///
/// Panics where it cannot be counted although it should be: a skip that nobody sees is a lie.
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
    if let Some(file) = std::env::var_os("ANCHORHOOD_SKIPS") {
        let counted = record(Path::new(&file), &test_name(), reason);
        counted.expect("the file that ANCHORHOOD_SKIPS names takes a line");
    }
}

/// Copies a folder of fixtures, with all that is in it, to where a test may damage it.
///
/// Panics where that fails.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a new folder");
    for entry in std::fs::read_dir(from).expect("a folder of fixtures") {
        let from = entry.expect("an entry of it").path();
        let to = to.join(from.file_name().expect("a name"));
        match from.is_dir() {
            true => copy_folder(&from, &to),
            false => drop(std::fs::copy(&from, &to).expect("a file of it")),
        }
    }
}

/// An environment variable that a test needs; skips where it is not set.
pub fn variable(name: &str, meaning: &str) -> Option<OsString> {
    let value = std::env::var_os(name);
    if value.is_none() {
        skip(&format!("{name} does not name {meaning}"));
    }
    value
}

/// A Python that has these modules: what `ANCHORHOOD_PYTHON` names, else `python3`; skips where it
/// has not all of them.
pub fn python_with(modules: &[&str]) -> Option<OsString> {
    let python = std::env::var_os("ANCHORHOOD_PYTHON").unwrap_or_else(|| "python3".into());
    let import = format!("import {}", modules.join(", "));
    let tried = Command::new(&python).args(["-c", &import]).output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return Some(python);
    }
    skip(&format!("no Python with {}", modules.join(", ")));
    None
}

/// `mpirun` for so many processes, of which there may be more than cores; skips where there is
/// none.
pub fn mpirun(ranks: usize) -> Option<Command> {
    if Command::new("mpirun").arg("--version").output().is_err() {
        skip("no mpirun");
        return None;
    }
    let mut mpirun = Command::new("mpirun");
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Messages stay on this machine, and waiting processes let others work.
    mpirun.env("OMPI_MCA_btl", "self,vader");
    mpirun.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    mpirun.env("OMPI_MCA_mpi_yield_when_idle", "1");
    mpirun.args(["-n", &ranks.to_string()]);
    Some(mpirun)
}

/// Compares a page of the documents with what it is made of; `ANCHORHOOD_WRITE_DOCS=1` writes it.
///
/// Panics where the page is stale.
pub fn check_generated(page: &str, text: &str) {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference")).join(page);
    if std::env::var_os("ANCHORHOOD_WRITE_DOCS").is_some() {
        std::fs::write(&page, text).expect("the documents can be written");
    }
    let fresh = std::fs::read_to_string(&page).is_ok_and(|committed| committed == text);
    assert!(fresh, "{} is stale: run this test with ANCHORHOOD_WRITE_DOCS=1", page.display());
}

/// The arguments by which a binary of tests runs one of them alone, ignored or not.
pub fn only(test: &str) -> [&str; 6] {
    [test, "--exact", "--include-ignored", "--nocapture", "--test-threads", "1"]
}

/// Runs a test of this binary as so many processes, each of which finds itself to be one of
/// several; skips where there is no `mpirun`. Panics with what they said where one of them fails.
pub fn as_ranks(ranks: usize, test: &str) {
    let Some(mut mpirun) = mpirun(ranks) else {
        return;
    };
    let binary = std::env::current_exe().expect("a test has a binary");
    let ended = mpirun.arg(binary).args(only(test)).output().expect("mpirun can be started");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&ended.stdout), said(&ended.stderr));
    assert!(ended.status.success(), "{ranks} ranks: {out}\n{err}");
    let passed = out.matches("1 passed").count();
    assert_eq!(passed, ranks, "tests that ran: {out}\n{err}");
}

/// The test's binary and its name, which is that of its thread.
fn test_name() -> String {
    let binary = std::env::current_exe().unwrap_or_default();
    let binary = binary.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash.
    let binary = binary.rsplit_once('-').map_or(&*binary, |(name, _)| name);
    let thread = std::thread::current();
    format!("{binary}::{}", thread.name().unwrap_or("?"))
}

/// Adds a line, in one write, so that tests beside each other do not mix theirs.
fn record(file: &Path, test: &str, reason: &str) -> io::Result<()> {
    let reason = reason.replace(['\n', '\t'], " ");
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("{test}\t{reason}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_lines_of_a_file() {
        let name = format!("anchorhood-skips-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        record(&file, "a::b", "no Python").unwrap();
        record(&file, "a::c", "two\nlines").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(text, "a::b\tno Python\na::c\ttwo lines\n");
        assert!(record(Path::new("/no/such/folder/file"), "a", "b").is_err());
    }

    #[test]
    fn a_test_knows_its_name() {
        let name = test_name();
        let expected = "anchorhood_testing::tests::a_test_knows_its_name";
        // With one thread for all tests, theirs is the program's.
        assert!(name == expected || name == "anchorhood_testing::main", "{name}");
    }
}
