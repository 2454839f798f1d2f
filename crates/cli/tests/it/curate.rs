//! `anchorhood duplicates`, `select`, `outliers` and `classify --check` as a user runs them.

use std::fs;

use image::{Rgb, RgbImage, imageops};

use crate::common::{Sandbox, names, trained};
use crate::folders::{of_kind, scene};

/// Twelve scenes, and copies of the first three: a crop, a small one, the same file.
fn with_copies() -> Sandbox {
    let sandbox = trained("");
    let folder = sandbox.path("pictures");
    fs::create_dir(&folder).unwrap();
    for number in 0..12 {
        scene(number).save(folder.join(format!("{number:02}.png"))).unwrap();
    }
    let crop = imageops::crop_imm(&scene(0), 10, 8, 70, 56).to_image();
    crop.save(folder.join("part of 00.png")).unwrap();
    let small = imageops::resize(&scene(1), 48, 36, imageops::FilterType::Triangle);
    small.save(folder.join("small 01.png")).unwrap();
    sandbox.write("pictures/more/02.png", sandbox.read("pictures/02.png"));
    sandbox.run("index --model a pictures -o p.index --labels none").succeeded();
    sandbox
}

#[test]
fn copies_are_named_moved_and_put_back() {
    let sandbox = with_copies();
    let ran = sandbox.run("duplicates p.index --json --sheet groups.png").succeeded();
    let ran = ran.says("3 copies in 3 groups, of 15 pictures: 1 same file, 1 resized, 1 crop");
    let groups = ran.json();
    let others = |group: &serde_json::Value| group["others"].as_array().unwrap().clone();
    let pairs = groups.iter().flat_map(|g| others(g).into_iter().map(move |o| (g, o)));
    let told = |(g, o): (&serde_json::Value, serde_json::Value)| {
        format!("{}: {} {}", g["keep"], o["kind"], o["path"]).replace('"', "")
    };
    let mut found: Vec<String> = pairs.map(told).collect();
    found.sort();
    let expected = [
        "00.png: crop part of 00.png",
        "01.png: resized small 01.png",
        "02.png: same file more/02.png",
    ];
    assert_eq!(found, expected);
    assert!(image::open(sandbox.path("groups.png")).unwrap().width() > 200);

    let before = names(&sandbox.path("pictures"));
    let moving = || sandbox.run("duplicates p.index --move-to copies").succeeded();
    moving().says("3 pictures were moved; --undo copies/undo.jsonl");
    assert_eq!(names(&sandbox.path("pictures")).len(), before.len() - 2);
    let moved = ["more", "part of 00.png", "small 01.png", "undo.jsonl"];
    assert_eq!(names(&sandbox.path("copies")), moved);
    // The index still has them; what is gone is no copy any more.
    moving().says("3 pictures could not be read; 0 copies");
    let back = sandbox.run("duplicates --undo copies/undo.jsonl").succeeded();
    back.says("3 pictures were put back");
    assert_eq!(names(&sandbox.path("pictures")), before);
    assert!(sandbox.path("pictures/more/02.png").exists());
}

#[test]
fn what_leaked_from_one_folder_into_another() {
    let sandbox = with_copies();
    sandbox.write("test/x.png", sandbox.read("pictures/05.png"));
    scene(20).save(sandbox.path("test/y.png")).unwrap();
    sandbox.run("index --model a test -o t.index").succeeded();
    let groups = sandbox.json("duplicates p.index --against t.index --json");
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert!(groups[0]["keep"].as_str().unwrap().ends_with("test/x.png"));
    let leaked = &groups[0]["others"][0];
    assert!(leaked["path"].as_str().unwrap().ends_with("pictures/05.png"));
    assert_eq!(leaked["kind"], "same file");
    sandbox.run("index test -o base.index").succeeded();
    sandbox.run("duplicates p.index --against base.index").failed(2, "different models");
}

#[test]
fn few_pictures_that_stand_for_all_and_odd_ones() {
    let sandbox = with_copies();
    let chosen = sandbox.said("select p.index 5 --sheet s.png");
    let chosen: Vec<&str> = chosen.lines().collect();
    assert_eq!(chosen.len(), 5);
    assert!(sandbox.path("s.png").exists());
    sandbox.write("done.txt", chosen[..2].join("\n"));
    let rest = sandbox.run("select p.index 100 --already done.txt --json").succeeded();
    let rest = rest.says("13 of 15 pictures chosen beside 2; these are all that are left");
    let paths = rest.json();
    assert_eq!(paths.len(), 13);
    assert_eq!(paths[0]["path"], chosen[2], "it goes on where it was");

    let odd = sandbox.said("outliers p.index -n 4 --sheet odd.png");
    let scores: Vec<f32> = odd.lines().map(|l| l[..6].parse().unwrap()).collect();
    assert!(scores.len() == 4 && scores.is_sorted_by(|a, b| a >= b), "{odd}");
    RgbImage::from_pixel(96, 72, Rgb([4, 4, 6])).save(sandbox.path("pictures/03.png")).unwrap();
    for by in ["dark", "flat", "blurry"] {
        let found = sandbox.json(&format!("outliers p.index -n 1 --by {by} --json"));
        assert_eq!(found[0]["path"], "03.png", "{by}: {found:?}");
    }
}

/// Pictures of two kinds in two folders, one of them in the wrong one.
#[test]
fn wrong_labels_are_named_and_logistic_regression_follows_labels() {
    let sandbox = trained("");
    for class in ["dark", "light"] {
        fs::create_dir_all(sandbox.path(&format!("pictures/{class}"))).unwrap();
    }
    for number in 0..10_u8 {
        let place = if number == 7 { "light" } else { "dark" };
        let dark = sandbox.path(&format!("pictures/{place}/d{number}.png"));
        of_kind(false, number).save(dark).unwrap();
        let light = sandbox.path(&format!("pictures/light/l{number}.png"));
        of_kind(true, number).save(light).unwrap();
    }
    let check = "classify --model a pictures --check -k 5 --json --check-sheet w.png";
    let ran = sandbox.run(check).succeeded().says("1 of 20 labels; 1 of them confidently");
    assert!(sandbox.path("w.png").exists());
    let wrong = ran.json();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0]["path"], "light/d7.png");
    assert_eq!((&wrong[0]["given"], &wrong[0]["likely"]), (&"light".into(), &"dark".into()));

    sandbox.write("l.csv", "dark/d0.png,night\nlight/l0.png,day\n");
    let by = "classify --model a pictures --labels l.csv --by logistic -o out.csv";
    sandbox.run(by).succeeded().says("18 pictures classified by 2 labelled ones");
    let mut rows = csv::Reader::from_path(sandbox.path("out.csv")).unwrap();
    for row in rows.records().map(|r| r.unwrap()) {
        let expected = if row[0].contains("/d") { "night" } else { "day" };
        assert_eq!(&row[1], expected, "{row:?}");
    }
}
