//! A test that `cargo test` ignores is run by another part of .ci/run: one that takes long by the
//! part of modules called `long`, any other by that on a GPU.

use std::fs;
use std::path::Path;

use crate::tree::{root, sources};

/// What is wrong with how a source ignores tests.
fn complaints(file: &Path, code: &str) -> Vec<String> {
    let of_long = file.with_extension("").iter().any(|part| part == "long");
    let mut inside = of_long;
    let mut wrong = vec![];
    for line in code.lines().map(str::trim) {
        inside |= line == "mod long {";
        if line.starts_with("#[ignore") && line.starts_with("#[ignore = \"long: ") != inside {
            wrong.push(format!("{}: {line}", file.display()));
        }
    }
    wrong
}

#[test]
fn every_ignored_test_belongs_to_a_part() {
    let files = sources(&root().join("crates"));
    let wrong = files.iter().flat_map(|f| complaints(f, &fs::read_to_string(f).unwrap()));
    let wrong: Vec<String> = wrong.collect();
    assert!(
        files.len() > 100 && wrong.is_empty(),
        "see docs/reference/testing.md:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_test_that_no_part_would_run_is_noticed() {
    let (long, gpu) = ("#[ignore = \"long: slow\"]\n", "#[ignore = \"needs a GPU\"]\n");
    let count = |file: &str, code: &str| complaints(Path::new(file), code).len();
    assert_eq!(count("tests/it/long/a.rs", long) + count("tests/it/long.rs", long), 0);
    assert_eq!(count("src/a.rs", &format!("{gpu}mod long {{\n{long}}}")), 0);
    assert_eq!(count("src/a.rs", long), 1);
    assert_eq!(count("tests/it/long/a.rs", gpu), 1);
}
