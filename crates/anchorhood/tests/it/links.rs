//! Every relative link in the project's documents leads somewhere, its anchor too; pages are of a
//! length that is read, and the book names each.

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
    !link.contains("://") && !link.starts_with("mailto:")
}

/// The anchors of a page: its headings in small letters, without punctuation, joined by dashes.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = vec![];
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter_map(|c| match c {
            ' ' | '-' => Some('-'),
            '_' => Some('_'),
            c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        found.push(kept.collect());
    }
    found
}

/// Why a link of a page leads nowhere.
fn broken(page: &Path, text: &str, link: &str) -> Option<&'static str> {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match target {
        "" => page.to_owned(),
        target => page.parent()?.join(target),
    };
    if !target.exists() {
        return Some("no such file");
    }
    let known = match target.extension().is_some_and(|e| e == "md") {
        true if target == page => anchors(text),
        true => anchors(&fs::read_to_string(&target).ok()?),
        false => return None,
    };
    let leads = anchor.is_empty() || known.iter().any(|a| a == anchor);
    (!leads).then_some("no such heading")
}

#[test]
fn relative_links_lead_somewhere() {
    let mut files = vec![];
    documents(&root(), &mut files);
    let mut wrong = vec![];
    let mut checked = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for link in links(&text).iter().filter(|l| is_relative(l)) {
            checked += 1;
            if let Some(why) = broken(file, &text, link) {
                wrong.push(format!("{}: {link}: {why}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "broken links:\n{}", wrong.join("\n"));
    assert!(checked > 20, "ARCHITECTURE.md alone has more links than the {checked} found");
}

/// README has at most 150 lines, ARCHITECTURE 250, CONTRIBUTING 120, a page outside `lab` and
/// `reference` 220; no line of prose is wider than 160 characters.
#[test]
fn pages_are_short() {
    let mut files = vec![];
    documents(&root(), &mut files);
    let mut wrong = vec![];
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let most = match name.as_str() {
            "README.md" => 150,
            "ARCHITECTURE.md" => 250,
            "CONTRIBUTING.md" => 120,
            n if n.starts_with("docs/lab/") || n.starts_with("docs/reference/") => usize::MAX,
            n if n.starts_with("docs/") => 220,
            _ => usize::MAX,
        };
        let lines = text.lines().count();
        if lines > most {
            wrong.push(format!("{name}: {lines} lines, at most {most}"));
        }
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let prose = !fenced && !["|", "!", "<", "#"].iter().any(|c| line.starts_with(c));
            if prose && line.chars().count() > 160 && name != "docs/reference/http-api.md" {
                wrong.push(format!("{name}:{}: more than 160 columns", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every page of docs has its place in the book.
#[test]
fn the_book_has_every_page() {
    let docs = root().join("docs");
    let mut files = vec![];
    documents(&docs, &mut files);
    let list = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let named: Vec<PathBuf> = links(&list).iter().map(|link| docs.join(link)).collect();
    let missing: Vec<_> = files.iter().filter(|f| !named.contains(f)).collect();
    assert_eq!(missing, [&docs.join("SUMMARY.md")]);
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
    assert_eq!(anchors("# A `b` – c\n```\n# no\n```\n## D-e, f"), ["a-b--c", "d-e-f"]);
}
