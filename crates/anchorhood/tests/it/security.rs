//! SECURITY.md says which crates have `unsafe` code, and the sources agree; all others forbid it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::tree::{crates, root, sources};

/// The crates that the sentence on `unsafe` code links to.
fn said(document: &str) -> BTreeSet<String> {
    let (_, after) = document.split_once("`unsafe` code is in").expect("the sentence");
    let (sentence, _) = after.split_once("The others forbid it").expect("its end");
    let links = sentence.split("](crates/").skip(1);
    links.filter_map(|l| Some(l.split_once(')')?.0.into())).collect()
}

/// The crates that do not have the compiler forbid it, in the library and in the program.
fn found() -> BTreeSet<String> {
    let forbids = |path: &PathBuf| {
        let code = fs::read_to_string(path).unwrap();
        code.lines().any(|line| line == "#![forbid(unsafe_code)]")
    };
    let allow = crates().into_iter().filter(|(_, folder)| {
        let roots = ["lib.rs", "main.rs"].map(|file| folder.join("src").join(file));
        let mut roots = roots.iter().filter(|path| path.exists()).peekable();
        assert!(roots.peek().is_some(), "{}: no root", folder.display());
        !roots.all(forbids)
    });
    allow.map(|(name, _)| name).collect()
}

#[test]
fn the_document_names_the_crates_with_unsafe_code() {
    let document = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let found = found();
    assert_eq!(said(&document), found);
    // A crate that has none could forbid it.
    for name in found {
        let sources = sources(&root().join("crates").join(&name).join("src"));
        let code = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let has = sources.iter().any(|path| code(path).contains("unsafe {"));
        assert!(has, "{name} has no unsafe code, and does not forbid it");
    }
}
