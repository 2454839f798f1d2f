//! What `anchorhood duplicates` moves, and puts back, as a user runs it; and what it leaves alone.
#![cfg(unix)] // links

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use image::imageops;
use serde_json::Value;

use crate::common::{self, Ran, Sandbox, files_below, names};
use crate::folders::scene;

/// Folders `photos` with four scenes and a copy of the first, and `other` with that scene and
/// another.
fn photos() -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["photos", "other"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    for number in 0..4 {
        let path = sandbox.path(&format!("photos/{number}.png"));
        scene(number).save(path).unwrap();
    }
    sandbox.write("photos/z.png", sandbox.read("photos/0.png"));
    sandbox.write("other/x.png", sandbox.read("photos/0.png"));
    scene(9).save(sandbox.path("other/y.png")).unwrap();
    sandbox
}

fn duplicates(sandbox: &Sandbox, more: &str) -> Ran {
    sandbox.run(&format!("duplicates {more}"))
}

/// It is refused, by this code or by either.
fn refused(sandbox: &Sandbox, more: &str) {
    let ran = duplicates(sandbox, more);
    let code = ran.code.unwrap();
    assert!([1, 2].contains(&code), "{ran:?}");
    ran.failed(code, "");
}

/// The images that would go, of all groups.
fn others(ran: Ran) -> Vec<String> {
    let groups = ran.succeeded().json();
    let others = groups.iter().flat_map(|g| g["others"].as_array().unwrap());
    others.map(|other| other["path"].as_str().unwrap().to_string()).collect()
}

/// The images of a folder, and how many there are.
fn contents(sandbox: &Sandbox, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    files_below(&sandbox.path(folder))
}

/// Puts back what was moved: the folder is as it was before.
fn undone(sandbox: &Sandbox, folder: &str, before: &BTreeMap<PathBuf, Vec<u8>>) {
    duplicates(sandbox, "--undo copies/undo.jsonl").succeeded();
    assert_eq!(&contents(sandbox, folder), before);
}

#[test]
fn one_file_is_one_image_however_it_is_named() {
    let sandbox = photos();
    symlink("1.png", sandbox.path("photos/a link.png")).unwrap();
    fs::hard_link(sandbox.path("photos/2.png"), sandbox.path("photos/hard.png")).unwrap();
    symlink("photos", sandbox.path("link")).unwrap();
    for folders in ["photos", "photos link", "photos photos/../photos", "link photos photos"] {
        let found = others(duplicates(&sandbox, &format!("{folders} --json")));
        assert_eq!(found.len(), 1, "{folders}: {found:?}");
        assert!(found[0].ends_with("0.png") || found[0].ends_with("z.png"));
    }
    let before = contents(&sandbox, "photos");
    duplicates(&sandbox, "photos link --move-to copies").succeeded();
    // The real files and the links to them are there.
    assert_eq!(contents(&sandbox, "photos").len(), before.len() - 1);
    undone(&sandbox, "photos", &before);
}

#[test]
fn folders_that_overlap_are_not_compared_with_each_other() {
    let sandbox = photos();
    fs::create_dir(sandbox.path("photos/in")).unwrap();
    scene(7).save(sandbox.path("photos/in/7.png")).unwrap();
    symlink("photos", sandbox.path("link")).unwrap();
    symlink("photos/in", sandbox.path("inner")).unwrap();
    sandbox.run("index photos -o p.index --labels none").succeeded();
    let before = contents(&sandbox, "photos");
    for [first, against] in [
        ["p.index", "p.index"],
        ["photos", "photos/"],
        ["photos", "link"],
        ["link", "photos"],
        ["p.index", "photos/in"],
        ["photos/in", "photos"],
        ["photos", "inner"],
    ] {
        let ran = duplicates(&sandbox, &format!("{first} --against {against} --move-to copies"));
        ran.failed(2, "");
    }
    assert_eq!(contents(&sandbox, "photos"), before);
    // Pairs of one folder and the other, and of neither alone.
    let across = others(duplicates(&sandbox, "photos --against other --json"));
    assert_eq!(across.len(), 2, "{across:?}");
    assert!(across.iter().all(|path| path.contains("/photos/")));
    // A file that is in both by a link stays.
    symlink(sandbox.path("photos/z.png"), sandbox.path("other/z.png")).unwrap();
    duplicates(&sandbox, "photos --against other --move-to copies").succeeded();
    assert!(sandbox.path("photos/z.png").exists() && !sandbox.path("photos/0.png").exists());
}

