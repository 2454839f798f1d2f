//! What a user sees when all goes well.

use std::fs;

use anchorhood::{Event, Images, Run, SETTINGS, Setting, Trainer};
use anchorhood_report::read_metrics;
use serde_json::Value;

use crate::common::{Sandbox, holds, names, train_args, trained};

#[test]
fn a_run_leaves_what_it_promises_and_the_next_gets_a_number_of_its_own() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train("--rounds 2 --tensorboard").succeeded();
    ran.prints("raw pixels; untrained; round 0; round 1; round 2");
    let run = sandbox.path("runs/shapes-1");
    let expected = [
        "charts",
        "checkpoints",
        "config.toml",
        "curve.svg",
        "metrics.jsonl",
        "pictures.safetensors",
        "report.html",
        "tensorboard",
    ];
    assert_eq!(names(&run), expected);
    let expected = ["last", "round-0", "round-1", "round-2"].map(|n| format!("{n}.safetensors"));
    assert_eq!(names(&run.join("checkpoints")), expected);
    assert_eq!(names(&run.join("tensorboard")).len(), 1);
    let losses = sandbox.losses("shapes-1");
    assert!(losses.len() == 3 && losses.iter().all(|l| l.is_finite()), "{losses:?}");
    let before = sandbox.bits("shapes-1");
    sandbox.train("").succeeded();
    assert_eq!(names(&sandbox.path("runs")), ["shapes-1", "shapes-2"]);
    assert_eq!(before, sandbox.bits("shapes-1"));
}

#[test]
fn a_configuration_fed_back_gives_the_same_run_and_another_seed_another() {
    let sandbox = trained("--seed 3");
    sandbox.run("train --config runs/a/config.toml --name b").succeeded();
    assert_eq!(sandbox.bits("a"), sandbox.bits("b"));
    assert_eq!(sandbox.config("a"), sandbox.config("b"));
    assert_ne!(sandbox.losses("a"), trained("").losses("a"));
}

#[test]
fn the_thread_count_changes_nothing() {
    let [one, two, four] = [1, 2, 4].map(|threads| {
        let wide = "--width 4 --features 32 --epochs 2";
        let sandbox = trained(&format!("{wide} --threads {threads}"));
        (sandbox.losses("a"), sandbox.bits("a"))
    });
    assert!(one == two && one == four, "{:?} {:?} {:?}", one.0, two.0, four.0);
}

#[test]
fn json_is_events_and_nothing_else() {
    let ran = Sandbox::new().train("--json").succeeded();
    let events = ran.json().into_iter().map(|line| serde_json::from_value(line).unwrap());
    let events: Vec<Event> = events.collect();
    assert!(matches!(events.first(), Some(Event::RunStarted(_))));
    assert!(matches!(events.last(), Some(Event::RunEnded(_))));
    let has = |test: fn(&Event) -> bool| events.iter().any(test);
    assert!(has(|e| matches!(e, Event::Discovered(d) if d.consistency.is_some())));
    assert!(has(|e| matches!(e, Event::Evaluated(_))));
    assert!(has(|e| matches!(e, Event::CheckpointSaved { .. })));
    ran.says("raw pixels; round 1"); // the table, for a person
}

#[test]
fn quiet_is_the_table_alone() {
    let ran = Sandbox::new().train("--quiet").succeeded();
    assert_eq!(ran.stderr, "");
    ran.prints("round 1");
}

/// `train … 2>&1 | head -1`, or a `tee` that Ctrl-C ended first.
#[test]
fn a_run_goes_on_when_nobody_reads_what_it_says() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start("--name a");
    drop(child.stderr.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(sandbox.path("runs/a/report.html").exists());
}

#[test]
fn an_evaluation_agrees_with_the_runs_own() {
    let sandbox = trained("");
    let told = read_metrics(&sandbox.path("runs/a/metrics.jsonl")).unwrap();
    let told = told.events.iter().rev().find_map(|event| match event {
        Event::Evaluated(e) => Some(e.accuracy.top1),
        _ => None,
    });
    let judged = &sandbox.json("evaluate a --json")[0];
    assert_eq!(judged["trained"]["top1"].as_f64(), told);
    for floor in ["raw_pixels", "untrained"] {
        assert!(judged[floor]["top1"].is_f64(), "{judged}");
    }
    let file = "runs/a/checkpoints/round-0.safetensors";
    let ran = sandbox.run(&format!("evaluate {file} --features recomputed --k 5"));
    ran.succeeded().prints("k 5; recomputed");
}

