//! ARCHITECTURE.md says which crate stands on which, and the crates' Cargo.toml files agree: no
//! edge is missing, none is superfluous, none goes round in a circle. And no crate asks for a
//! dependency that its sources never mention, or writes a file other than through the file layer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::tree::{crates, root, sources};

/// The heading of the list in ARCHITECTURE.md.
const HEADING: &str = "## Dependencies";
/// Packages whose library has a name of its own.
const LIBRARIES: [(&str, &str); 2] = [("kamadak-exif", "exif"), ("md-5", "md5")];

fn toml_of(path: &Path) -> Table {
    let text = fs::read_to_string(path.join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

/// The packages that a table of a Cargo.toml names: those of every system, and those of one alone
/// (`[target.….dependencies]`).
fn packages(manifest: &Table, table: &str) -> Vec<String> {
    let of = |manifest: &Table| {
        let table = manifest.get(table).and_then(|t| t.as_table());
        table.map_or(vec![], |t| t.keys().cloned().collect())
    };
    let systems = manifest.get("target").and_then(|t| t.as_table());
    let systems = systems.into_iter().flat_map(|t| t.values());
    let own = systems.filter_map(|s| s.as_table()).flat_map(of);
    of(manifest).into_iter().chain(own).collect()
}

// ---- dependencies ----

/// A crate, and the crates it stands on.
type Edges = Vec<(String, BTreeSet<String>)>;

/// The lines `crate: crates it stands on` of the first fenced block under the heading.
fn said(document: &str) -> Edges {
    let (_, after) = document.split_once(HEADING).expect(HEADING);
    let block = after.split("```").nth(1).expect("a block under it");
    let lines = block.lines().skip(1).filter(|line| !line.trim().is_empty());
    let edge = |line: &str| {
        let (name, on) = line.split_once(':').unwrap_or((line, ""));
        let on = on.split_whitespace().map(String::from).collect();
        (name.trim().to_string(), on)
    };
    lines.map(edge).collect()
}

/// What the Cargo.toml files say: the short names of the workspace's crates among `[dependencies]`.
fn found() -> Edges {
    let short = |package: &String| match package.strip_prefix("anchorhood") {
        Some("") => Some("anchorhood".to_string()),
        Some(name) => name.strip_prefix('-').map(String::from),
        None => None,
    };
    let on = |folder: &PathBuf| {
        let packages = packages(&toml_of(folder), "dependencies");
        packages.iter().filter_map(short).collect()
    };
    let all = crates();
    all.iter().map(|(name, folder)| (name.clone(), on(folder))).collect()
}

/// What is wrong with what is said, a sentence each.
fn complaints(said: &Edges, found: &Edges) -> Vec<String> {
    let mut wrong = vec![];
    for (name, on) in found {
        let Some((_, told)) = said.iter().find(|(told, _)| told == name) else {
            wrong.push(format!("{name} is not in the list"));
            continue;
        };
        let missing = on.difference(told);
        wrong.extend(missing.map(|o| format!("{name} stands on {o}, which is not said")));
        let superfluous = told.difference(on);
        wrong.extend(superfluous.map(|o| format!("{name} is said to stand on {o}, and does not")));
    }
    let mut above = BTreeSet::new();
    for (name, on) in said {
        if !found.iter().any(|(there, _)| there == name) {
            wrong.push(format!("{name} is in the list, and is no crate"));
        }
        let not_above = on.iter().filter(|o| !above.contains(*o));
        wrong.extend(not_above.map(|o| format!("{name} stands on {o}, which is not above it")));
        if !above.insert(name) {
            wrong.push(format!("{name} is in the list twice"));
        }
    }
    wrong
}

#[test]
fn the_document_says_who_stands_on_whom() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (said, found) = (said(&document), found());
    assert!(found.len() > 10, "{found:?}");
    let wrong = complaints(&said, &found);
    assert!(wrong.is_empty(), "ARCHITECTURE.md: {}", wrong.join("\n"));
}

#[test]
fn missing_superfluous_and_circular_edges_are_noticed() {
    let list = |lines: &str| said(&format!("{HEADING}\n\nIn words.\n\n```text\n{lines}\n```\n"));
    let crates = list("a:\nb: a\nc: a b");
    let wrong = |lines| complaints(&list(lines), &crates);
    assert_eq!(crates[2].1.len(), 2);
    assert!(wrong("a:\nb: a\nc: a b").is_empty());
    let told = |lines, what: &str| {
        let wrong = wrong(lines);
        assert!(wrong.iter().any(|w| w == what), "{wrong:?}");
    };
    told("a\nb: a\nc: a", "c stands on b, which is not said");
    told("a\nb: a\nc: a b\nd: a", "d is in the list, and is no crate");
    told("a\nb: a", "c is not in the list");
    told("a\nc: a b\nb: a", "c stands on b, which is not above it");
    told("a\na\nb: a\nc: a b", "a is in the list twice");
    let circle = "a: c\nb: a\nc: a b";
    told(circle, "a is said to stand on c, and does not");
    told(circle, "a stands on c, which is not above it");
    assert_eq!(complaints(&list(circle), &list(circle)).len(), 1);
}

// ---- dependencies nobody uses ----

/// The text of all sources in some folders of a crate.
fn text_of(krate: &Path, folders: &[&str], part: fn(&Path, String) -> String) -> String {
    let files = folders.iter().flat_map(|folder| sources(&krate.join(folder)));
    files.map(|file| part(&file, fs::read_to_string(&file).unwrap())).collect()
}

/// What a user's build compiles of a source: no tests, and no comments, whose examples are tests
/// too.
fn without_tests(file: &Path, text: String) -> String {
    if file.file_name().is_some_and(|name| name == "tests.rs" || name == "test_folder.rs") {
        return String::new();
    }
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let inline_module = |next: &&str| next.contains("mod ") && next.ends_with('{');
        // Modules of tests are the last thing in a file.
        let of_tests = ["#[cfg(test)]", "#[cfg(all(test, unix))]"].contains(&line);
        if of_tests && lines.peek().is_some_and(inline_module) {
            break;
        }
        if !line.trim_start().starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// Whether code names a library: `library::…`, `use library;` or `use library as …`, and not as a
/// part of another path.
fn mentions(code: &str, library: &str) -> bool {
    code.match_indices(library).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + library.len()..]);
        let inside = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let named = after.starts_with("::");
        let imported = before.ends_with("use ") && (after.starts_with([';', ' ']));
        !inside && (named || imported)
    })
}

