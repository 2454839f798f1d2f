//! `anchorhood train --from` as a user has it: before and after in one table, the same bits
//! wherever it was stopped, and what does not fit is refused in a sentence.

use std::fs;

use anchorhood::train::RunDir;

use crate::common::{Sandbox, bits, losses, train_args};

/// A run `a` to begin from, of 16×16 pictures and width 2.
fn begun() -> Sandbox {
    let sandbox = Sandbox::new();
    let args = ["--name", "a", "--quiet", "--method", "simclr"];
    sandbox.run(&args_without(&args, "--features")).succeeded();
    sandbox
}

/// `train` with tiny settings, but for one.
fn args_without(more: &[&str], without: &str) -> Vec<String> {
    let mut args = train_args(more);
    if let Some(at) = args.iter().position(|a| a == without) {
        args.drain(at..at + 2);
    }
    args
}

#[test]
fn before_and_after_are_told_and_kept() {
    let sandbox = begun();
    let args = ["--from", "a", "--name", "b", "--epochs", "2", "--evaluate-every", "1"];
    let ran = sandbox.train(&args).succeeded();
    assert!(ran.stderr.contains("begins from"), "{}", ran.stderr);
    let table = ran.stdout;
    for part in ["without labels", "\nraw pixels", "\nbefore", "\nafter", "etter than before"] {
        assert!(table.contains(part), "{part:?} is not in {table}");
    }
    let metrics = fs::read_to_string(sandbox.path("runs/b/metrics.jsonl")).unwrap();
    assert_eq!(metrics.matches("\"of\":\"before\"").count(), 2, "by labels and without");
    let page = fs::read_to_string(sandbox.path("runs/b/report.html")).unwrap();
    assert!(page.contains("Before and after") && page.contains("<td>before</td>"));
    let config = RunDir::config_of(&sandbox.path("runs/b")).unwrap();
    assert_eq!(config.training.freeze_epochs, 1);
    assert_eq!(config.training.from_rate, 0.03);
    // The same again, from the file alone.
    let again = ["train", "--config", "runs/b/config.toml", "--name", "c", "--quiet"];
    sandbox.run(&again).succeeded();
    let of = |run: &str| losses(&sandbox.path(&format!("runs/{run}")));
    assert_eq!(of("b"), of("c"));
    sandbox.run(&["evaluate", "b"]).succeeded();
    sandbox.run(&["report", "b"]).succeeded();
}

