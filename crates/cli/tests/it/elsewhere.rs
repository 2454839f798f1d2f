//! A run is started in one folder and used from another.

use std::fs;

use crate::common::{Ran, Sandbox, train_args};
use crate::folders;

/// A run `a` on the folder `pictures`, of two classes, started in `home` beside the empty folder
/// `away`.
fn home_and_away() -> Sandbox {
    let sandbox = Sandbox::new();
    for class in ["x", "y"] {
        folders::fill(&sandbox.path(&format!("home/pictures/{class}")), 24);
    }
    fs::create_dir(sandbox.path("away")).unwrap();
    from(&sandbox, "home", &train_args("pictures --name a --quiet")).succeeded();
    sandbox
}

fn from(sandbox: &Sandbox, folder: &str, words: &str) -> Ran {
    Ran::of(sandbox.command(words).current_dir(sandbox.path(folder)))
}

/// Every command that opens a run's pictures by itself.
const COMMANDS: [&str; 4] = [
    "evaluate ../home/runs/a",
    "evaluate ../home/runs/a --layer conv5",
    "attention ../home/runs/a --pictures 1",
    "train --resume ../home/runs/a",
];

#[test]
fn a_run_finds_its_pictures_from_any_folder() {
    let sandbox = home_and_away();
    for words in COMMANDS {
        from(&sandbox, "away", words).succeeded();
    }
    let page = "home/runs/a/report.html";
    fs::remove_file(sandbox.path(page)).unwrap();
    let ran = from(&sandbox, "away", "report ../home/runs/a").succeeded();
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(sandbox.text(page).contains("Surest"));
    from(&sandbox, "away", "train --config ../home/runs/a/config.toml").succeeded();
    // The project goes elsewhere as a whole, and finds its pictures beside itself.
    fs::rename(sandbox.path("home"), sandbox.path("new")).unwrap();
    from(&sandbox, "new", "evaluate a").succeeded();
}

#[test]
fn pictures_that_moved_are_asked_for() {
    let sandbox = home_and_away();
    let home = sandbox.path("home");
    fs::rename(home.join("pictures"), sandbox.path("moved")).unwrap();
    let said = format!("`pictures`, as seen from; {}; --data PATH", home.display());
    for words in COMMANDS {
        from(&sandbox, "away", words).failed(2, &said);
        from(&sandbox, "away", &format!("{words} --data ../moved")).succeeded();
        let wrong = from(&sandbox, "away", &format!("{words} --data ../gone"));
        wrong.failed(2, "--data: ../gone");
    }
    from(&sandbox, "away", "serve ../home/runs/a --port 0").failed(2, &said);
    let report = from(&sandbox, "away", "report ../home/runs/a");
    report
        .says("no pictures can be shown; as seen from; --data PATH")
        .failed(1, "is kept; --data; --overwrite");

    // A run from before the folder was kept.
    let config = sandbox.text("home/runs/a/config.toml");
    let older: Vec<&str> = config.lines().filter(|l| !l.starts_with("seen_from")).collect();
    assert_eq!(older.len() + 1, config.lines().count());
    sandbox.write("home/runs/a/config.toml", older.join("\n"));
    let ran = from(&sandbox, "away", COMMANDS[2]);
    ran.failed(2, "as seen from the folder it was started in; --data PATH");
    fs::rename(sandbox.path("moved"), sandbox.path("home/pictures")).unwrap();
    from(&sandbox, "home", "report a").succeeded();
}

/// Where pictures have moved, the run is judged as before: by what it remembers of them, and of no
/// others.
#[test]
fn a_memory_is_of_its_own_pictures_wherever_they_are() {
    let sandbox = home_and_away();
    let judged =
        |more: &str| from(&sandbox, "away", &format!("evaluate ../home/runs/a --json {more}"));
    let before = judged("").succeeded().stdout;
    fs::rename(sandbox.path("home/pictures"), sandbox.path("pictures")).unwrap();
    let memory = "--data ../pictures --features memory";
    let after = judged(memory).succeeded().stdout;
    let figure = |text: &str| {
        let all: serde_json::Value = serde_json::from_str(text).unwrap();
        (all["features"].clone(), all["trained"].clone())
    };
    assert_eq!(figure(&before), figure(&after));
    fs::remove_file(sandbox.path("pictures/x/0.png")).unwrap();
    judged(memory).failed(2, "--features memory; --features recomputed");
    judged("--data ../pictures").succeeded();
}

/// Pictures that are not the run's are not mixed up with those it remembers.
#[test]
fn a_run_does_not_go_on_with_other_pictures() {
    let sandbox = home_and_away();
    for class in ["x", "y"] {
        folders::fill(&sandbox.path(&format!("other/{class}")), 20);
    }
    let ran = from(&sandbox, "away", "train --resume ../home/runs/a --data ../other");
    ran.failed(1, "give the data it was trained on");
}
