//! What `anchorhood duplicates` moves, and puts back, as a user runs it; and what it leaves alone.
#![cfg(unix)] // links

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use image::imageops;

use crate::common::{Ran, Sandbox, names};
use crate::folders::{lines, scene};

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
    fs::copy(sandbox.path("photos/0.png"), sandbox.path("photos/z.png")).unwrap();
    fs::copy(sandbox.path("photos/0.png"), sandbox.path("other/x.png")).unwrap();
    scene(9).save(sandbox.path("other/y.png")).unwrap();
    sandbox
}

fn duplicates(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.run(&[&["duplicates"], args].concat())
}

/// The images that would go, of all groups.
fn others(ran: Ran) -> Vec<String> {
    let groups = lines(&ran.succeeded().stdout);
    let others = groups.iter().flat_map(|g| g["others"].as_array().unwrap());
    let path = |other: &serde_json::Value| other["path"].as_str().unwrap().to_string();
    others.map(path).collect()
}

/// Every file below a folder, with its bytes; links as what they lead to.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn one_file_is_one_image_however_it_is_named() {
    let sandbox = photos();
    symlink("1.png", sandbox.path("photos/a link.png")).unwrap();
    fs::hard_link(sandbox.path("photos/2.png"), sandbox.path("photos/hard.png")).unwrap();
    symlink("photos", sandbox.path("link")).unwrap();
    for folders in [
        &["photos"][..],
        &["photos", "link"],
        &["photos", "photos/../photos"],
        &["link", "photos", "photos"],
    ] {
        let found = others(duplicates(&sandbox, &[folders, &["--json"]].concat()));
        assert_eq!(found.len(), 1, "{folders:?}: {found:?}");
        assert!(found[0].ends_with("0.png") || found[0].ends_with("z.png"));
    }
    let before = contents(&sandbox.path("photos"));
    let moving = ["photos", "link", "--move-to", "copies"];
    duplicates(&sandbox, &moving).succeeded();
    // The real files and the links to them are there.
    assert_eq!(contents(&sandbox.path("photos")).len(), before.len() - 1);
    duplicates(&sandbox, &["--undo", "copies/undo.jsonl"]).succeeded();
    assert_eq!(contents(&sandbox.path("photos")), before);
}

#[test]
fn folders_that_overlap_are_not_compared_with_each_other() {
    let sandbox = photos();
    fs::create_dir(sandbox.path("photos/in")).unwrap();
    scene(7).save(sandbox.path("photos/in/7.png")).unwrap();
    symlink("photos", sandbox.path("link")).unwrap();
    symlink("photos/in", sandbox.path("inner")).unwrap();
    let index = ["index", "photos", "-o", "p.index", "--labels", "none"];
    sandbox.run(&index).succeeded();
    let before = contents(&sandbox.path("photos"));
    for [first, against] in [
        ["p.index", "p.index"],
        ["photos", "photos/"],
        ["photos", "link"],
        ["link", "photos"],
        ["p.index", "photos/in"],
        ["photos/in", "photos"],
        ["photos", "inner"],
    ] {
        let args = [first, "--against", against, "--move-to", "copies"];
        duplicates(&sandbox, &args).failed(2, &[]);
    }
    assert_eq!(contents(&sandbox.path("photos")), before);
    // Pairs of one folder and the other, and of neither alone.
    let across = others(duplicates(&sandbox, &["photos", "--against", "other", "--json"]));
    assert_eq!(across.len(), 2, "{across:?}");
    assert!(across.iter().all(|path| path.contains("/photos/")));
    // A file that is in both by a link stays.
    symlink(sandbox.path("photos/z.png"), sandbox.path("other/z.png")).unwrap();
    let args = ["photos", "--against", "other", "--move-to", "copies"];
    duplicates(&sandbox, &args).succeeded();
    assert!(sandbox.path("photos/z.png").exists() && !sandbox.path("photos/0.png").exists());
}

