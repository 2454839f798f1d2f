//! `anchorhood data check` and `pack`, and training from a pack, as a user runs them. The fixtures
//! are those of crates/data, made by tools/golden/set_fixtures.py.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use image::{Rgb, RgbImage};

use crate::common::{Ran, Sandbox, names, wait_for};

fn fixture(name: &str) -> String {
    format!("{}/../data/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
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
fn a_whole_folder_is_said_to_be_and_what_is_missing_is_named() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 20, 16);
    let check = |folder: &str| sandbox.run(&format!("data check {folder}"));
    check("./mine")
        .succeeded()
        .prints("./mine: a folder of pictures; train 20 pictures; nothing is missing or broken");
    for i in 0..13 {
        sandbox.write(&format!("mine/even/broken{i:02}.jpg"), "no picture");
    }
    let ran = check("./mine").failed(1, "mine; not whole");
    let ran = ran.prints("even/broken09.jpg: it is not a JPEG; … and 3 more");
    assert!(!ran.stdout.contains("broken10"), "{}", ran.stdout);

    fill(&sandbox.path("both/train"), 8, 16);
    fill(&sandbox.path("both/test"), 8, 16);
    fs::rename(sandbox.path("both/test/odd"), sandbox.path("both/test/strange")).unwrap();
    let ran = check("./both").failed(1, "not whole");
    ran.prints("strange: is a class folder of the test part, and not of train");
    sandbox.write("cifar-10-binary.tar.gz", "half an archive");
    let ran = check("./cifar-10-binary.tar.gz").failed(1, "cifar-10-binary.tar.gz");
    ran.prints("c32a1d4ab5d03f1284b67883e8d87530");
}

#[test]
fn published_sets_are_counted() {
    let sandbox = Sandbox::new();
    let ran = Ran::of(sandbox.command("data check").arg(fixture("cub200")));
    let ran = ran.failed(1, "CUB-200-2011; not whole");
    ran.prints("train 6 of 5,994 pictures; expected 200 classes, found 3");
    let ran = Ran::of(sandbox.command("data check --json").arg(fixture("svhn")));
    let object = &ran.failed(1, "").json()[0];
    assert_eq!((&object["whole"], &object["splits"][0]["found"]), (&false.into(), &4.into()));
    assert_eq!(object["splits"][2]["expected"], 531_131);
}

/// To the bit: the packed copy trains as the folder does.
#[test]
fn training_from_a_pack_is_training_from_the_folder() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 60, 24);
    let ran = sandbox.run("data pack ./mine -o mine.pack --size 16").succeeded();
    ran.prints("mine.pack: 60 pictures of 16×16");
    sandbox.train("./mine --crops square --name folder").succeeded().prints("kNN top-1");
    sandbox.train("./mine.pack --name pack").succeeded();
    assert!(sandbox.bits("folder") == sandbox.bits("pack"));
    sandbox.run("data check mine.pack").succeeded().prints("a packed set (mine, 16×16)");
}

#[test]
fn a_killed_pack_leaves_no_file_of_that_name_and_can_be_made_again() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 120, 300);
    let mut command = sandbox.command("data pack ./mine -o mine.pack --size 1024");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The temporary has the process and a count in its name.
    let begun = || {
        let mut all = names(&sandbox.path("")).into_iter();
        all.any(|name| name.starts_with(".mine.pack.") && name.ends_with(".partial"))
    };
    wait_for("temporary file", begun);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!sandbox.path("mine.pack").exists(), "killed too late to show anything");
    assert!(begun());
    sandbox.run("data pack ./mine -o mine.pack").succeeded();
    assert_eq!(names(&sandbox.path("")), ["mine", "mine.pack"]);
}
