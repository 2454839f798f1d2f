//! The examples, run as a reader would run them: one trains, the others use its model.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo puts examples: beside the folder of this test's own program.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let program = built.join("examples").join(file);
    assert!(
        program.is_file(),
        "{}: run `cargo test -p anchorhood`, or `cargo build -p anchorhood --examples` first",
        program.display()
    );
    program
}

fn run(folder: &Path, name: &str, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(program(name));
    command.env("ANCHORHOOD_CACHE", folder.join("cache"));
    let output = command.current_dir(folder).args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    println!("{name} {args:?}\n{text}");
    (output.status.success(), text)
}

/// Two grey pictures and one that is white above and black below.
fn pictures(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    for (name, above, below) in [("a", 90, 90), ("b", 100, 100), ("c", 255, 0)] {
        let of = |_, y| image::Rgb([if y < 20 { above } else { below }; 3]);
        let picture = image::RgbImage::from_fn(48, 40, of);
        picture.save(folder.join(format!("{name}.png"))).unwrap();
    }
}

#[test]
fn train_then_embed_then_search() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (good, said) = run(folder, "train_own_data", &["1", "runs"]);
    assert!(good && said.contains("% of 100 pictures"), "{said}");
    let model = "runs/stripes-1";
    assert!(said.contains(model), "{said}");

    pictures(&folder.join("pictures"));
    let files = ["pictures/a.png", "pictures/b.png", "pictures/c.png"];
    let (good, said) = run(folder, "load_and_embed", &[model, files[0], files[1], files[2]]);
    assert!(good);
    let similar: Vec<f32> = said
        .lines()
        .filter_map(|l| l.rsplit_once("…, ")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(similar.len(), 3, "{said}");
    assert!((similar[0] - 1.0).abs() < 1e-3, "{said}");

    for _ in ["made", "loaded"] {
        let (good, said) = run(folder, "search", &[model, "pictures", files[2]]);
        assert!(good);
        let first = said.lines().next().unwrap();
        assert!(first.starts_with("1.0000") && first.ends_with("c.png"), "{said}");
        assert_eq!(said.lines().count(), 3);
    }
    let kept = std::fs::read_dir(folder.join("cache/indices")).unwrap();
    assert_eq!(kept.count(), 1);

    for name in ["load_and_embed", "search"] {
        let (good, said) = run(folder, name, &["no/such/run", "pictures", files[0]]);
        assert!(!good && said.contains("no/such/run"), "{said}");
    }
}