#[test]
fn a_list_of_absolute_names_is_moved_below_the_target_and_back() {
    let sandbox = photos();
    for folder in ["lists", "more"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    for number in [1, 2] {
        let from = sandbox.path(&format!("photos/{number}.png"));
        fs::copy(from, sandbox.path(&format!("more/{number}.png"))).unwrap();
    }
    // Links cannot be moved: of these two at least one is a copy that stays.
    for number in [3, 4] {
        let outside = sandbox.path(&format!("outside {number}.png"));
        scene(3).save(&outside).unwrap();
        symlink(outside, sandbox.path(&format!("more/{number}.png"))).unwrap();
    }
    let photos = ["0", "1", "2", "3", "z"].map(|n| format!("../photos/{n}.png"));
    let more = ["1", "2", "3", "4"].map(|n| sandbox.path(&format!("more/{n}.png")));
    let more = more.iter().map(|path| path.display().to_string());
    let list: Vec<String> = photos.into_iter().chain(more).collect();
    fs::write(sandbox.path("lists/l.txt"), list.join("\n")).unwrap();
    let all = || ["photos", "more"].map(|folder| contents(&sandbox.path(folder)));
    let before = all();
    let args = ["lists/l.txt", "--move-to", "copies"];
    duplicates(&sandbox, &args).failed(1, &[]);
    let moved = contents(&sandbox.path("copies")).len() - 1;
    assert!((3..=4).contains(&moved), "{moved}");
    let after = all().iter().map(Vec::len).sum::<usize>();
    assert_eq!(after + moved, before.iter().map(Vec::len).sum::<usize>());
    duplicates(&sandbox, &["--undo", "copies/undo.jsonl"]).succeeded();
    assert_eq!(all(), before);
    assert_eq!(names(&sandbox.path("lists")), ["l.txt"]);
}

#[test]
fn a_target_among_the_images_is_refused_and_a_dry_run_makes_nothing() {
    let sandbox = photos();
    symlink("photos", sandbox.path("link")).unwrap();
    symlink("photos/not yet", sandbox.path("dangling")).unwrap();
    let before = contents(&sandbox.path("photos"));
    for target in ["photos", "photos/copies", "link/new", "dangling", "dangling/x"] {
        duplicates(&sandbox, &["photos", "--move-to", target]).failed(2, &[target]);
    }
    let args = ["photos", "--move-to", "copies", "--dry-run", "--json"];
    let told = lines(&duplicates(&sandbox, &args).succeeded().stdout);
    let planned = told.last().unwrap();
    let from = Path::new(planned["from"].as_str().unwrap());
    assert!(from.exists() && !sandbox.path("copies").exists());
    assert_eq!(contents(&sandbox.path("photos")), before);
    duplicates(&sandbox, &args[..3]).succeeded();
    assert!(!from.exists() && Path::new(planned["to"].as_str().unwrap()).exists());
}

#[test]
fn a_record_of_nobody_moves_nothing() {
    let sandbox = photos();
    duplicates(&sandbox, &["photos", "--move-to", "copies"]).succeeded();
    let record = sandbox.path("copies/undo.jsonl");
    let whole = fs::read_to_string(&record).unwrap();
    let all = || ["photos", "copies", "other"].map(|folder| contents(&sandbox.path(folder)));
    let undo =
        |more: &[&str]| duplicates(&sandbox, &[&["--undo", "copies/undo.jsonl"], more].concat());
    // Forged, as it was possible once; edited; with a line more.
    let to = sandbox.path("photos/start.png").display().to_string();
    let line = format!("{{\"from\":\"{to}\",\"to\":\"../other/x.png\"}}\n");
    let edited = whole.replace("photos", "other");
    for (text, trusted) in [(line.clone(), 1), (edited, 2), (whole.clone() + &line, 2)] {
        fs::write(&record, &text).unwrap();
        let before = all();
        undo(&[]).failed(2, &["undo.jsonl"]);
        undo(&["--trust-record"]).failed(trusted, &[]);
        assert_eq!(all(), before, "{text}");
    }
    fs::write(&record, &whole).unwrap();

    // Another user's, or one whose key is gone: what it would do is told, and done where it is
    // trusted.
    let key = sandbox.path("user-data/anchorhood/undo.key");
    fs::rename(&key, sandbox.path("key")).unwrap();
    let before = all();
    let told = undo(&[]).failed(2, &["--trust-record"]);
    assert!(told.stdout.contains(".png"), "{told:?}");
    assert_eq!(all(), before);
    undo(&["--trust-record"]).succeeded();
    assert_eq!(contents(&sandbox.path("photos")).len(), 5);
    // The record is another's now, and nothing is added to it.
    duplicates(&sandbox, &["photos", "--move-to", "copies"]).failed(2, &["undo.jsonl"]);
    assert_eq!(contents(&sandbox.path("photos")).len(), 5);
    duplicates(&sandbox, &["photos", "--trust-record"]).failed(2, &[]);
}

#[test]
fn pipes_devices_and_circles_of_links_are_refused_at_once() {
    let sandbox = photos();
    let pipe = sandbox.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return anchorhood_testing::skip("mkfifo is not here");
    }
    symlink("round", sandbox.path("round")).unwrap();
    let before = contents(&sandbox.path("photos"));
    for name in ["pipe", "/dev/zero", "round", "gone"] {
        let ran = duplicates(&sandbox, &["--undo", name]);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    }
    for name in ["pipe", "/dev/zero", "round", "photos"] {
        let args = ["photos", "--decisions", name, "--move-to", "copies"];
        let ran = duplicates(&sandbox, &args);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    }
    let ran = duplicates(&sandbox, &["photos", "--move-to", "round/copies"]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    // A pipe where the record would be.
    fs::create_dir(sandbox.path("copies")).unwrap();
    fs::rename(&pipe, sandbox.path("copies/undo.jsonl")).unwrap();
    duplicates(&sandbox, &["photos", "--move-to", "copies"]).failed(2, &["undo.jsonl"]);
    assert_eq!(contents(&sandbox.path("photos")), before);
}

#[test]
fn two_images_that_are_no_duplicates_are_remembered() {
    let sandbox = photos();
    let count = |args: &[&str]| {
        let args = [&["photos", "--json"], args].concat();
        others(duplicates(&sandbox, &args)).len()
    };
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--not", "0.png", "z.png"]), 0);
    assert_eq!(count(&[]), 0, "it is said once");
    // In another file nothing was decided; in the cache nothing lies; under other names it holds.
    assert_eq!(count(&["--decisions", "mine.jsonl"]), 1);
    fs::remove_dir_all(sandbox.path("cache")).unwrap();
    fs::rename(sandbox.path("photos/z.png"), sandbox.path("photos/new.png")).unwrap();
    assert_eq!(count(&[]), 0);
    let said = ["--decisions", "mine.jsonl", "--not", "photos/new.png", "0.png"];
    assert_eq!(count(&said), 0);
    assert_eq!(count(&said[..2]), 0);

    let own = sandbox.path("user-data/anchorhood/decisions.jsonl");
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, text.replace("content", "c0ntent")).unwrap();
    duplicates(&sandbox, &["photos"]).failed(2, &["decisions.jsonl", "line 2"]);
    for other in ["photos/0.png", "other/x.png"] {
        let bytes = fs::read(sandbox.path(other)).unwrap();
        let args = ["photos", "--decisions", other, "--not", "1.png", "2.png"];
        duplicates(&sandbox, &args).failed(2, &[other]);
        assert_eq!(fs::read(sandbox.path(other)).unwrap(), bytes);
    }
    let mine = ["photos", "--decisions", "mine.jsonl", "--not"];
    duplicates(&sandbox, &[&mine[..], &["0.png", "nobody.png"]].concat())
        .failed(2, &["nobody.png"]);
    duplicates(&sandbox, &[&mine[..], &["0.png", "./photos/0.png"]].concat()).failed(2, &[]);
    duplicates(&sandbox, &["photos", "--keep", "prettiest"]).code.filter(|c| *c == 2).unwrap();
}

