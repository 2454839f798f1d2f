//! `anchorhood index`, `neighbours`, `duplicates`, `cluster` and `classify` as a user runs them.

use std::fs;
use std::path::Path;

use crate::common::{Sandbox, names};
use crate::folders::{fill, trained};

/// A sandbox with a run `a`, a folder of 30 pictures and its index.
fn indexed(more: &[&str]) -> Sandbox {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 30);
    let args = [&["index", "--model", "a", "pictures", "-o", "p.index"], more].concat();
    let ran = sandbox.run(&args).succeeded();
    assert!(ran.stdout.contains("30 pictures"), "{}", ran.stdout);
    sandbox
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn csv_rows(path: &Path) -> Vec<csv::StringRecord> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.records().map(|r| r.unwrap()).collect()
}

#[test]
fn a_picture_finds_itself_first() {
    let sandbox = indexed(&[]);
    let find = |more: &[&str]| {
        let args = [&["neighbours", "--model", "a", "p.index"], more].concat();
        sandbox.run(&args).succeeded()
    };
    let ran = find(&["pictures/7.png", "-k", "5"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], "1.0000  7.png");
    let found = json(&find(&["pictures/7.png", "--json", "--exact"]).stdout);
    assert_eq!(found["neighbours"].as_array().unwrap().len(), 20);
    assert_eq!(found["neighbours"][0]["path"], "7.png");
    let similarity = |i: usize| found["neighbours"][i]["similarity"].as_f64().unwrap();
    assert!((1..20).all(|i| similarity(i) <= similarity(i - 1)));

    find(&["pictures/7.png", "-k", "8", "--sheet", "sheet.png"]);
    let sheet = image::open(sandbox.path("sheet.png")).unwrap().into_rgb8();
    assert!(sheet.width() > 100 && sheet.height() > 100);
    // The query's own pixels, framed, at the top left.
    assert_eq!(*sheet.get_pixel(7, 7), image::Rgb([214, 90, 49]));
}

#[test]
fn more_neighbours_than_pictures_and_pictures_that_are_gone() {
    let sandbox = indexed(&[]);
    fs::remove_file(sandbox.path("pictures/3.png")).unwrap();
    let args = ["neighbours", "--model", "a", "p.index", "pictures/7.png", "-k", "100"];
    let args = [&args[..], &["--sheet", "s.png"]].concat();
    let ran = sandbox.run(&args).succeeded();
    assert_eq!(ran.stdout.lines().count(), 30);
    assert!(ran.stdout.contains("3.png  (the picture is gone)"), "{}", ran.stdout);
    ran.says(&["100 neighbours", "30 pictures", "3.png: the picture is gone"]);
}

/// With thumbnails in the index, a sheet shows pictures that are gone.
#[test]
fn thumbnails_outlive_the_pictures() {
    let sandbox = indexed(&["--thumbnails", "32"]);
    fs::copy(sandbox.path("pictures/7.png"), sandbox.path("query.png")).unwrap();
    fs::remove_dir_all(sandbox.path("pictures")).unwrap();
    let args = ["neighbours", "--model", "a", "p.index", "query.png", "--sheet", "s.png"];
    let ran = sandbox.run(&args).succeeded();
    assert!(!ran.stderr.contains("place on the sheet is empty"), "{}", ran.stderr);
}

#[test]
fn an_index_of_another_model_is_refused() {
    let sandbox = indexed(&[]);
    sandbox.train(&["--name", "b", "--quiet", "--seed", "5"]).succeeded();
    let parts = ["p.index", "another model", "fingerprint", "anchorhood index"];
    sandbox.run(&["neighbours", "--model", "b", "p.index", "pictures/7.png"]).failed(2, &parts);
    fs::write(sandbox.path("l.csv"), "1.png,x\n2.png,y\n").unwrap();
    sandbox.run(&["classify", "--model", "b", "p.index", "--labels", "l.csv"]).failed(2, &parts);
}

#[test]
fn files_that_are_no_index_or_no_picture() {
    let sandbox = indexed(&[]);
    let whole = fs::read(sandbox.path("p.index")).unwrap();
    fs::write(sandbox.path("cut.index"), &whole[..whole.len() - 10]).unwrap();
    fs::write(sandbox.path("empty.index"), "").unwrap();
    fs::write(sandbox.path("text.jpg"), "this is no picture").unwrap();
    let find =
        |index: &str, query: &str| sandbox.run(&["neighbours", "--model", "a", index, query]);
    find("cut.index", "pictures/1.png").failed(1, &["cut.index", "not a whole index"]);
    find("empty.index", "pictures/1.png").failed(1, &["the file is empty"]);
    find("none.index", "pictures/1.png").failed(2, &["none.index", "anchorhood index"]);
    let checkpoint = "runs/a/checkpoints/last.safetensors";
    find(checkpoint, "pictures/1.png").failed(1, &["a checkpoint"]);
    find("p.index", "text.jpg").failed(1, &["text.jpg", "not a JPEG"]);
    find("p.index", "none.jpg").failed(2, &["none.jpg", "no such picture"]);
    for command in [&["duplicates", "cut.index"][..], &["cluster", "cut.index", "-o", "x"]] {
        sandbox.run(command).failed(1, &["not a whole index"]);
    }
    sandbox
        .run(&["index", "--model", "a", "pictures", "-o", "cut.index"])
        .failed(2, &["cut.index", "exists already", "--overwrite"]);
    assert!(fs::read(sandbox.path("cut.index")).unwrap() == whole[..whole.len() - 10]);
}