/// Names that lead out are moved below the target too, which has a test of its own in the library.
#[test]
fn images_of_a_list_are_moved_and_put_back() {
    let sandbox = photos();
    // Links cannot be moved: of these two at least one is a copy that stays.
    for number in [5, 6] {
        let outside = sandbox.path(&format!("outside-{number}.png"));
        scene(5).save(&outside).unwrap();
        symlink(outside, sandbox.path(&format!("photos/{number}.png"))).unwrap();
    }
    let absolute = sandbox.path("photos/z.png").display().to_string();
    let photos = ["0", "1", "5", "6"].map(|n| format!("../photos/{n}.png\n")).concat();
    sandbox.write("lists/l.txt", photos + &absolute);
    let before = contents(&sandbox, "photos");
    duplicates(&sandbox, "lists/l.txt --move-to copies").failed(1, "");
    assert_eq!(contents(&sandbox, "photos").len(), before.len() - 1);
    undone(&sandbox, "photos", &before);
    assert_eq!(names(&sandbox.path("lists")), ["l.txt"]);
}

/// The images of a list lie where it says, not where the list does.
#[test]
fn a_list_protects_the_folders_of_its_images_alone() {
    let sandbox = photos();
    let photo = |name: &str| sandbox.path(&format!("photos/{name}.png")).display().to_string();
    sandbox.write("lists/l.txt", ["0", "z"].map(photo).join("\n"));
    sandbox.write("here.txt", "photos/0.png\nphotos/z.png\n");
    symlink("../other", sandbox.path("photos/linked")).unwrap();
    let before = contents(&sandbox, "photos");
    duplicates(&sandbox, "lists/l.txt --move-to photos/copies").failed(2, "photos/copies");
    duplicates(&sandbox, "photos --move-to other/copies").failed(2, "other/copies");
    for list in ["here.txt --move-to copies", "lists/l.txt --move-to lists/copies"] {
        duplicates(&sandbox, list).succeeded();
        assert_eq!(contents(&sandbox, "photos").len(), before.len() - 1, "{list}");
        let record = format!("{}/undo.jsonl", list.split(' ').next_back().unwrap());
        duplicates(&sandbox, &format!("--undo {record}")).succeeded();
        assert_eq!(contents(&sandbox, "photos"), before);
    }
}

/// A link would lead nowhere where the file it leads to were moved.
#[test]
fn a_copy_that_a_link_leads_to_stays_and_is_named() {
    let sandbox = photos();
    symlink("z.png", sandbox.path("photos/link.png")).unwrap();
    let before = contents(&sandbox, "photos");
    let plan = duplicates(&sandbox, "photos --move-to copies --dry-run");
    plan.failed(1, "1 picture could not be moved");
    let ran = duplicates(&sandbox, "photos --move-to copies");
    assert!(ran.stderr.contains("z.png: not moved") && ran.stderr.contains("link.png"), "{ran:?}");
    assert_eq!(contents(&sandbox, "photos"), before);
    assert!(sandbox.path("photos/link.png").exists());
}

#[test]
fn a_target_among_the_images_is_refused_and_a_dry_run_makes_nothing() {
    let sandbox = photos();
    symlink("photos", sandbox.path("link")).unwrap();
    symlink("photos/not yet", sandbox.path("dangling")).unwrap();
    let before = contents(&sandbox, "photos");
    for target in ["photos", "photos/copies", "link/new", "dangling", "dangling/x"] {
        duplicates(&sandbox, &format!("photos --move-to {target}")).failed(2, target);
    }
    let told = duplicates(&sandbox, "photos --move-to copies --dry-run --json").succeeded().json();
    let planned = told.last().unwrap();
    let from = Path::new(planned["from"].as_str().unwrap());
    assert!(from.exists() && !sandbox.path("copies").exists());
    assert_eq!(contents(&sandbox, "photos"), before);
    duplicates(&sandbox, "photos --move-to copies").succeeded();
    assert!(!from.exists() && Path::new(planned["to"].as_str().unwrap()).exists());
}

