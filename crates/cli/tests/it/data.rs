//! `anchorhood data check` and `pack`, and training from a pack, as a user runs them. The fixtures
//! are those of crates/data, made by tools/golden/set_fixtures.py.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use image::{Rgb, RgbImage};

use crate::common::{Sandbox, bits, names};

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/tests/fixtures");
    PathBuf::from(folder).join(name).display().to_string()
}

/// Pictures in two class folders.
fn fill(folder: &Path, count: u32, side: u32) {
    for i in 0..count {
        let class = folder.join(if i % 2 == 0 { "even" } else { "odd" });
        fs::create_dir_all(&class).unwrap();
        let picture = RgbImage::from_fn(side, side, |x, y| {
            Rgb([(x * 7 + i) as u8, (y * 5) as u8, (i * 11) as u8])
        });
        picture.save(class.join(format!("{i}.png"))).unwrap();
    }
}

#[test]
fn a_whole_folder_is_said_to_be() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 20, 16);
    let ran = sandbox.run(&["data", "check", "./mine"]).succeeded();
    assert!(ran.stdout.contains("./mine: a folder of pictures"), "{}", ran.stdout);
    assert!(ran.stdout.contains("train 20 pictures"), "{}", ran.stdout);
    assert!(ran.stdout.contains("nothing is missing or broken"), "{}", ran.stdout);
}

#[test]
fn ten_broken_files_are_named_and_the_rest_counted() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 20, 16);
    for i in 0..13 {
        fs::write(sandbox.path(&format!("mine/even/broken{i:02}.jpg")), "no picture").unwrap();
    }
    let ran = sandbox.run(&["data", "check", "./mine"]).failed(1, &["mine", "not whole"]);
    assert!(ran.stdout.contains("even/broken09.jpg: it is not a JPEG"), "{}", ran.stdout);
    assert!(
        !ran.stdout.contains("broken10") && ran.stdout.contains("… and 3 more"),
        "{}",
        ran.stdout
    );
}

#[test]
fn published_sets_are_counted() {
    let sandbox = Sandbox::new();
    let cub = fixture("cub200");
    let ran = sandbox.run(&["data", "check", &cub]).failed(1, &["CUB-200-2011", "not whole"]);
    assert!(ran.stdout.contains("train 6 of 5,994 pictures"), "{}", ran.stdout);
    assert!(ran.stdout.contains("expected 200 classes, found 3"), "{}", ran.stdout);
    let svhn = fixture("svhn");
    let ran = sandbox.run(&["data", "check", &svhn, "--json"]);
    assert_eq!(ran.code, Some(1));
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&object["whole"], &object["splits"][0]["found"]), (&false.into(), &4.into()));
    assert_eq!(object["splits"][2]["expected"], 531_131);
}

#[test]
fn class_folders_that_differ_are_named() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine/train"), 8, 16);
    fill(&sandbox.path("mine/test"), 8, 16);
    fs::rename(sandbox.path("mine/test/odd"), sandbox.path("mine/test/strange")).unwrap();
    let ran = sandbox.run(&["data", "check", "./mine"]).failed(1, &["not whole"]);
    assert!(
        ran.stdout.contains("strange: is a class folder of the test part, and not of train"),
        "{}",
        ran.stdout
    );
}

#[test]
fn nothing_to_check_is_bad_usage() {
    let sandbox = Sandbox::new();
    sandbox.run(&["data", "check", "./nowhere"]).failed(2, &["./nowhere", "no such file"]);
    sandbox.run(&["data", "check", "dogs"]).failed(2, &["dogs was not found", "data fetch dogs"]);
    sandbox.run(&["data", "check", "shapes"]).failed(2, &["shapes", "drawn"]);
    sandbox.run(&["data", "pack", "shapes", "-o", "x.pack"]).failed(2, &["shapes are drawn"]);
}

#[test]
fn a_wrong_archive_says_which_sum_was_expected() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("cifar-10-binary.tar.gz"), "half an archive").unwrap();
    let ran = sandbox.run(&["data", "check", "./cifar-10-binary.tar.gz"]);
    let ran = ran.failed(1, &["cifar-10-binary.tar.gz"]);
    assert!(ran.stdout.contains("c32a1d4ab5d03f1284b67883e8d87530"), "{}", ran.stdout);
}

/// To the bit: the packed copy trains as the folder does.
#[test]
fn training_from_a_pack_is_training_from_the_folder() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 60, 24);
    let ran =
        sandbox.run(&["data", "pack", "./mine", "-o", "mine.pack", "--size", "16"]).succeeded();
    assert!(ran.stdout.contains("mine.pack: 60 pictures of 16×16"), "{}", ran.stdout);
    sandbox.train(&["./mine", "--crops", "square", "--name", "folder"]).succeeded();
    sandbox.train(&["./mine.pack", "--name", "pack"]).succeeded();
    let last = |run: &str| bits(&sandbox.path(&format!("runs/{run}/checkpoints/last.safetensors")));
    assert!(last("folder") == last("pack"));
    let ran = sandbox.run(&["data", "check", "mine.pack"]).succeeded();
    assert!(ran.stdout.contains("a packed set (mine, 16×16)"), "{}", ran.stdout);
}

#[test]
fn a_killed_pack_leaves_no_file_of_that_name_and_can_be_made_again() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 120, 300);
    let args = ["data", "pack", "./mine", "-o", "mine.pack", "--size", "1024"];
    let mut child = sandbox.command(&args).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    // The temporary has the process and a count in its name.
    let begun = || {
        let mut all = names(&sandbox.path("")).into_iter();
        all.any(|name| name.starts_with(".mine.pack.") && name.ends_with(".partial"))
    };
    while !begun() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!sandbox.path("mine.pack").exists(), "killed too late to show anything");
    assert!(begun());
    sandbox.run(&["data", "pack", "./mine", "-o", "mine.pack"]).succeeded();
    assert_eq!(names(&sandbox.path("")), ["mine", "mine.pack"]);
}

#[test]
fn bad_packs_are_refused_by_train() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("mine.pack"), "hello").unwrap();
    sandbox.train(&["./mine.pack"]).failed(1, &["mine.pack", "not a packed set", "data pack"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}
