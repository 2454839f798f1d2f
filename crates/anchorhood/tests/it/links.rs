//! Every relative link in the project's documents leads somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tree::{crates, root};

/// All Markdown files of the project; not those of builds, runs or environments.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let skip = name.starts_with('.') || ["target", "runs", "carry"].contains(&&*name);
            if !skip {
                documents(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The targets of `[text](target)`, without those inside code.
fn links(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        // Every other part between backticks is code.
        let prose = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        if !fenced {
            let targets = prose.split("](").skip(1);
            found.extend(targets.filter_map(|t| t.split(')').next()).map(String::from));
        }
    }
    found
}

fn is_relative(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with('#')
}

#[test]
fn relative_links_lead_somewhere() {
    let mut files = vec![];
    documents(&root(), &mut files);
    let mut broken = vec![];
    let mut checked = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for link in links(&text).iter().filter(|l| is_relative(l)) {
            let target = link.split('#').next().unwrap_or_default();
            checked += 1;
            if !file.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(checked > 20, "ARCHITECTURE.md alone has more links than the {checked} found");
}

/// Every crate has its place in ARCHITECTURE.md.
#[test]
fn architecture_knows_every_crate() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let links = links(&text);
    for name in crates().into_keys() {
        let link = format!("crates/{name}");
        assert!(links.contains(&link), "ARCHITECTURE.md does not link to {link}");
    }
}

#[test]
fn links_are_found_in_prose_alone() {
    let text =
        "see [a](a.md#part) and `[b](b.md)`\n```\n[c](c.md)\n```\n[d](https://d.org) ![e](e.png)";
    assert_eq!(links(text), ["a.md#part", "https://d.org", "e.png"]);
    let relative: Vec<String> = links(text).into_iter().filter(|l| is_relative(l)).collect();
    assert_eq!(relative, ["a.md#part", "e.png"]);
}