#[test]
fn a_record_of_nobody_moves_nothing() {
    let sandbox = photos();
    duplicates(&sandbox, "photos --move-to copies").succeeded();
    let record = "copies/undo.jsonl";
    let whole = sandbox.text(record);
    let all = || ["photos", "copies", "other"].map(|folder| contents(&sandbox, folder));
    let undo = |more: &str| duplicates(&sandbox, &format!("--undo {record} {more}"));
    let before = all();
    sandbox.write(record, whole.replace("photos", "other"));
    undo("").failed(2, "undo.jsonl");
    undo("--trust-record").failed(2, "");
    sandbox.write(record, "{\"from\":\"/photos/start.png\",\"to\":\"../other/x.png\"}\n");
    undo("").failed(2, "undo.jsonl");
    undo("--trust-record").failed(1, "");
    sandbox.write(record, &whole);

    // Another user's, or one whose key is gone: what it would do is told, and done where it is
    // trusted.
    let key = sandbox.path("user-data/anchorhood/undo.key");
    fs::rename(&key, sandbox.path("key")).unwrap();
    undo("").failed(2, "--trust-record").prints(".png");
    assert_eq!(all(), before);
    // No key is needed for it, nor a folder for one.
    let mut homeless = sandbox.command(&format!("duplicates --undo {record} --trust-record"));
    homeless.env_remove("XDG_DATA_HOME").env_remove("HOME");
    Ran::from(homeless.output().unwrap()).succeeded();
    assert_eq!(contents(&sandbox, "photos").len(), 5);
    // The record is another's now, and nothing is added to it.
    for more in ["", "--dry-run"] {
        let ran = duplicates(&sandbox, &format!("photos --move-to copies {more}"));
        ran.failed(2, "undo.jsonl");
    }
    assert_eq!(contents(&sandbox, "photos").len(), 5);
    duplicates(&sandbox, "photos --trust-record").failed(2, "");
}

#[test]
fn pipes_devices_and_circles_of_links_are_refused_at_once() {
    let sandbox = photos();
    let pipe = sandbox.path("pipe");
    if !common::pipe(&pipe) {
        return;
    }
    symlink("round", sandbox.path("round")).unwrap();
    let before = contents(&sandbox, "photos");
    for name in ["pipe", "/dev/zero", "round", "gone"] {
        refused(&sandbox, &format!("--undo {name}"));
    }
    for name in ["pipe", "/dev/zero", "round", "photos"] {
        refused(&sandbox, &format!("photos --decisions {name} --move-to copies"));
    }
    refused(&sandbox, "photos --move-to round/copies");
    assert_eq!(contents(&sandbox, "photos"), before);
}

#[test]
fn two_images_that_are_no_duplicates_are_remembered() {
    let sandbox = photos();
    let count = |more: &str| others(duplicates(&sandbox, &format!("photos --json {more}"))).len();
    assert_eq!(count(""), 1);
    assert_eq!(count("--not 0.png z.png"), 0);
    assert_eq!(count(""), 0, "it is said once");
    // In another file nothing was decided; in the cache nothing lies; under other names it holds.
    assert_eq!(count("--decisions mine.jsonl"), 1);
    fs::remove_dir_all(sandbox.path("cache")).unwrap();
    fs::rename(sandbox.path("photos/z.png"), sandbox.path("photos/new.png")).unwrap();
    assert_eq!(count(""), 0);
    assert_eq!(count("--decisions mine.jsonl --not photos/new.png 0.png"), 0);
    assert_eq!(count("--decisions mine.jsonl"), 0);

    let own = "user-data/anchorhood/decisions.jsonl";
    sandbox.write(own, sandbox.text(own).replace("content", "c0ntent"));
    duplicates(&sandbox, "photos").failed(2, "decisions.jsonl; line 2");
    for other in ["photos/0.png", "other/x.png"] {
        let bytes = sandbox.read(other);
        let ran = duplicates(&sandbox, &format!("photos --decisions {other} --not 1.png 2.png"));
        ran.failed(2, other);
        assert_eq!(sandbox.read(other), bytes);
    }
    let not =
        |two: &str| duplicates(&sandbox, &format!("photos --decisions mine.jsonl --not {two}"));
    not("0.png nobody.png").failed(2, "nobody.png");
    not("0.png ./photos/0.png").failed(2, "");
}

