//! The program knows its own method and data set by name, as all others.

use std::path::Path;
use std::process::{Command, Output};

use image::{Rgb, RgbImage};

fn run(folder: &Path, words: &str) -> (bool, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_anchorhood-vicreg"));
    program.env("XDG_CACHE_HOME", folder.join("cache"));
    let ran: Output = program.args(words.split(' ')).current_dir(folder).output().unwrap();
    let said = [ran.stdout, ran.stderr].map(|said| String::from_utf8(said).unwrap()).concat();
    (ran.status.success(), said)
}

fn ran(folder: &Path, words: &str) -> String {
    let (well, said) = run(folder, words);
    assert!(well, "{words}: {said}");
    said
}

const SMALL: &str = "--method vicreg --width 2 --size 8 --batch 16 --device cpu --threads 1";

#[test]
fn a_method_of_its_own_trains_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let help = ran(folder.path(), "train --help");
    assert!(help.contains("- vicreg:") && help.contains("`csv`"), "{help}");
    let shapes = format!("train shapes {SMALL} --shapes-train 64 --shapes-test 32 --name a");
    ran(folder.path(), &format!("{shapes} --epochs 2"));
    let config = std::fs::read_to_string(folder.path().join("runs/a/config.toml")).unwrap();
    assert!(config.contains("name = \"vicreg\""), "{config}");
    ran(folder.path(), "train --resume a");
    ran(folder.path(), "evaluate a");
}

#[test]
fn a_set_of_its_own_is_opened_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::from("path,label\n");
    for i in 0..48_u8 {
        let image = RgbImage::from_fn(20, 24, |x, y| {
            Rgb([(x as u8 * (i % 7 + 1)) % 251, (y as u8).wrapping_mul(i), i * 5])
        });
        image.save(folder.path().join(format!("{i}.png"))).unwrap();
        list += &format!("{i}.png,{}\n", ["even", "odd"][usize::from(i) % 2]);
    }
    std::fs::write(folder.path().join("photos.csv"), list).unwrap();
    assert!(ran(folder.path(), "data check csv:photos.csv").contains("48"));
    ran(folder.path(), &format!("train csv:photos.csv {SMALL} --epochs 1 --name b"));
    std::fs::write(folder.path().join("photos.csv"), "path,label\ngone.png,even\n").unwrap();
    let (well, said) = run(folder.path(), "data check csv:photos.csv");
    assert!(!well && said.contains("line 2: gone.png"), "{said}");
}
