//! What a user sees when all goes well.

use anchorhood::train::{Event, RunConfig};

use crate::common::{Sandbox, bits, losses, names};

#[test]
fn a_run_leaves_what_it_promises() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train(&["--rounds", "2"]).succeeded();
    for row in ["raw pixels", "untrained", "round 0", "round 1", "round 2"] {
        assert!(ran.stdout.contains(row), "{}", ran.stdout);
    }
    let run = sandbox.path("runs/shapes-1");
    let expected = [
        "charts",
        "checkpoints",
        "config.toml",
        "curve.svg",
        "metrics.jsonl",
        "pictures.safetensors",
        "report.html",
    ];
    assert_eq!(names(&run), expected);
    let expected = ["last", "round-0", "round-1", "round-2"].map(|n| format!("{n}.safetensors"));
    assert_eq!(names(&run.join("checkpoints")), expected);
    assert!(losses(&run).iter().all(|l| l.is_finite()));
    assert_eq!(losses(&run).len(), 3);
}

#[test]
fn a_second_run_gets_the_next_number_and_the_first_stays() {
    let sandbox = Sandbox::new();
    sandbox.train(&[]).succeeded();
    let before = std::fs::read(sandbox.path("runs/shapes-1/checkpoints/last.safetensors")).unwrap();
    sandbox.train(&[]).succeeded();
    assert_eq!(names(&sandbox.path("runs")), ["shapes-1", "shapes-2"]);
    let after = std::fs::read(sandbox.path("runs/shapes-1/checkpoints/last.safetensors")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn a_configuration_fed_back_gives_the_same_run() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--seed", "3"]).succeeded();
    let config = "runs/a/config.toml";
    sandbox.run(&["train", "--config", config, "--name", "b"]).succeeded();
    let last = |run: &str| sandbox.path(&format!("runs/{run}/checkpoints/last.safetensors"));
    assert_eq!(bits(&last("a")), bits(&last("b")));
    let read = |run: &str| {
        let text = std::fs::read_to_string(sandbox.path(&format!("runs/{run}/config.toml")));
        RunConfig::from_toml(&text.unwrap(), run).unwrap()
    };
    assert_eq!(read("a"), read("b"));
}

#[test]
fn the_thread_count_changes_nothing() {
    let sandbox = Sandbox::new();
    let more = ["--width", "4", "--features", "32", "--epochs", "2"];
    for threads in ["1", "2", "4"] {
        let mut args = vec!["--name", threads, "--threads", threads];
        args.extend(more);
        sandbox.train(&args).succeeded();
    }
    let run = |threads: &str| sandbox.path(&format!("runs/{threads}"));
    for threads in ["2", "4"] {
        assert_eq!(losses(&run("1")), losses(&run(threads)), "{threads} threads");
        let last = |t: &str| bits(&run(t).join("checkpoints/last.safetensors"));
        assert!(last("1") == last(threads), "{threads} threads: other weights");
    }
}

#[test]
fn another_seed_is_another_run() {
    let sandbox = Sandbox::new();
    for seed in ["0", "1"] {
        sandbox.train(&["--name", seed, "--seed", seed]).succeeded();
    }
    assert_ne!(losses(&sandbox.path("runs/0")), losses(&sandbox.path("runs/1")));
}

#[test]
fn json_is_events_and_nothing_else() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train(&["--json"]).succeeded();
    let events: Vec<Event> = ran
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}")))
        .collect();
    assert!(matches!(events.first(), Some(Event::RunStarted(_))));
    assert!(matches!(events.last(), Some(Event::RunEnded(_))));
    let has = |test: fn(&Event) -> bool| events.iter().any(test);
    assert!(has(|e| matches!(e, Event::Discovered(d) if d.consistency.is_some())));
    assert!(has(|e| matches!(e, Event::Evaluated(_))));
    assert!(has(|e| matches!(e, Event::CheckpointSaved { .. })));
    ran.says(&["raw pixels", "round 1"]); // the table, for a person
}