#[test]
fn names_that_are_no_text_are_kept_reversibly() {
    let sandbox = photos();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.png");
    let path = sandbox.path("photos").join(name);
    if fs::rename(sandbox.path("photos/z.png"), &path).is_err() {
        return anchorhood_testing::skip("a file system of Unicode names alone");
    }
    fs::remove_file(sandbox.path("photos/0.png")).unwrap();
    fs::create_dir(sandbox.path("photos/z")).unwrap();
    fs::copy(&path, sandbox.path("photos/z").join(name)).unwrap();
    let before = contents(&sandbox.path("photos"));
    duplicates(&sandbox, &["photos", "--move-to", "copies"]).succeeded();
    assert_eq!(contents(&sandbox.path("photos")).len(), before.len() - 1);
    duplicates(&sandbox, &["--undo", "copies/undo.jsonl"]).succeeded();
    assert_eq!(contents(&sandbox.path("photos")), before);

    let mut search = sandbox.command(&["neighbours", "photos", "--json", "-k", "1"]);
    let ran = Ran::from(search.arg(&path).output().unwrap()).succeeded();
    let answer = &lines(&ran.stdout)[0];
    assert!(answer["query"].as_str().unwrap().ends_with("/photos/caf\\xe9.png"), "{answer}");
}

#[test]
fn the_rules_say_which_copy_is_kept() {
    let sandbox = photos();
    let half = imageops::resize(&scene(1), 48, 36, imageops::FilterType::Triangle);
    half.save(sandbox.path("other/half.png")).unwrap();
    let kept = |args: &[&str]| -> Vec<String> {
        let ran = duplicates(&sandbox, &[args, &["--json"]].concat()).succeeded();
        let keep = |group: &serde_json::Value| group["keep"].as_str().unwrap().to_string();
        let mut kept: Vec<String> = lines(&ran.stdout).iter().map(keep).collect();
        kept.sort();
        kept
    };
    for (args, expected) in [
        (
            &["photos", "other", "--keep", "smallest,first-name"][..],
            ["other/half.png", "other/x.png"],
        ),
        (&["photos", "other", "--keep", "largest,first-name"], ["other/x.png", "photos/1.png"]),
        (&["photos", "other", "--keep", "first-folder"], ["photos/0.png", "photos/1.png"]),
        (
            &["other", "photos", "--keep", "largest", "--keep", "first-folder"],
            ["other/x.png", "photos/1.png"],
        ),
    ] {
        assert_eq!(kept(args), expected, "{args:?}");
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
    let args = ["photos", "--move-to", "copies", "--bursts", "--json"];
    let told = lines(&duplicates(&sandbox, &args).succeeded().stdout);
    assert_eq!(told, [serde_json::json!({ "burst": ["a.png", "b.png"] })]);
    assert_eq!(names(&sandbox.path("photos")), ["a.png", "b.png", "c.png"]);
    assert!(!sandbox.path("copies").exists());
    assert_eq!(duplicates(&sandbox, &["photos"]).succeeded().stdout, "");
}