#[test]
fn an_index_divided_into_clusters_says_what_it_finds() {
    let sandbox = indexed(&["--approximate"]);
    let ran = sandbox.run(&["neighbours", "--model", "a", "p.index", "pictures/7.png", "-k", "3"]);
    assert!(ran.succeeded().stdout.starts_with("1.0000  7.png"));
}

#[test]
fn duplicates_refuses_what_is_no_correlation() {
    let sandbox = indexed(&[]);
    for above in ["98", "-1.1", "nan"] {
        let above = format!("--above={above}");
        let ran = sandbox.run(&["duplicates", "p.index", &above]);
        assert_eq!(ran.code, Some(2), "{above}: {}", ran.stderr);
    }
}

#[test]
fn clusters_have_sheets_and_a_table() {
    let sandbox = indexed(&[]);
    let ran = sandbox.run(&["cluster", "p.index", "-k", "4", "-o", "c", "--json"]);
    let ran = ran.succeeded();
    let sizes = ran.stdout.lines().map(|l| json(l)["pictures"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), 30);
    let written = names(&sandbox.path("c"));
    assert_eq!(written.len(), ran.stdout.lines().count() + 1);
    assert!(written.contains(&"cluster-001.png".to_string()));
    assert_eq!(csv_rows(&sandbox.path("c/clusters.csv")).len(), 30);

    let graph = ["cluster", "p.index", "--method", "graph", "--above", "-1"];
    sandbox.run(&[&graph[..], &["-o", "g"]].concat()).code.unwrap();
    let cluster = |k: &str, out: &str| sandbox.run(&["cluster", "p.index", "-k", k, "-o", out]);
    cluster("31", "d").failed(2, &["31 clusters of 30 pictures"]);
    cluster("4", "c").failed(2, &["c: exists already"]);
    assert!(!sandbox.path("d").exists());
}

/// Two kinds of pictures, two labels each: the others follow.
#[test]
fn a_few_labels_go_a_long_way() {
    let sandbox = trained(&[]);
    let folder = sandbox.path("pictures");
    fs::create_dir(&folder).unwrap();
    for number in 0..10_u8 {
        let dark = image::RgbImage::from_pixel(16, 16, image::Rgb([number, 0, 30 + number]));
        dark.save(folder.join(format!("dark-{number}.png"))).unwrap();
        let light = image::RgbImage::from_fn(16, 16, |x, _| {
            image::Rgb([255 - number, (x % 2 * 255) as u8, 200])
        });
        light.save(folder.join(format!("light-{number}.png"))).unwrap();
    }
    let labels =
        "path,label\ndark-0.png,night\ndark-1.png,night\nlight-0.png,day\nlight-1.png,day\n";
    fs::write(sandbox.path("labels.csv"), labels).unwrap();
    let args = ["classify", "--model", "a", "pictures", "--labels", "labels.csv", "-o", "out.csv"];
    let args = [&args[..], &["--next", "3", "--next-to", "next.csv", "--next-sheet", "next.png"]];
    let ran = sandbox.run(&args.concat()).succeeded();
    ran.says(&["16 pictures classified by 4 labelled ones of 2 classes", "100%"]);
    let rows = csv_rows(&sandbox.path("out.csv"));
    assert_eq!(rows.len(), 20);
    for row in &rows {
        let expected = if row[0].starts_with("dark") { "night" } else { "day" };
        assert_eq!(&row[1], expected, "{row:?}");
    }
    let next = csv_rows(&sandbox.path("next.csv"));
    assert_eq!(next.len(), 3);
    assert!(next.iter().all(|r| !labels.contains(&r[0])), "{next:?}");
    assert!(sandbox.path("next.png").exists());

    // From an index, to stdout, the same.
    sandbox.run(&["index", "--model", "a", "pictures", "-o", "p.index"]).succeeded();
    let again = sandbox.run(&["classify", "--model", "a", "p.index", "--labels", "labels.csv"]);
    let text = fs::read_to_string(sandbox.path("out.csv")).unwrap();
    assert_eq!(again.succeeded().stdout.trim_end(), text.trim_end());

    let classify = |text: &str| {
        fs::write(sandbox.path("bad.csv"), text).unwrap();
        sandbox.run(&["classify", "--model", "a", "p.index", "--labels", "bad.csv"])
    };
    classify("dark-0.png,night\n").failed(2, &["1 labelled picture", "at least 2"]);
    classify("cat.png,night\n").failed(2, &["bad.csv", "cat.png", "relative to that folder"]);
    classify("").failed(2, &["bad.csv", "no labels in it"]);
    let twice = ["-o", "both.csv", "--next-to", "both.csv"];
    let args = ["classify", "--model", "a", "p.index", "--labels", "labels.csv"];
    sandbox.run(&[&args[..], &twice].concat()).failed(2, &["both.csv", "a name of its own"]);
}