fn library(package: &str) -> String {
    let named = LIBRARIES.iter().find(|(p, _)| *p == package);
    named.map_or_else(|| package.replace('-', "_"), |(_, l)| l.to_string())
}

/// Whether a feature asks for a feature of this package, which must then be a dependency, whatever
/// code says.
fn in_a_feature(manifest: &Table, package: &str) -> bool {
    let features = manifest.get("features").and_then(|t| t.as_table());
    let asked = features.into_iter().flat_map(|t| t.values());
    let mut asked = asked.filter_map(|f| f.as_array()).flatten();
    asked.any(|f| f.as_str().and_then(|f| f.split_once('/')).map(|f| f.0) == Some(package))
}

/// Those of a table's packages that neither code nor a feature names.
fn unused(manifest: &Table, table: &str, code: &str) -> Vec<String> {
    let mut packages = packages(manifest, table);
    packages.retain(|p| !mentions(code, &library(p)) && !in_a_feature(manifest, p));
    packages
}

#[test]
fn no_crate_asks_for_what_it_does_not_use() {
    let mut wrong = vec![];
    for (name, folder) in crates() {
        let manifest = toml_of(&folder);
        let code = text_of(&folder, &["src"], without_tests);
        let everything = text_of(&folder, &["src", "tests", "examples"], |_, text| text);
        for (table, code) in [("dependencies", code), ("dev-dependencies", everything)] {
            let unused = unused(&manifest, table, &code);
            wrong.extend(unused.iter().map(|u| format!("{name}: {u} of {table}")));
        }
    }
    assert!(wrong.is_empty(), "nobody uses\n{}", wrong.join("\n"));
}

#[test]
fn the_workspace_offers_nothing_that_no_crate_takes() {
    let workspace = toml_of(&root());
    let offered = workspace["workspace"].as_table().unwrap();
    let all = crates();
    let taken: BTreeSet<String> = all
        .values()
        .map(|folder| toml_of(folder))
        .flat_map(|m| ["dependencies", "dev-dependencies"].map(|table| packages(&m, table)))
        .flatten()
        .collect();
    let mut left = packages(offered, "dependencies");
    assert!(left.len() > 20, "{left:?}");
    left.retain(|package| !taken.contains(package));
    assert!(left.is_empty(), "no crate takes {left:?}");
}

