//! `report`, by the real program: the page after training, again on demand, without pictures, and
//! for a run that is no run.

use std::fs;

use crate::clients;
use crate::common;
use crate::folders::{self, trained};

#[test]
fn training_leaves_a_page_that_holds_everything() {
    let sandbox = trained(&[]);
    let page = fs::read_to_string(sandbox.path("runs/a/report.html")).unwrap();
    for part in [
        "<title>a</title>",
        "kNN accuracy",
        "Learning rate",
        "Anchors and their consistency",
        "Entropy before round 1",
        "Surest: lowest entropy",
        "Hardest: highest entropy",
        "data:image/jpeg;base64,",
        "id=\"map-data\"",
        "config.toml",
        "48, 16×16",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("Entropy before round 2"), "there was one round");
    // Nothing is asked of anybody: no address but the names of XML's own spaces.
    let addresses = page.matches("http").count();
    let spaces = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, spaces);
    for chart in ["knn", "loss", "rate", "anchors", "entropy-1"] {
        let svg = fs::read_to_string(sandbox.path(&format!("runs/a/charts/{chart}.svg"))).unwrap();
        assert!(svg.trim_end().ends_with("</svg>"));
    }
    fs::remove_file(sandbox.path("runs/a/report.html")).unwrap();
    let ran = sandbox.run(&["report", "a"]).succeeded();
    assert_eq!(ran.stdout.trim(), "runs/a/report.html");
    let again = fs::read_to_string(sandbox.path("runs/a/report.html")).unwrap();
    assert_eq!(page, again, "made again from what lies on disk");
    let aside = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let report = sandbox.path("runs/a/report.html");
    let args = [report.as_path(), &aside];
    let _skipped_or_done = clients::python("report.py", &["playwright"], &args);
}

#[test]
fn a_method_that_remembers_no_features_has_a_page_as_full() {
    let sandbox = common::Sandbox::new();
    let views = "train --method anchorhood --name a --shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 --rounds 2 --epochs 1 -k 2";
    sandbox.run(&views.split(' ').collect::<Vec<_>>()).succeeded();
    let page = fs::read_to_string(sandbox.path("runs/a/report.html")).unwrap();
    for part in [
        "What the model finds alike",
        "Entropy before round 2",
        "Surest: lowest entropy",
        "id=\"map-data\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_without_its_pictures_says_why() {
    let sandbox = common::Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 40);
    let args = ["pictures", "--name", "b", "--quiet"];
    sandbox.train(&args).succeeded();
    let page = |_| fs::read_to_string(sandbox.path("runs/b/report.html")).unwrap();
    assert!(page(()).contains("Surest"));
    assert!(!page(()).contains("kNN accuracy"), "there are no labels");
    fs::rename(sandbox.path("pictures"), sandbox.path("moved")).unwrap();
    // A page that may show pictures is not replaced by one without.
    let before = page(());
    let kept = ["report.html", "--data", "--overwrite"];
    let ran = sandbox.run(&["report", "b"]);
    ran.says(&["warning: no pictures can be shown, because"]).failed(1, &kept);
    assert_eq!(page(()), before);
    sandbox.run(&["report", "b", "--overwrite"]).succeeded();
    assert!(page(()).contains("The training pictures are not shown"));
    assert!(!page(()).contains("Surest"));
    let moved = ["report", "b", "--data", "moved"];
    sandbox.run(&moved).succeeded();
    assert!(page(()).contains("Surest"));
    fs::remove_file(sandbox.path("moved/0.png")).unwrap();
    sandbox.run(&moved).failed(1, &kept);
    let overwrite = [&moved[..], &["--overwrite"]].concat();
    sandbox.run(&overwrite).succeeded();
    assert!(page(()).contains("the run has seen 40 pictures, and the data set has 39 now"));
}

#[test]
fn what_cannot_be_reported_on() {
    let sandbox = trained(&[]);
    let run = |args: &[&str]| sandbox.run(args);
    run(&["report", "nothing"]).failed(2, &["no run called `nothing`", "a"]);
    run(&["report", "a", "--data", "no/such"]).failed(2, &["--data", "no/such"]);
    let last = sandbox.path("runs/a/checkpoints/last.safetensors");
    fs::write(&last, "not a checkpoint").unwrap();
    let before = fs::read(sandbox.path("runs/a/report.html")).unwrap();
    run(&["report", "a"]).failed(1, &["last.safetensors", "not a whole checkpoint"]);
    let after = fs::read(sandbox.path("runs/a/report.html")).unwrap();
    assert_eq!(before, after, "the old page is kept");
}

