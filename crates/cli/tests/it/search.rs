//! `anchorhood index`, `neighbours`, `cluster` and `classify` as a user runs them.

use std::fs;

use crate::common::{Sandbox, names, trained};
use crate::folders::{fill, of_kind};

/// A sandbox with a run `a`, a folder of 30 pictures and its index.
pub fn indexed(more: &str) -> Sandbox {
    let sandbox = trained("");
    fill(&sandbox.path("pictures"), 30);
    let ran = sandbox.run(&format!("index --model a pictures -o p.index {more}"));
    ran.succeeded().prints("30 pictures");
    sandbox
}

fn csv_rows(sandbox: &Sandbox, file: &str) -> Vec<csv::StringRecord> {
    let mut reader = csv::Reader::from_path(sandbox.path(file)).unwrap();
    reader.records().map(|r| r.unwrap()).collect()
}

#[test]
fn a_picture_finds_itself_first() {
    let sandbox = indexed("");
    let find = "neighbours --model a p.index pictures/7.png";
    let said = sandbox.said(&format!("{find} -k 5"));
    assert_eq!(said.lines().count(), 5);
    assert_eq!(said.lines().next(), Some("1.0000  7.png"));
    let found = &sandbox.json(&format!("{find} --json --exact"))[0];
    assert_eq!(found["neighbours"].as_array().unwrap().len(), 20);
    assert_eq!(found["neighbours"][0]["path"], "7.png");
    let similarity = |i: usize| found["neighbours"][i]["similarity"].as_f64().unwrap();
    assert!((1..20).all(|i| similarity(i) <= similarity(i - 1)));

    sandbox.said(&format!("{find} -k 8 --sheet sheet.png"));
    let sheet = image::open(sandbox.path("sheet.png")).unwrap().into_rgb8();
    assert!(sheet.width() > 100 && sheet.height() > 100);
    // The query's own pixels, framed, at the top left.
    assert_eq!(*sheet.get_pixel(7, 7), image::Rgb([214, 90, 49]));
    // Pictures that are gone, and more neighbours than pictures.
    fs::remove_file(sandbox.path("pictures/3.png")).unwrap();
    let ran = sandbox.run(&format!("{find} -k 100 --sheet s.png")).succeeded();
    assert_eq!(ran.stdout.lines().count(), 30);
    let ran = ran.prints("3.png  (the picture is gone)");
    ran.says("100 neighbours; 30 pictures; 3.png: the picture is gone");
    // An index that is divided into clusters says what it finds.
    sandbox.said("index --model a pictures -o c.index --approximate");
    let said = sandbox.said("neighbours --model a c.index pictures/7.png -k 3");
    assert!(said.starts_with("1.0000  7.png"), "{said}");
}

/// With thumbnails in the index, a sheet shows pictures that are gone.
#[test]
fn thumbnails_outlive_the_pictures() {
    let sandbox = indexed("--thumbnails 32");
    fs::copy(sandbox.path("pictures/7.png"), sandbox.path("query.png")).unwrap();
    fs::remove_dir_all(sandbox.path("pictures")).unwrap();
    let ran = sandbox.run("neighbours --model a p.index query.png --sheet s.png").succeeded();
    assert!(!ran.stderr.contains("place on the sheet is empty"), "{}", ran.stderr);
}

#[test]
fn clusters_have_sheets_and_a_table() {
    let sandbox = indexed("");
    let clusters = sandbox.json("cluster p.index -k 4 -o c --json");
    let sizes = clusters.iter().map(|c| c["pictures"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), 30);
    let written = names(&sandbox.path("c"));
    assert_eq!(written.len(), clusters.len() + 1);
    assert!(written.contains(&"cluster-001.png".to_string()));
    assert_eq!(csv_rows(&sandbox, "c/clusters.csv").len(), 30);
    sandbox.run("cluster p.index --method graph --above -1 -o g").code.unwrap();
}

/// Two kinds of pictures, two labels each: the others follow.
#[test]
fn a_few_labels_go_a_long_way() {
    let sandbox = trained("");
    fs::create_dir(sandbox.path("pictures")).unwrap();
    for number in 0..10_u8 {
        for (light, kind) in [(false, "dark"), (true, "light")] {
            let file = sandbox.path(&format!("pictures/{kind}-{number}.png"));
            of_kind(light, number).save(file).unwrap();
        }
    }
    let labels =
        "path,label\ndark-0.png,night\ndark-1.png,night\nlight-0.png,day\nlight-1.png,day\n";
    sandbox.write("labels.csv", labels);
    let classify = "classify --model a pictures --labels labels.csv -o out.csv";
    let next = "--next 3 --next-to next.csv --next-sheet next.png";
    let ran = sandbox.run(&format!("{classify} {next}")).succeeded();
    ran.says("16 pictures classified by 4 labelled ones of 2 classes; 100%");
    let rows = csv_rows(&sandbox, "out.csv");
    assert_eq!(rows.len(), 20);
    for row in &rows {
        let expected = if row[0].starts_with("dark") { "night" } else { "day" };
        assert_eq!(&row[1], expected, "{row:?}");
    }
    let next = csv_rows(&sandbox, "next.csv");
    assert_eq!(next.len(), 3);
    assert!(next.iter().all(|r| !labels.contains(&r[0])), "{next:?}");
    assert!(sandbox.path("next.png").exists());

    // From an index, to stdout, the same.
    sandbox.run("index --model a pictures -o p.index").succeeded();
    let again = sandbox.said("classify --model a p.index --labels labels.csv");
    assert_eq!(again.trim_end(), sandbox.text("out.csv").trim_end());
}