#[test]
fn names_that_are_no_text_are_kept_reversibly() {
    let sandbox = photos();
    let name = OsStr::from_bytes(b"caf\xe9.png");
    let path = sandbox.path("photos").join(name);
    if fs::rename(sandbox.path("photos/z.png"), &path).is_err() {
        return anchorhood_testing::skip("a file system of Unicode names alone");
    }
    fs::remove_file(sandbox.path("photos/0.png")).unwrap();
    fs::create_dir(sandbox.path("photos/z")).unwrap();
    fs::copy(&path, sandbox.path("photos/z").join(name)).unwrap();
    let before = contents(&sandbox, "photos");
    duplicates(&sandbox, "photos --move-to copies").succeeded();
    assert_eq!(contents(&sandbox, "photos").len(), before.len() - 1);
    undone(&sandbox, "photos", &before);

    let mut search = sandbox.command("neighbours photos --json -k 1");
    let answer = &Ran::of(search.arg(&path)).succeeded().json()[0];
    assert!(answer["query"].as_str().unwrap().ends_with("/photos/caf\\xe9.png"), "{answer}");

    // A folder that is called so, from an index and when it is looked at again.
    let folder = sandbox.path("").join(OsStr::from_bytes(b"f\xe9"));
    fs::rename(sandbox.path("photos"), &folder).unwrap();
    let index = |words: &str| Ran::of(sandbox.command(words).arg(&folder)).succeeded();
    index("index -o f.index");
    duplicates(&sandbox, "f.index --move-to copies").succeeded();
    assert_eq!(fs::read_dir(sandbox.path("copies")).unwrap().count(), 2, "a copy and a record");
    index("index -o f.index").prints("1 removed");
}

#[test]
fn the_rules_say_which_copy_is_kept() {
    let sandbox = photos();
    let half = imageops::resize(&scene(1), 48, 36, imageops::FilterType::Triangle);
    half.save(sandbox.path("other/half.png")).unwrap();
    for (more, expected) in [
        ("photos other --keep smallest,first-name", ["other/half.png", "other/x.png"]),
        ("photos other --keep largest,first-name", ["other/x.png", "photos/1.png"]),
        ("photos other --keep first-folder", ["photos/0.png", "photos/1.png"]),
        ("other photos --keep largest --keep first-folder", ["other/x.png", "photos/1.png"]),
    ] {
        let groups = duplicates(&sandbox, &format!("{more} --json")).succeeded().json();
        let keep = |group: &Value| group["keep"].as_str().unwrap().to_string();
        let mut kept: Vec<String> = groups.iter().map(keep).collect();
        kept.sort();
        assert_eq!(kept, expected, "{more}");
    }
}

#[test]
fn bursts_are_shown_where_asked_for_and_never_moved() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("photos")).unwrap();
    let large = imageops::resize(&scene(4), 660, 500, imageops::FilterType::CatmullRom);
    for (name, right, down) in [("a", 8, 8), ("b", 12, 5)] {
        let mut shot = imageops::crop_imm(&large, right, down, 640, 480).to_image();
        for (x, y, pixel) in shot.enumerate_pixels_mut() {
            let noise = ((x * 7919 + y * 104_729 + right * 1013) as f32).sin() * 6.0;
            pixel.0 = pixel.0.map(|v| (f32::from(v) + noise).clamp(0.0, 255.0) as u8);
        }
        shot.save(sandbox.path(&format!("photos/{name}.png"))).unwrap();
    }
    scene(8).save(sandbox.path("photos/c.png")).unwrap();
    let told = duplicates(&sandbox, "photos --move-to copies --bursts --json").succeeded().json();
    assert_eq!(told, [serde_json::json!({ "burst": ["a.png", "b.png"] })]);
    assert_eq!(names(&sandbox.path("photos")), ["a.png", "b.png", "c.png"]);
    assert!(!sandbox.path("copies").exists());
    assert_eq!(duplicates(&sandbox, "photos").succeeded().stdout, "");
}