/// Settings are chosen on them; every command that opens the run's pictures holds out the same.
#[test]
fn a_run_is_validated_on_training_pictures_held_out() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train("--validate-on train:20 --name a").succeeded();
    ran.says("28 pictures of 16×16, validated on 20 training pictures held out")
        .prints("chosen by validation accuracy");
    holds(&sandbox.text("runs/a/config.toml"), "validate_on = \"train:20\"");
    holds(&sandbox.text("runs/a/report.html"), "not looked at: validated on 20");
    let judged: Value = serde_json::from_str(&sandbox.said("evaluate a --json")).unwrap();
    assert_eq!(judged["trained"]["n"], 20);
    sandbox.run("report a").succeeded();
    sandbox.run("train --resume a --validate-on test").failed(2, "validate_on");
    sandbox.run("train --resume a").succeeded();
}

#[test]
fn every_way_of_discovering_runs() {
    let sandbox = Sandbox::new();
    let ways =
        ["--discover-from recomputed --curriculum one-off -k 3", "--knn-features recomputed"];
    for way in ways.into_iter().chain(["--rounds 0"]) {
        sandbox.train(way).succeeded();
    }
}

#[test]
fn benchmarks_print_their_figures() {
    let sandbox = Sandbox::new();
    let step = "bench step --width 2 --batch 4 --n 50 --size 8 --steps 2 --threads 1";
    sandbox.run(step).succeeded().prints("ms/step; pictures/s; GFLOP/s");
    let discover = &sandbox.json("bench discover --n 300 --dim 16 --json")[0];
    assert!(discover["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn info_names_machine_and_data() {
    let ran = Sandbox::new().run("info").succeeded();
    ran.prints(concat!("CPU; threads; resnet18; shapes; cifar10; ", env!("CARGO_PKG_VERSION")));
}

/// A folder that is called as a run is, and runs that are elsewhere.
#[test]
fn a_model_is_named_by_its_flag() {
    let sandbox = trained("");
    crate::folders::fill(&sandbox.path("pictures"), 5);
    sandbox.said("index pictures --model a -o new.index");
    // The index knows which model made it, also where runs are elsewhere.
    let near = "neighbours new.index pictures/2.png --runs nowhere";
    let said = sandbox.said(near);
    assert!(said.starts_with("1.0000  2.png"), "{said}");
    fs::rename(sandbox.path("runs"), sandbox.path("elsewhere")).unwrap();
    sandbox.run(near).failed(2, "new.index; is not found; --model");
    fs::rename(sandbox.path("elsewhere"), sandbox.path("runs")).unwrap();
    crate::folders::fill(&sandbox.path("a"), 3);
    let folder = sandbox.said("index a");
    assert!(folder.starts_with("a.index: 3 pictures"), "{folder}");
}

/// The same settings give the same bits, whoever asks.
#[test]
fn the_library_trains_as_the_command_does() {
    let sandbox = trained("--seed 3");
    let images = Images::open("shapes").unwrap();
    let line = train_args("--seed 3");
    let mut trainer = Trainer::new(&images).run_dir(sandbox.path("runs/b"));
    let mut words = line.split_whitespace().skip(1); // train
    while let Some(flag) = words.next() {
        let is = |s: &&Setting| s.flag.is_some_and(|f| flag == format!("--{}", f.long));
        trainer = trainer.set(SETTINGS.iter().find(is).unwrap(), words.next().unwrap());
    }
    let run = trainer.train().unwrap();
    assert_eq!(sandbox.bits("a"), sandbox.bits("b"));
    assert_eq!(sandbox.config("a"), sandbox.config("b"));
    assert!(run.ended().unwrap().is_some() && run.stopped_at().is_none());
    assert_eq!(
        run.summary().unwrap().table(),
        Run::open(run.path()).unwrap().summary().unwrap().table()
    );
    assert_eq!(names(&sandbox.path("runs/a")), names(&sandbox.path("runs/b")));
}

#[test]
fn every_setting_is_explained() {
    let sandbox = Sandbox::new();
    sandbox.write("some.toml", "[training]\nbatch = 16\n");
    let line = "train shapes --config some.toml --epochs 3 --set discovery.fill=false --explain";
    let ran = sandbox.run(line).succeeded();
    let found = |name: &str| {
        let line = ran.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap().split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("training.batch"), "16 some.toml");
    assert_eq!(found("training.epochs"), "3 asked for");
    assert_eq!(found("discovery.fill"), "false asked for");
    assert_eq!(found("training.rounds"), "2 preset quick");
    assert_eq!(ran.stdout.lines().count(), SETTINGS.len());
    assert!(!sandbox.path("runs").exists(), "nothing is written");
    let json = sandbox.json("train shapes --explain --json");
    assert_eq!(json[0].as_array().unwrap().len(), SETTINGS.len());
}
