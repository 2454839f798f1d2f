//! `anchorhood duplicates`, `select`, `outliers` and `classify --check` as a user runs them.

use std::fs;

use image::{Rgb, RgbImage, imageops};

use crate::common::{Sandbox, names};
use crate::folders::{lines, scene, trained};

/// Twelve scenes, and copies of the first three: a crop, a small one, the same file.
fn with_copies() -> Sandbox {
    let sandbox = trained(&[]);
    let folder = sandbox.path("pictures");
    fs::create_dir(&folder).unwrap();
    for number in 0..12 {
        scene(number).save(folder.join(format!("{number:02}.png"))).unwrap();
    }
    let crop = imageops::crop_imm(&scene(0), 10, 8, 70, 56).to_image();
    crop.save(folder.join("part of 00.png")).unwrap();
    let small = imageops::resize(&scene(1), 48, 36, imageops::FilterType::Triangle);
    small.save(folder.join("small 01.png")).unwrap();
    fs::create_dir(folder.join("more")).unwrap();
    fs::copy(folder.join("02.png"), folder.join("more/02.png")).unwrap();
    let index = ["index", "--model", "a", "pictures", "-o", "p.index", "--labels", "none"];
    sandbox.run(&index).succeeded();
    sandbox
}

#[test]
fn copies_are_named_moved_and_put_back() {
    let sandbox = with_copies();
    let args = ["duplicates", "p.index", "--json", "--sheet", "groups.png"];
    let ran = sandbox.run(&args).succeeded();
    let groups = lines(&ran.stdout);
    let mut found: Vec<String> = groups
        .iter()
        .flat_map(|g| g["others"].as_array().unwrap().iter().map(move |o| (g, o)))
        .map(|(g, o)| format!("{}: {} {}", g["keep"], o["kind"], o["path"]).replace('"', ""))
        .collect();
    found.sort();
    let expected = [
        "00.png: crop part of 00.png",
        "01.png: resized small 01.png",
        "02.png: same file more/02.png",
    ];
    assert_eq!(found, expected);
    ran.says(&["3 copies in 3 groups, of 15 pictures: 1 same file, 1 resized, 1 crop"]);
    assert!(image::open(sandbox.path("groups.png")).unwrap().width() > 200);

    let before = names(&sandbox.path("pictures"));
    let inside = ["duplicates", "p.index", "--move-to", "pictures/copies"];
    sandbox.run(&inside).failed(2, &["pictures/copies"]);
    let moved = sandbox.run(&["duplicates", "p.index", "--move-to", "copies"]);
    moved.succeeded().says(&["3 pictures were moved", "--undo copies/undo.jsonl"]);
    assert_eq!(names(&sandbox.path("pictures")).len(), before.len() - 2);
    assert_eq!(
        names(&sandbox.path("copies")),
        ["more", "part of 00.png", "small 01.png", "undo.jsonl"]
    );
    // The index still has them; what is gone is no copy any more.
    let again = sandbox.run(&["duplicates", "p.index", "--move-to", "copies"]);
    again.succeeded().says(&["3 pictures could not be read", "0 copies"]);
    let back = sandbox.run(&["duplicates", "--undo", "copies/undo.jsonl"]);
    back.succeeded().says(&["3 pictures were put back"]);
    assert_eq!(names(&sandbox.path("pictures")), before);
    assert!(sandbox.path("pictures/more/02.png").exists());

    fs::write(sandbox.path("bad.jsonl"), "what?\n").unwrap();
    let undo = |file: &str| sandbox.run(&["duplicates", "--undo", file]);
    undo("bad.jsonl").failed(2, &["bad.jsonl", "line 1 is no record"]);
    undo("none.jsonl").failed(1, &["none.jsonl"]);
    sandbox.run(&["duplicates"]).code.filter(|code| *code == 2).unwrap();
}

#[test]
fn what_leaked_from_one_folder_into_another() {
    let sandbox = with_copies();
    fs::create_dir(sandbox.path("test")).unwrap();
    fs::copy(sandbox.path("pictures/05.png"), sandbox.path("test/x.png")).unwrap();
    scene(20).save(sandbox.path("test/y.png")).unwrap();
    sandbox.run(&["index", "--model", "a", "test", "-o", "t.index"]).succeeded();
    let args = ["duplicates", "p.index", "--against", "t.index", "--json"];
    let groups = lines(&sandbox.run(&args).succeeded().stdout);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert!(groups[0]["keep"].as_str().unwrap().ends_with("test/x.png"));
    let leaked = &groups[0]["others"][0];
    assert!(leaked["path"].as_str().unwrap().ends_with("pictures/05.png"));
    assert_eq!(leaked["kind"], "same file");
    sandbox.train(&["--name", "b", "--quiet", "--seed", "5"]).succeeded();
    sandbox.run(&["index", "--model", "b", "test", "-o", "b.index"]).succeeded();
    let other = ["duplicates", "p.index", "--against", "b.index"];
    sandbox.run(&other).failed(2, &["different models"]);
}