/// `cargo build` and `cargo test` are all but the Python package, which needs what not everybody
/// has.
#[test]
fn everything_but_the_python_package_is_built_by_default() {
    let workspace = toml_of(&root());
    let built = workspace["workspace"]["default-members"].as_array();
    let built = built.unwrap().iter().map(|path| path.as_str().unwrap());
    let built: BTreeSet<String> = built.map(String::from).collect();
    let all = crates().into_keys().filter(|name| name != "python");
    let all: BTreeSet<String> = all.map(|name| format!("crates/{name}")).collect();
    assert_eq!(built, all);
    // `cargo run` needs to know which program is meant.
    let programs = built.iter().filter(|path| root().join(path).join("src/main.rs").is_file());
    assert_eq!(programs.collect::<Vec<_>>(), ["crates/cli"]);
}

#[test]
fn unused_dependencies_are_noticed() {
    let manifest: Table =
        "[dependencies]\nimage = \"1\"\nmd-5 = \"1\"\nserde-json = \"1\"".parse().unwrap();
    let unused = |code: &str| {
        let code = without_tests(Path::new("a.rs"), code.into());
        unused(&manifest, "dependencies", &code)
    };
    assert!(unused("use md5::Md5;\nuse image;\nserde_json::json!({});").is_empty());
    let tests = "#[cfg(test)]\nmod tests {\n    use md5::Md5;\n}\n";
    let code =
        format!("// image::open\nuse crate::image::open;\nlet x = my_serde_json::y;\n{tests}");
    assert_eq!(unused(&code), ["image", "md-5", "serde-json"]);
    let featured = "[features]\nfast = [\"image/png\"]\nother = [\"fast\"]\n[dependencies]\nimage \
                    = \"1\"\ngif = \"1\"";
    let featured = featured.parse().unwrap();
    assert_eq!(self::unused(&featured, "dependencies", ""), ["gif"]);
}

// ---- files are written in one place ----

/// What makes, changes, moves or removes a file.
const WRITES: [&str; 11] = [
    "fs::write",
    "fs::rename",
    "fs::remove",
    "fs::create_dir",
    "fs::copy",
    "File::create",
    "File::options",
    "OpenOptions",
    "file.set_len",
    "Writer::from_path",
    "generate_to",
];
/// The file layer, what counts skipped tests, and what gives readers harmful files.
const WRITERS: [&str; 3] = ["storage", "testing", "fuzzing"];

fn writes(code: &str) -> Vec<&'static str> {
    // `File::create`, and not `AtomicFile::create`.
    let alone = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let found = |what: &&str| code.match_indices(*what).any(|(at, _)| alone(at));
    WRITES.into_iter().filter(found).collect()
}

#[test]
fn every_file_is_written_through_the_file_layer() {
    let (mut wrong, mut looked_at) = (vec![], 0);
    for (name, folder) in crates() {
        let files = sources(&folder.join("src"));
        looked_at += files.len();
        for file in files.iter().filter(|_| !WRITERS.contains(&&*name)) {
            let code = without_tests(file, fs::read_to_string(file).unwrap());
            let told = writes(&code).into_iter();
            wrong.extend(told.map(|what| format!("{}: {what}", file.display())));
        }
    }
    assert!(looked_at > 100, "{looked_at}");
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "not through anchorhood_storage:\n{wrong}");
}

#[test]
fn a_file_written_elsewhere_is_noticed() {
    let code = |text: &str| without_tests(Path::new("a.rs"), text.into());
    assert_eq!(writes(&code("std::fs::write(path, b\"\")?;")), ["fs::write"]);
    let options = "File::options().write(true).open(path)";
    assert_eq!(writes(&code(options)), ["File::options"]);
    let fine = "// fs::write\nAtomicFile::write(path, b\"\")?;\nFile::open(path)?;\n";
    let tests = "#[cfg(test)]\nmod tests {\n    fs::write(path, b\"\");\n}\n";
    assert!(writes(&code(&format!("{fine}{tests}"))).is_empty());
}
