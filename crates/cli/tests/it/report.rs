//! `report`, by the real program: the page after training, again on demand, without pictures, and
//! for a run that is no run.

use std::fs;

use crate::common::{Sandbox, holds, trained};
use crate::folders;

#[test]
fn training_leaves_a_page_that_holds_everything() {
    let sandbox = trained("");
    let page = sandbox.text("runs/a/report.html");
    holds(
        &page,
        "<title>a</title>;kNN accuracy;Learning rate;Anchors and their consistency;\
         Entropy before round 1;Surest: lowest entropy;Hardest: highest entropy;\
         id=\"map-data\";config.toml;48, 16×16",
    );
    assert!(page.contains("data:image/jpeg;base64,"), "pictures lie in the page");
    assert!(!page.contains("Entropy before round 2"), "there was one round");
    // Nothing is asked of anybody: no address but the names of XML's own spaces.
    let addresses = page.matches("http").count();
    let spaces = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, spaces);
    for chart in ["knn", "loss", "rate", "anchors", "entropy-1"] {
        let svg = sandbox.text(&format!("runs/a/charts/{chart}.svg"));
        assert!(svg.trim_end().ends_with("</svg>"));
    }
    fs::remove_file(sandbox.path("runs/a/report.html")).unwrap();
    assert_eq!(sandbox.said("report a").trim(), "runs/a/report.html");
    let again = sandbox.text("runs/a/report.html");
    assert_eq!(page, again, "made again from what lies on disk");
}

#[test]
fn a_method_that_remembers_no_features_has_a_page_as_full() {
    let sandbox = trained("--method anchorhood --rounds 2 -k 2");
    let full = "What the model finds alike;Entropy before round 2;Surest: lowest entropy;map-data";
    holds(&sandbox.text("runs/a/report.html"), full);
}

#[test]
fn a_page_without_its_pictures_says_why() {
    let sandbox = Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 40);
    sandbox.train("pictures --name b --quiet").succeeded();
    let page = || sandbox.text("runs/b/report.html");
    assert!(page().contains("Surest"));
    assert!(!page().contains("kNN accuracy"), "there are no labels");
    fs::rename(sandbox.path("pictures"), sandbox.path("moved")).unwrap();
    // A page that may show pictures is not replaced by one without.
    let before = page();
    let kept = "report.html; --data; --overwrite";
    let ran = sandbox.run("report b").failed(1, kept);
    ran.says("warning: no pictures can be shown, because");
    assert_eq!(page(), before);
    sandbox.run("report b --overwrite").succeeded();
    assert!(page().contains("The training pictures are not shown"));
    assert!(!page().contains("Surest"));
    sandbox.run("report b --data moved").succeeded();
    assert!(page().contains("Surest"));
    fs::remove_file(sandbox.path("moved/0.png")).unwrap();
    sandbox.run("report b --data moved").failed(1, kept);
    sandbox.run("report b --data moved --overwrite").succeeded();
    assert!(page().contains("the run has seen 40 pictures, and the data set has 39 now"));
}

/// A line in the middle that is no event costs its own figures alone.
#[test]
fn damaged_lines_of_the_metrics_are_left_out_and_counted() {
    let sandbox = trained("");
    let text = sandbox.text("runs/a/metrics.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    let epoch = lines.iter().rposition(|l| l.contains("epoch_ended"));
    lines[epoch.unwrap()] = "\0\0\0";
    lines.insert(1, &text[..20]);
    sandbox.write("runs/a/metrics.jsonl", lines.join("\n") + "\n");
    let ran = sandbox.run("report a").succeeded();
    ran.says("warning: runs/a: 2 lines of metrics.jsonl; (line 2: ");
    let page = sandbox.text("runs/a/report.html");
    holds(&page, "2 lines of metrics.jsonl are no events; kNN accuracy");
}

#[test]
fn completions_and_manual() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.said(&format!("completions {shell}"));
        holds(&script, "neighbours; weight-decay");
    }
    sandbox.run("man").succeeded();
    sandbox.run("man -o man").succeeded();
    holds(&sandbox.text("man/anchorhood-serve.1"), "token");
    assert!(sandbox.path("man/anchorhood.1").is_file());
}
