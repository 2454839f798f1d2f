//! Folders of pictures without any training: the model inside the program, and indices that live.

use std::fs;

use crate::common::{Sandbox, names};
use crate::folders::{fill, picture};

fn sandbox(pictures: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("pictures"), pictures);
    sandbox
}

#[test]
fn a_folder_is_all_that_is_needed() {
    let sandbox = sandbox(12);
    picture(4).save(sandbox.path("pictures/copy.png")).unwrap();
    let said = sandbox.said("index pictures");
    assert!(said.starts_with("pictures.index: 13 pictures"), "{said}");
    let near = sandbox.said("neighbours pictures.index pictures/7.png -k 3");
    assert!(near.starts_with("1.0000  7.png"), "{near}");
    // Of the folder itself, and of several queries, a folder of them among these.
    fill(&sandbox.path("asked"), 2);
    let several = "neighbours pictures pictures/7.png asked -k 1";
    let near = sandbox.said(several);
    let lines: Vec<&str> = near.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(lines[0], "pictures/7.png:");
    assert!(lines[3].starts_with("1.0000  0.png"), "{lines:?}");
    assert_eq!(sandbox.json(&format!("{several} --json")).len(), 3);
    sandbox.run("embed pictures -o v.jsonl").succeeded().prints("13 vectors");
    sandbox.run("duplicates pictures --above 0.99999").succeeded().prints("copy.png");
    sandbox.run("cluster pictures -k 2").succeeded();
    assert!(sandbox.path("clusters/clusters.csv").exists());
    sandbox.write("l.csv", "1.png,x\n2.png,y\n");
    sandbox.run("classify pictures --labels l.csv -o c.csv").succeeded();
    for class in ["cats", "dogs"] {
        fill(&sandbox.path("classes").join(class), 10);
    }
    sandbox.run("evaluate base --data classes").succeeded().prints("this model  kNN");
    let inside = names(&sandbox.path("pictures"));
    assert!(inside.iter().all(|name| name.ends_with(".png")), "{inside:?}");
    assert_eq!(names(&sandbox.path("cache/indices")).len(), 1);
}

#[test]
fn an_index_lives() {
    let sandbox = sandbox(10);
    let index = |more: &str| sandbox.run(&format!("index pictures {more}"));
    index("").succeeded();
    index("").succeeded().prints("0 added, 0 changed, 0 removed, 10 kept");
    fs::remove_file(sandbox.path("pictures/3.png")).unwrap();
    picture(33).save(sandbox.path("pictures/new.png")).unwrap();
    picture(44).save(sandbox.path("pictures/5.png")).unwrap();
    index("").succeeded().prints("1 added, 1 changed, 1 removed, 8 kept");
    // Another folder beside it; names tell which is which.
    fill(&sandbox.path("more"), 2);
    let both = index("more -o pictures.index").succeeded();
    both.prints("2 added, 0 changed, 0 removed, 10 kept");
    let near = sandbox.run("neighbours pictures.index more/1.png -k 2").succeeded();
    near.prints("more/1.png; pictures/1.png");
    // A folder less would lose what is there: that must be meant.
    index("").failed(2, "pictures.index; another folder; more; --overwrite");
    index("--overwrite").succeeded();
}
