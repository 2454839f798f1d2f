//! The library is small enough to be read: at most 80 names at its root, and 120 more for research.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::tree::crates;

const MOST_AT_THE_ROOT: usize = 80;
const MOST_FOR_RESEARCH: usize = 120;

/// What a module shows, and the modules among it.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    names: BTreeSet<String>,
    modules: BTreeSet<String>,
}

/// The names that a source's public items have: its own, and those that it shows of others. A glob
/// shows what nobody can count here, and is refused.
fn shown(text: &str) -> Shown {
    let code: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    assert!(!code.contains("doc(hidden)"), "what is hidden is reachable all the same");
    let mut shown = Shown::default();
    for item in format!("\n{code}").split("\npub ").skip(1) {
        let (kind, rest) = item.split_once(' ').unwrap();
        if kind != "use" {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
            let all = if kind == "mod" { &mut shown.modules } else { &mut shown.names };
            all.insert(rest[..end].into());
            continue;
        }
        let (path, _) = rest.split_once(';').unwrap();
        assert!(!path.contains('*'), "{path}");
        let list = match path.split_once('{') {
            Some((_, list)) => list.trim_end_matches('}'),
            None => path.rsplit("::").next().unwrap(),
        };
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let name = |name: &str| name.rsplit([' ', ':']).next().unwrap().to_string();
        shown.names.extend(names.map(name));
    }
    shown
}

/// The modules at the roots of all crates: one of these among the names would show all that is in
/// it.
fn modules() -> BTreeSet<String> {
    let roots = crates().into_values().map(|folder| folder.join("src/lib.rs"));
    roots.flat_map(|file| shown_modules(&fs::read_to_string(file).unwrap())).collect()
}

fn shown_modules(text: &str) -> Vec<String> {
    let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod "));
    modules.map(|name| name.trim_end_matches([';', '{', ' ']).to_string()).collect()
}

#[test]
fn the_library_shows_few_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (root, research) = (shown(&read("lib.rs")), shown(&read("research.rs")));
    assert_eq!(Vec::from_iter(root.modules), ["prelude", "research"]);
    assert!(research.modules.is_empty());
    let (here, there) = (root.names.len(), research.names.len());
    assert!((50..=MOST_AT_THE_ROOT).contains(&here), "{here} names at the root");
    assert!((50..=MOST_FOR_RESEARCH).contains(&there), "{there} names for research");
    let twice: Vec<&String> = root.names.intersection(&research.names).collect();
    assert!(twice.is_empty(), "in both: {twice:?}");
    let modules = modules();
    assert!(modules.len() > 10, "{modules:?}");
    let whole: Vec<&String> = root.names.union(&research.names).collect();
    let whole: Vec<&&String> = whole.iter().filter(|name| modules.contains(**name)).collect();
    assert!(whole.is_empty(), "modules, with all that is in them: {whole:?}");
}

#[test]
fn names_are_counted() {
    let text = "mod a;\npub mod b {\n    pub use c::D;\n}\nuse e::F;\n\
                pub use g::{\n    H, i as J,\n};\n\
                pub use k::L;\npub fn m<T>() {}\npub type N<'a> = &'a ();\n// pub use o::P;\n";
    let found = shown(text);
    assert_eq!(Vec::from_iter(found.names), ["H", "J", "L", "N", "m"]);
    assert_eq!(Vec::from_iter(found.modules), ["b"]);
    assert_eq!(shown_modules(text), ["b"]);
    let refused = |text: &str| std::panic::catch_unwind(|| shown(text)).is_err();
    assert!(refused("pub use a::*;\n") && refused("#[doc(hidden)]\npub fn a() {}\n"));
}