/// A line in the middle that is no event costs its own figures alone.
#[test]
fn damaged_lines_of_the_metrics_are_left_out_and_counted() {
    let sandbox = trained(&[]);
    let path = sandbox.path("runs/a/metrics.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let epoch = lines.iter().rposition(|l| l.contains("epoch_ended"));
    lines[epoch.unwrap()] = "\0\0\0";
    lines.insert(1, &text[..20]);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let ran = sandbox.run(&["report", "a"]).succeeded();
    ran.says(&["warning: runs/a: 2 lines of metrics.jsonl", "(line 2: "]);
    let page = fs::read_to_string(sandbox.path("runs/a/report.html")).unwrap();
    assert!(page.contains("2 lines of metrics.jsonl are no events"));
    assert!(page.contains("kNN accuracy"));
}

#[test]
fn tensorboard_reads_the_figures() {
    let sandbox = trained(&["--tensorboard"]);
    let folder = sandbox.path("runs/a/tensorboard");
    assert_eq!(common::names(&folder).len(), 1);
    let Some(said) = clients::python("tensorboard_reads.py", &["tensorboard"], &[&folder]) else {
        return;
    };
    let said: Vec<f64> = said.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let told = common::losses(&sandbox.path("runs/a"));
    assert_eq!(said.len(), told.len());
    assert!(said.iter().zip(&told).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// Frozen in its middle, a run has told TensorBoard how far it is; killed and resumed, it tells
/// every epoch once.
#[cfg(unix)]
#[test]
fn tensorboard_follows_a_run_and_its_resume() {
    let sandbox = common::Sandbox::new();
    let args = ["--name", "live", "--tensorboard", "--epochs", "60"];
    let mut child = sandbox.start(&args);
    let signal = |name: &str| {
        let mut kill = std::process::Command::new("kill");
        let status = kill.args([format!("-{name}"), child.id().to_string()]);
        assert!(status.status().unwrap().success());
    };
    let run = sandbox.path("runs/live");
    let folder = run.join("tensorboard");
    // A start writes one file.
    let file = |number: usize| {
        let names = if folder.is_dir() { common::names(&folder) } else { vec![] };
        Some(folder.join(names.get(number)?))
    };
    let read = |number| file(number).and_then(|file| fs::read(file).ok()).unwrap_or_default();
    let saved = run.join("checkpoints/last.safetensors");
    let losses = |bytes: &[u8]| bytes.windows(4).filter(|w| w == b"loss").count();
    let so_far = || losses(&read(0));
    let start = std::time::Instant::now();
    while so_far() < 3 || !saved.exists() {
        assert!(start.elapsed().as_secs() < 60, "no figures while it trains");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    signal("STOP");
    let frozen = read(0);
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    assert!(!metrics.contains("run_ended"), "it ended before it could be stopped");
    let reader = |folder: &std::path::Path| {
        let said = clients::python("tensorboard_follows.py", &["tensorboard"], &[folder])?;
        let words = said.split_whitespace().map(|w| w.parse().unwrap());
        let words: Vec<f64> = words.collect();
        let told: Vec<(f64, f64)> = words.chunks_exact(2).map(|w| (w[0], w[1])).collect();
        let steps: Vec<f64> = told.iter().map(|t| t.0).collect();
        let each_once: Vec<f64> = (1..=told.len()).map(|step| step as f64).collect();
        assert_eq!(steps, each_once);
        Some(told.into_iter().map(|t| t.1).collect::<Vec<f64>>())
    };
    if let Some(told) = reader(&folder) {
        // Half of the last record may be missing.
        assert!((losses(&frozen) - 1..=losses(&frozen)).contains(&told.len()));
    }
    signal("KILL");
    child.wait().unwrap();

    sandbox.run(&["train", "--resume", "live"]).succeeded();
    assert!(read(0).starts_with(&frozen), "it only grows");
    assert_eq!(losses(&read(1)), 120, "a start tells all figures");
    let figures = common::losses(&run);
    assert_eq!(figures.len(), 120);
    if let Some(told) = reader(&folder) {
        assert_eq!(told.len(), 120);
        assert!(told.iter().zip(&figures).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

#[test]
fn completions_and_manual() {
    let sandbox = common::Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.run(&["completions", shell]).succeeded().stdout;
        assert!(script.contains("neighbours") && script.contains("weight-decay"));
    }
    sandbox.run(&["man"]).succeeded();
    sandbox.run(&["man", "-o", "man"]).succeeded();
    let page = fs::read_to_string(sandbox.path("man/anchorhood-serve.1")).unwrap();
    assert!(page.contains("token"));
    assert!(sandbox.path("man/anchorhood.1").is_file());
}
