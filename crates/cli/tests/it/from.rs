//! `anchorhood train --from` as a user has it: before and after in one table, the same bits
//! wherever it was stopped, and models that are given larger pictures.

use std::fs;

use crate::common::{Sandbox, holds, trained};

/// A run `a` to begin from, of 16×16 pictures and width 2.
fn begun() -> Sandbox {
    trained("--method simclr")
}

#[test]
fn before_and_after_are_told_and_kept() {
    let sandbox = begun();
    let ran = sandbox.train("--from a --name b --epochs 2 --evaluate-every 1").succeeded();
    ran.says("begins from")
        .prints("without labels;\nraw pixels;\nbefore;\nafter; etter than before");
    let metrics = sandbox.text("runs/b/metrics.jsonl");
    assert_eq!(metrics.matches("\"of\":\"before\"").count(), 2, "by labels and without");
    holds(&sandbox.text("runs/b/report.html"), "Before and after; <td>before</td>");
    let training = sandbox.config("b").training;
    assert_eq!((training.freeze_epochs, training.from_rate), (1, 0.03));
    // The same again, from the file alone.
    sandbox.run("train --config runs/b/config.toml --name c --quiet").succeeded();
    assert_eq!(sandbox.losses("b"), sandbox.losses("c"));
    sandbox.run("evaluate b").succeeded();
    sandbox.run("report b").succeeded();
}

/// A run that has no checkpoint yet takes the model again, if it is the same; one that has does not
/// need it.
#[test]
fn it_goes_on_without_its_model_but_never_begins_from_another() {
    let sandbox = begun();
    sandbox.train("--from a --name b --stem auto").failed(2, "network.stem");
    sandbox.train("--from a --name b --quiet").succeeded();
    let expected = sandbox.bits("b");
    let begin_anew = || {
        fs::remove_dir_all(sandbox.path("runs/b/checkpoints")).unwrap();
        fs::remove_file(sandbox.path("runs/b/metrics.jsonl")).unwrap();
    };
    let resume = || sandbox.run("train --resume b --quiet");
    begin_anew();
    resume().succeeded();
    assert!(sandbox.bits("b") == expected);
    fs::rename(sandbox.path("runs/a"), sandbox.path("runs/old")).unwrap();
    resume().succeeded();
    begin_anew();
    resume().failed(2, "model.safetensors");
    sandbox.train("--name a --quiet --method simclr --seed 9").succeeded();
    resume().failed(2, "training.from_fingerprint; the model as it was");
}

/// The model inside the program, whose size and width nobody has to know.
#[test]
fn base_is_a_model_to_begin_from() {
    let sandbox = Sandbox::new();
    // As `train_args`, but for what the model decides: --size, --width and --features.
    let line = "train --shapes-train 48 --shapes-test 16 --method and --batch 16 --rounds 1 \
        --epochs 1 --threads 1 --from base --quiet";
    sandbox.run(&format!("{line} --name b")).succeeded().prints("\nbefore");
    let config = sandbox.config("b");
    assert_eq!(config.training.from.as_deref(), Some("base"));
    // It learns from smaller pictures than it is then given, as `base` is.
    assert!(config.data.embed_size > config.data.size);
    let size = |of: &str| {
        let shown = sandbox.said(&format!("model show {of}"));
        shown.lines().find(|l| l.starts_with("size")).map(String::from)
    };
    assert_eq!(size("b"), size("base"));
    // What began it goes on with it.
    sandbox.run(&format!("{line} --resume b")).succeeded();
    assert!(sandbox.path("runs/b/model.safetensors").is_file());
}

/// A run from nothing, whose model is given larger pictures than it learnt from.
#[test]
fn the_finished_model_may_be_given_larger_pictures() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train("--name a --quiet --method simclr --embed-size 24").succeeded();
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let refitted = sandbox.read("runs/a/model.safetensors");
    sandbox.run("model show a").succeeded().prints("size         24");
    // Both are judged, by the run and again.
    let used = "as its model is used, given pictures of 24×24";
    let ran = ran.prints(&format!("runs/a/model.safetensors; {used}; \nmodel 24×24"));
    let judged = sandbox.said("evaluate a");
    let figure = |text: &str, before: &str| -> String {
        let line = text.lines().find(|line| line.starts_with(before));
        let share = line.and_then(|l| l.split_whitespace().find(|word| word.contains('%')));
        share.unwrap_or_default().trim_end_matches(',').into()
    };
    let again = figure(&judged, "given 24×24");
    assert!(again.ends_with('%'), "{judged:?}");
    assert_eq!(figure(&ran.stdout, "model 24×24"), again);
    sandbox.run("train --resume a").succeeded();
    let again = sandbox.read("runs/a/model.safetensors");
    assert!(refitted == again, "the same weights are fitted alike");
}