#[test]
fn few_pictures_that_stand_for_all_and_odd_ones() {
    let sandbox = with_copies();
    let args = ["select", "p.index", "5", "--sheet", "s.png"];
    let chosen = sandbox.run(&args).succeeded().stdout;
    let chosen: Vec<&str> = chosen.lines().collect();
    assert_eq!(chosen.len(), 5);
    assert!(sandbox.path("s.png").exists());
    fs::write(sandbox.path("done.txt"), chosen[..2].join("\n")).unwrap();
    let rest = sandbox.run(&["select", "p.index", "100", "--already", "done.txt", "--json"]);
    let rest = rest.succeeded();
    let paths = lines(&rest.stdout);
    assert_eq!(paths.len(), 13);
    assert_eq!(paths[0]["path"], chosen[2], "it goes on where it was");
    rest.says(&["13 of 15 pictures chosen beside 2", "these are all that are left"]);
    fs::write(sandbox.path("bad.txt"), "nowhere.png\n").unwrap();
    let bad = ["select", "p.index", "3", "--already", "bad.txt"];
    sandbox.run(&bad).failed(2, &["bad.txt", "nowhere.png", "prints them"]);

    let odd = sandbox.run(&["outliers", "p.index", "-n", "4", "--sheet", "odd.png"]);
    let odd = odd.succeeded().stdout;
    let scores: Vec<f32> = odd.lines().map(|l| l[..6].parse().unwrap()).collect();
    assert!(scores.len() == 4 && scores.is_sorted_by(|a, b| a >= b), "{odd}");
    RgbImage::from_pixel(96, 72, Rgb([4, 4, 6])).save(sandbox.path("pictures/03.png")).unwrap();
    for by in ["dark", "flat", "blurry"] {
        let ran = sandbox.run(&["outliers", "p.index", "-n", "1", "--by", by, "--json"]);
        let found = lines(&ran.succeeded().stdout);
        assert_eq!(found[0]["path"], "03.png", "{by}: {found:?}");
    }
}

/// Pictures of two kinds in two folders, one of them in the wrong one.
#[test]
fn wrong_labels_are_named_and_logistic_regression_follows_labels() {
    let sandbox = trained(&[]);
    for class in ["dark", "light"] {
        fs::create_dir_all(sandbox.path(&format!("pictures/{class}"))).unwrap();
    }
    for number in 0..10_u8 {
        let dark = RgbImage::from_pixel(16, 16, Rgb([number, 0, 30 + number]));
        let place = if number == 7 { "light" } else { "dark" };
        dark.save(sandbox.path(&format!("pictures/{place}/d{number}.png"))).unwrap();
        let light = RgbImage::from_fn(16, 16, |x, _| Rgb([255 - number, (x % 2 * 255) as u8, 200]));
        light.save(sandbox.path(&format!("pictures/light/l{number}.png"))).unwrap();
    }
    let args = ["classify", "--model", "a", "pictures", "--check", "--json", "-k", "5"];
    let ran = sandbox.run(&[&args[..], &["--check-sheet", "w.png"]].concat()).succeeded();
    let wrong = lines(&ran.stdout);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0]["path"], "light/d7.png");
    assert_eq!((&wrong[0]["given"], &wrong[0]["likely"]), (&"light".into(), &"dark".into()));
    ran.says(&["1 of 20 labels", "1 of them confidently"]);
    assert!(sandbox.path("w.png").exists());

    fs::write(sandbox.path("l.csv"), "dark/d0.png,night\nlight/l0.png,day\n").unwrap();
    let by = [
        "classify", "--model", "a", "pictures", "--labels", "l.csv", "--by", "logistic", "-o",
        "out.csv",
    ];
    sandbox.run(&by).succeeded().says(&["18 pictures classified by 2 labelled ones"]);
    let mut rows = csv::Reader::from_path(sandbox.path("out.csv")).unwrap();
    for row in rows.records().map(|r| r.unwrap()) {
        let expected = if row[0].contains("/d") { "night" } else { "day" };
        assert_eq!(&row[1], expected, "{row:?}");
    }
    fs::create_dir(sandbox.path("flat")).unwrap();
    scene(1).save(sandbox.path("flat/1.png")).unwrap();
    sandbox
        .run(&["classify", "--model", "a", "flat", "--check"])
        .failed(2, &["flat: its sub-folders are no classes", "--labels"]);
    sandbox.run(&["classify", "--model", "a", "flat"]).code.filter(|code| *code == 2).unwrap();
}