/// A run that has no checkpoint yet takes the model again, if it is the same; one that has does not
/// need it.
#[test]
fn it_goes_on_without_its_model_but_never_begins_from_another() {
    let sandbox = begun();
    sandbox.train(&["--from", "a", "--name", "b", "--quiet"]).succeeded();
    let expected = bits(&sandbox.path("runs/b/checkpoints/last.safetensors"));
    let begin_anew = || {
        fs::remove_dir_all(sandbox.path("runs/b/checkpoints")).unwrap();
        fs::remove_file(sandbox.path("runs/b/metrics.jsonl")).unwrap();
    };
    begin_anew();
    sandbox.run(&["train", "--resume", "b", "--quiet"]).succeeded();
    assert!(bits(&sandbox.path("runs/b/checkpoints/last.safetensors")) == expected);
    fs::rename(sandbox.path("runs/a"), sandbox.path("runs/old")).unwrap();
    sandbox.run(&["train", "--resume", "b", "--quiet"]).succeeded();
    begin_anew();
    sandbox.run(&["train", "--resume", "b"]).failed(2, &["model.safetensors"]);
    let args = ["--name", "a", "--quiet", "--method", "simclr", "--seed", "9"];
    sandbox.run(&args_without(&args, "--features")).succeeded();
    sandbox
        .run(&["train", "--resume", "b"])
        .failed(2, &["training.from_fingerprint", "the model as it was"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let sandbox = begun();
    let refused = |more: &[&str], parts: &[&str]| {
        let args = [&["--from", "a", "--name", "x"], more].concat();
        sandbox.train(&args).failed(2, parts);
        assert!(!sandbox.path("runs/x").exists(), "nothing is left behind");
    };
    refused(&["--width", "8"], &["network.width: 8", "has 2", "leave --width out"]);
    refused(&["--network", "resnet34"], &["network.architecture", "resnet10", "--network"]);
    refused(&["--size", "32"], &["data.size", "has 16"]);
    refused(&["--stem", "auto"], &["network.stem"]);
    refused(&["--freeze-epochs", "2"], &["training.freeze_epochs"]);
    fs::write(sandbox.path("no.pth"), "no model").unwrap();
    fs::write(sandbox.path("no.onnx"), "no model").unwrap();
    for (from, code, part) in [
        ("no.pth", 2, "no.pth: is no model"),
        ("no.onnx", 2, "used as they are"),
        ("nothing", 2, "no run called `nothing`"),
    ] {
        let ran = sandbox.train(&["--from", from, "--name", "x"]);
        ran.failed(code, &[part]);
        assert!(!sandbox.path("runs/x").exists(), "nothing is left behind");
    }
    let alone = sandbox.train(&["--freeze-epochs", "1", "--name", "x"]);
    alone.failed(2, &["training.freeze_epochs", "name that model"]);
    let compare = ["compare", "--from", "a", "--methods", "and,simclr", "--minutes", "1"];
    let ran = sandbox.run(&compare);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// The model inside the program, whose size and width nobody has to know.
#[test]
fn base_is_a_model_to_begin_from() {
    let sandbox = Sandbox::new();
    let mut args = args_without(&["--from", "base", "--name", "b", "--quiet"], "--size");
    let width = args.iter().position(|a| a == "--width").unwrap();
    args.drain(width..width + 2);
    let ran = sandbox.run(&args).succeeded();
    assert!(ran.stdout.contains("\nbefore"), "{ran:?}");
    let config = RunDir::config_of(&sandbox.path("runs/b")).unwrap();
    assert_eq!(config.training.from.as_deref(), Some("base"));
    // It learns from smaller pictures than it is then given, as `base` is.
    assert!(config.data.embed_size > config.data.size);
    let shown = sandbox.run(&["model", "show", "b"]).succeeded();
    let base = sandbox.run(&["model", "show", "base"]).succeeded();
    let size = |of: &str| of.lines().find(|l| l.starts_with("size")).map(String::from);
    assert_eq!(size(&shown.stdout), size(&base.stdout), "{shown:?}");
    sandbox.run(&["train", "--resume", "b"]).succeeded();
    assert!(sandbox.path("runs/b/model.safetensors").is_file());
}

/// A run from nothing, whose model is given larger pictures than it learnt from.
#[test]
fn the_finished_model_may_be_given_larger_pictures() {
    let sandbox = Sandbox::new();
    let args = ["--name", "a", "--quiet", "--method", "simclr", "--embed-size", "24"];
    let ran = sandbox.run(&args_without(&args, "--features")).succeeded();
    assert!(ran.stdout.contains("runs/a/model.safetensors"), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let refitted = fs::read(sandbox.path("runs/a/model.safetensors")).unwrap();
    let shown = sandbox.run(&["model", "show", "a"]).succeeded();
    assert!(shown.stdout.contains("size         24"), "{shown:?}");
    // Both are judged, by the run and again.
    let used = "as its model is used, given pictures of 24×24";
    assert!(ran.stdout.contains(used), "{ran:?}");
    assert!(ran.stdout.contains("\nmodel 24×24"), "{ran:?}");
    let judged = sandbox.run(&["evaluate", "a"]).succeeded();
    let figure = |text: &str, before: &str| -> String {
        let line = text.lines().find(|line| line.starts_with(before));
        let share = line.and_then(|l| l.split_whitespace().find(|word| word.contains('%')));
        share.unwrap_or_default().trim_end_matches(',').into()
    };
    let again = figure(&judged.stdout, "given 24×24");
    assert!(again.ends_with('%'), "{judged:?}");
    assert_eq!(figure(&ran.stdout, "model 24×24"), again);
    sandbox.run(&["train", "--resume", "a"]).succeeded();
    let again = fs::read(sandbox.path("runs/a/model.safetensors")).unwrap();
    assert!(refitted == again, "the same weights are fitted alike");
    let far = ["--name", "b", "--method", "simclr", "--embed-size", "224"];
    let ran = sandbox.run(&args_without(&far, "--features"));
    ran.failed(2, &["data.embed_size", "other first layers", "224×224"]);
    assert!(!sandbox.path("runs/b").exists(), "nothing is left behind");
}