#[test]
fn quiet_is_the_table_alone() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train(&["--quiet"]).succeeded();
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.contains("round 1"));
}

/// `train … 2>&1 | head -1`, or a `tee` that Ctrl-C ended first.
#[test]
fn a_run_goes_on_when_nobody_reads_what_it_says() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start(&["--name", "a"]);
    drop(child.stderr.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(sandbox.path("runs/a/report.html").exists());
}

#[test]
fn an_evaluation_agrees_with_the_runs_own() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train(&["--json", "--name", "a"]).succeeded();
    let told = ran.stdout.lines().rev().find_map(|l| match serde_json::from_str(l) {
        Ok(Event::Evaluated(e)) => Some(e.accuracy.top1),
        _ => None,
    });
    let judged = sandbox.run(&["evaluate", "a", "--json"]).succeeded();
    let judged: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged["trained"]["top1"].as_f64(), told);
    for floor in ["raw_pixels", "untrained"] {
        assert!(judged[floor]["top1"].is_f64(), "{judged}");
    }
    let file = "runs/a/checkpoints/round-0.safetensors";
    let ran = sandbox.run(&["evaluate", file, "--features", "recomputed", "--k", "5"]).succeeded();
    assert!(ran.stdout.contains("k 5") && ran.stdout.contains("recomputed"));
}

/// Settings are chosen on them; every command that opens the run's pictures holds out the same.
#[test]
fn a_run_is_validated_on_training_pictures_held_out() {
    let sandbox = Sandbox::new();
    let held = ["--validate-on", "train:20", "--name", "a"];
    let told = "28 pictures of 16×16, validated on 20 training pictures held out";
    let ran = sandbox.train(&held).succeeded().says(&[told]);
    assert!(ran.stdout.contains("chosen by validation accuracy"));
    let config = std::fs::read_to_string(sandbox.path("runs/a/config.toml")).unwrap();
    assert!(config.contains("validate_on = \"train:20\""));
    let report = std::fs::read_to_string(sandbox.path("runs/a/report.html")).unwrap();
    assert!(report.contains("not looked at: validated on 20"));
    let judged = sandbox.run(&["evaluate", "a", "--json"]).succeeded();
    let judged: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged["trained"]["n"], 20);
    sandbox.run(&["report", "a"]).succeeded();
    sandbox.run(&["train", "--resume", "a", "--validate-on", "test"]).failed(2, &["validate_on"]);
    sandbox.run(&["train", "--resume", "a"]).succeeded();
    sandbox
        .train(&["--name", "b", "--validate-on", "train:47"])
        .failed(2, &["47 of the 48", "shapes", "--validate-on train:46"]);
    assert!(!sandbox.path("runs/b").exists());
}

#[test]
fn every_way_of_discovering_runs() {
    let sandbox = Sandbox::new();
    sandbox
        .train(&["--discover-from", "recomputed", "--curriculum", "one-off", "-k", "3"])
        .succeeded();
    sandbox.train(&["--knn-features", "recomputed"]).succeeded();
    sandbox.train(&["--rounds", "0"]).succeeded();
}

#[test]
fn benchmarks_print_their_figures() {
    let sandbox = Sandbox::new();
    let step = "bench step --width 2 --batch 4 --n 50 --size 8 --steps 2 --threads 1";
    let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    let ran = sandbox.run(&words(step)).succeeded();
    for part in ["ms/step", "pictures/s", "GFLOP/s"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    let ran = sandbox.run(&words("bench discover --n 300 --dim 16 --json")).succeeded();
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
    sandbox.run(&words("bench step --batch 0")).failed(2, &["--batch"]);
}

#[test]
fn info_names_machine_and_data() {
    let ran = Sandbox::new().run(&["info"]).succeeded();
    for part in ["CPU", "threads", "resnet18", "shapes", "cifar10", env!("CARGO_PKG_VERSION")] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}
