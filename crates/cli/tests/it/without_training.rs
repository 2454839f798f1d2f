//! Folders of pictures without any training: the model inside the program, and indices that live.

use std::fs;
use std::path::Path;

use crate::common::{Sandbox, names};
use crate::folders::{fill, picture, trained};

fn sandbox(pictures: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("pictures"), pictures);
    sandbox
}

fn written_into(folder: &Path) -> usize {
    let no_picture = |name: &String| !name.ends_with(".png");
    names(folder).into_iter().filter(no_picture).count()
}

#[test]
fn a_folder_is_all_that_is_needed() {
    let sandbox = sandbox(12);
    picture(4).save(sandbox.path("pictures/copy.png")).unwrap();
    let run = |args: &[&str]| sandbox.run(args).succeeded();
    let said = run(&["index", "pictures"]);
    assert!(said.stdout.starts_with("pictures.index: 13 pictures"), "{said:?}");
    let near = run(&["neighbours", "pictures.index", "pictures/7.png", "-k", "3"]);
    assert!(near.stdout.starts_with("1.0000  7.png"), "{near:?}");
    // Of the folder itself, and of several queries, a folder of them among these.
    fill(&sandbox.path("asked"), 2);
    let args = ["neighbours", "pictures", "pictures/7.png", "asked", "-k", "1"];
    let near = run(&args);
    let lines: Vec<&str> = near.stdout.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(lines[0], "pictures/7.png:");
    assert!(lines[3].starts_with("1.0000  0.png"), "{lines:?}");
    let json = run(&[&args[..], &["--json"]].concat());
    assert_eq!(json.stdout.lines().count(), 3);
    let said = run(&["embed", "pictures", "-o", "v.jsonl"]);
    assert!(said.stdout.contains("13 vectors"), "{said:?}");
    let copies = run(&["duplicates", "pictures", "--above", "0.99999"]);
    assert!(copies.stdout.contains("copy.png"), "{copies:?}");
    run(&["cluster", "pictures", "-k", "2"]);
    assert!(sandbox.path("clusters/clusters.csv").exists());
    fs::write(sandbox.path("l.csv"), "1.png,x\n2.png,y\n").unwrap();
    run(&["classify", "pictures", "--labels", "l.csv", "-o", "c.csv"]);
    for class in ["cats", "dogs"] {
        fill(&sandbox.path("classes").join(class), 10);
    }
    let judged = run(&["evaluate", "base", "--data", "classes"]);
    assert!(judged.stdout.contains("this model  kNN"), "{judged:?}");
    assert_eq!(written_into(&sandbox.path("pictures")), 0);
    assert_eq!(names(&sandbox.path("cache/indices")).len(), 1);
}

#[test]
fn an_index_lives() {
    let sandbox = sandbox(10);
    let index = |more: &[&str]| sandbox.run(&[&["index", "pictures"], more].concat());
    index(&[]).succeeded();
    let again = index(&[]).succeeded();
    let kept = "0 added, 0 changed, 0 removed, 10 kept";
    assert!(again.stdout.contains(kept), "{again:?}");
    fs::remove_file(sandbox.path("pictures/3.png")).unwrap();
    picture(33).save(sandbox.path("pictures/new.png")).unwrap();
    picture(44).save(sandbox.path("pictures/5.png")).unwrap();
    let said = index(&[]).succeeded().stdout;
    assert!(said.contains("1 added, 1 changed, 1 removed, 8 kept"), "{said}");
    // Another folder beside it; names tell which is which.
    fill(&sandbox.path("more"), 2);
    let args = ["index", "pictures", "more", "-o", "pictures.index"];
    let said = sandbox.run(&args).succeeded().stdout;
    assert!(said.contains("2 added, 0 changed, 0 removed, 10 kept"), "{said}");
    let near = ["neighbours", "pictures.index", "more/1.png", "-k", "2"];
    let near = sandbox.run(&near).succeeded().stdout;
    assert!(near.contains("more/1.png") && near.contains("pictures/1.png"), "{near}");
    // A folder less would lose what is there: that must be meant.
    index(&[]).failed(2, &["pictures.index", "another folder", "more", "--overwrite"]);
    index(&["--overwrite"]).succeeded();
}

#[test]
fn a_model_is_named_by_its_flag() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 5);
    let new = ["index", "pictures", "--model", "a", "-o", "new.index"];
    sandbox.run(&new).succeeded();
    for command in ["index", "embed", "neighbours", "serve", "cluster"] {
        let words = [command, "a", "pictures", "-o", "old.npy"];
        let words =
            if command == "neighbours" || command == "serve" { &words[..3] } else { &words };
        sandbox.run(words).failed(2, &["--model a"]);
    }
    // The index knows which model made it, also where runs are elsewhere.
    let near = ["neighbours", "new.index", "pictures/2.png", "--runs", "nowhere"];
    let said = sandbox.run(&near).succeeded().stdout;
    assert!(said.starts_with("1.0000  2.png"), "{said}");
    fs::rename(sandbox.path("runs"), sandbox.path("elsewhere")).unwrap();
    sandbox.run(&near).failed(2, &["new.index", "is not found", "--model"]);
    // A folder that is called as a run is.
    fs::rename(sandbox.path("elsewhere"), sandbox.path("runs")).unwrap();
    fill(&sandbox.path("a"), 3);
    let folder = sandbox.run(&["index", "a"]).succeeded().stdout;
    assert!(folder.starts_with("a.index: 3 pictures"), "{folder}");
    sandbox.run(&["index", "base"]).failed(2, &["--model base"]);
}
