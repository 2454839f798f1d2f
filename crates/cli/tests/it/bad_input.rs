//! Everything a user can get wrong: the message, the exit code, and nothing half-written.

use std::fs;
use std::path::Path;

use image::{DynamicImage, GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

use crate::common::{self, Sandbox, names};

/// A picture that differs from others by its number.
fn picture(number: u32) -> RgbImage {
    RgbImage::from_fn(20, 16, |x, y| {
        Rgb([(x * 12 + number) as u8, (y * 15) as u8, (number * 37) as u8])
    })
}

fn fill(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let name = folder.join(format!("{number}.png"));
        picture(number).save(name).unwrap();
    }
}

#[test]
fn an_empty_folder() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.train(&["./empty"]).failed(2, &["empty", "no pictures", "give a folder"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

#[test]
fn a_single_picture() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("one"), 1);
    sandbox.train(&["./one"]).failed(2, &["one", "1 picture", "at least 2"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

#[test]
fn odd_pictures_are_read_and_broken_ones_named() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("pictures");
    fill(&folder, 40);
    let grey = GrayImage::from_fn(30, 20, |x, _| Luma([x as u8 * 8]));
    grey.save(folder.join("grey.png")).unwrap();
    let deep: ImageBuffer<Luma<u16>, Vec<u16>> =
        ImageBuffer::from_fn(9, 40, |_, y| Luma([y as u16 * 1600]));
    DynamicImage::from(deep).save(folder.join("sixteen-bit.png")).unwrap();
    picture(3).save(folder.join("Фото 写真 ü.PNG")).unwrap();
    picture(4).save(folder.join("a.jpg")).unwrap();
    let jpeg = fs::read(folder.join("a.jpg")).unwrap();
    fs::write(folder.join("cut.jpg"), &jpeg[..jpeg.len() / 3]).unwrap();
    fs::write(folder.join("text.jpg"), "this is no picture").unwrap();
    fs::write(folder.join("huge.png"), huge_png()).unwrap();

    let ran = sandbox.train(&["./pictures"]).succeeded();
    assert!(ran.stdout.contains("no labels"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("kNN top-1"), "{}", ran.stdout);
    let ran = ran.says(&["cut.jpg: skipped", "text.jpg: skipped", "huge.png: skipped"]);
    let ran = ran.says(&["3 of 47 pictures", "44 pictures of 16×16"]);
    assert!(!ran.stderr.contains("sixteen-bit.png: skipped"));
}

/// A PNG whose header promises 100,000 × 100,000 pixels.
fn huge_png() -> Vec<u8> {
    let mut png = vec![];
    let mut bytes = std::io::Cursor::new(&mut png);
    picture(0).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    png[16..20].copy_from_slice(&100_000_u32.to_be_bytes());
    png[20..24].copy_from_slice(&100_000_u32.to_be_bytes());
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    png
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| {
            (c >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(c & 1))
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn too_many_broken_pictures() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("pictures");
    fill(&folder, 8);
    for number in 0..2 {
        fs::write(folder.join(format!("text-{number}.jpg")), "no").unwrap();
    }
    sandbox.train(&["./pictures"]).failed(1, &["2 of 10", "10%", "text-0.jpg"]);
}

#[test]
fn fewer_pictures_than_a_batch() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train(&["--shapes-train", "10", "--batch", "64"]);
    ran.succeeded().says(&["warning", "batch of 64", "10 pictures"]);
}

#[test]
fn more_neighbours_than_pictures() {
    let sandbox = Sandbox::new();
    sandbox
        .train(&["--shapes-train", "10", "-k", "10"])
        .failed(2, &["10 neighbours", "9 others", "10 pictures", "--neighbours"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

#[test]
fn no_labels_to_judge_by() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("flat"), 20);
    let ran = sandbox.train(&["./flat", "--name", "a"]).succeeded();
    let said = "No kNN is reported, because these pictures have no labels";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(ran.stdout.contains("anchors") && ran.stdout.contains("loss"));
    sandbox.run(&["evaluate", "a"]).failed(2, &["no labelled pictures", "sub-folder per class"]);
}

#[test]
fn no_labels_to_validate_by() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("flat"), 20);
    sandbox
        .train(&["./flat", "--validate-on", "train:5"])
        .failed(2, &["flat", "no labels", "leave --validate-on out"]);
    sandbox.train(&["--validate-on", "train:0"]).failed(2, &["data.validate_on", "at least 1"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

#[test]
fn a_folder_of_classes_is_judged() {
    let sandbox = Sandbox::new();
    for class in ["cat", "dog"] {
        fill(&sandbox.path(&format!("classes/{class}")), 20);
    }
    let ran = sandbox.train(&["./classes"]).succeeded();
    assert!(ran.stdout.contains("kNN top-1"), "{}", ran.stdout);
}

#[test]
fn an_existing_run() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    sandbox
        .train(&["--name", "a"])
        .failed(2, &["runs/a", "exists already", "--resume a", "--name"]);
}

#[test]
fn unknown_data_sets() {
    let sandbox = Sandbox::new();
    sandbox.train(&["shaeps"]).failed(2, &["`shaeps`", "did you mean `shapes`"]);
    sandbox.train(&["./nowhere"]).failed(2, &["nowhere", "no such file or folder"]);
    sandbox.train(&["cifar10"]).failed(2, &["cifar10 was not found", "ANCHORHOOD_CIFAR10", "data"]);
}

#[test]
fn more_threads_than_make_sense() {
    let sandbox = Sandbox::new();
    sandbox.run(&["bench", "step", "--threads", "4096"]).failed(2, &["--threads 4096", "256"]);
    let config = sandbox.run(&["train", "--threads", "4096"]);
    config.failed(2, &["machine.threads", "256"]);
}

#[test]
fn a_gpu_that_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--device", "gpu"]).failed(2, &["gpu", "auto, cpu, cuda, cuda:N"]);
    if anchorhood::engine::Cuda::available() {
        anchorhood_testing::skip("this machine has a GPU");
        return;
    }
    let runs = sandbox.train(&["--device", "cuda", "--name", "none"]);
    runs.failed(1, &["was not found", "install"]);
    assert!(!sandbox.path("runs/none").exists());
}

#[test]
fn cifar_files_of_the_wrong_length() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("cifar-10-batches-bin");
    fs::create_dir(&folder).unwrap();
    for name in names_of_cifar() {
        fs::write(folder.join(name), vec![0; 3073 * 2 + 5]).unwrap();
    }
    sandbox
        .train(&["cifar10:cifar-10-batches-bin"])
        .failed(1, &["data_batch_1.bin", "30730000", "6151"]);
}

fn names_of_cifar() -> Vec<String> {
    let batches = (1..=5).map(|i| format!("data_batch_{i}.bin"));
    batches.chain(["test_batch.bin".into()]).collect()
}

#[test]
fn places_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("runs"), "a file where the folder should be").unwrap();
    sandbox.train(&[]).failed(1, &["runs"]);
    // Root may write anywhere but here.
    #[cfg(target_os = "linux")]
    sandbox.train(&["--runs", "/proc/runs"]).failed(1, &["/proc/runs"]);
}

/// A limit on file sizes fails writes as a full disk does.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_the_last_good_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--rounds", "0"]).succeeded();
    sandbox.train(&["--name", "b", "--rounds", "0", "--epochs", "3"]).succeeded();
    let limited = |blocks: usize, args: &str| {
        let program = env!("CARGO_BIN_EXE_anchorhood");
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec '{program}' {args}");
        let mut command = std::process::Command::new("sh");
        let output = command.args(["-c", &line]).current_dir(sandbox.path(".")).output();
        common::Ran::from(output.unwrap())
    };
    let args = format!("train --name c {}", common::TINY.join(" "));
    limited(8, &args).failed(1, &["round-0.safetensors", "cannot write", "--resume"]);
    let left = names(&sandbox.path("runs/c/checkpoints"));
    assert_eq!(left, Vec::<String>::new(), "nothing half-written");
    // With room again, it goes on.
    sandbox.run(&["train", "--resume", "c"]).succeeded();
}

#[test]
fn settings_that_cannot_be() {
    let sandbox = Sandbox::new();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--epochs", "0"], &["training.epochs", "at least 1"]),
        (&["--lr", "-1"], &["training.learning_rate", "above 0"]),
        (&["--tau", "0"], &["discovery.temperature"]),
        (&["--held-out", "1.5"], &["data.held_out"]),
        (&["--hue", "0.9"], &["augmentation", "hue"]),
        (&["--name", "../up"], &["--name", "../up"]),
        (&["--config", "nowhere.toml"], &["nowhere.toml"]),
    ];
    for (args, parts) in cases {
        let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
        let joined: Vec<String> = match args[1].starts_with('-') {
            true => vec![format!("{}={}", args[0], args[1])],
            false => args,
        };
        let all: Vec<&str> = joined.iter().map(String::as_str).collect();
        sandbox.run(&[&["train"], &all[..]].concat()).failed(2, parts);
    }
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

#[test]
fn a_misspelt_configuration_file() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("mine.toml"), "[training]\nepoch = 3\n").unwrap();
    sandbox.run(&["train", "--config", "mine.toml"]).failed(2, &["mine.toml"]).says(&["epoch"]);
}

#[test]
fn words_that_mean_nothing() {
    let sandbox = Sandbox::new();
    for args in [
        &["trian"][..],
        &["train", "--device", "toaster"],
        &["train", "--network", "resnet19"],
        &["train", "--epochs", "many"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
}

#[test]
fn a_diverging_run_stops_and_keeps_what_was_good() {
    let sandbox = Sandbox::new();
    sandbox
        .train(&["--name", "a", "--lr", "1e30", "--epochs", "3"])
        .failed(1, &["the loss became", "lower --lr"]);
    // One step an epoch: its loss is that of the weights before it. By a memory of noise, whose
    // gradients are the larger.
    let at_once = ["--name", "b", "--lr", "3e38", "--batch", "48"];
    let ran = sandbox
        .train(&[&at_once[..], &["--fill-memory", "false"]].concat())
        .failed(1, &["became", "nothing was saved", "lower --lr than 3e38"]);
    assert!(!ran.stderr.contains("the loss became"), "{}", ran.stderr);
    assert!(names(&sandbox.path("runs/b/checkpoints")).is_empty());
    for name in names(&sandbox.path("runs/a/checkpoints")) {
        let path = sandbox.path(&format!("runs/a/checkpoints/{name}"));
        anchorhood::train::Checkpoint::load(&path).unwrap();
    }
}

/// 2 for what cannot be asked for, 1 for what was asked for and failed; in every command that
/// trains.
#[test]
fn bad_usage_ends_with_2_and_a_failure_with_1() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--quiet"]).succeeded();
    sandbox.train(&["--name", "broken", "--quiet"]).succeeded();
    for name in names(&sandbox.path("runs/broken/checkpoints")) {
        let file = sandbox.path(&format!("runs/broken/checkpoints/{name}"));
        fs::write(file, "no checkpoint").unwrap();
    }
    fs::write(sandbox.path("file"), "no folder").unwrap();
    let tiny =
        "--shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 --rounds 0 --threads 1";
    let before = names(&sandbox.path("runs"));
    for (code, line) in [
        (2, "train nowhere/at/all"),
        (2, "train --epochs 0"),
        (2, "train --epochs 2 --minutes 1"),
        (2, "train --data elsewhere"),
        (2, "train --from nothing"),
        (2, "train --name a"),
        (2, "train --method byol --features 8"),
        (2, "train --config file"),
        (1, "train --runs file"),
        (2, "train --resume nobody"),
        (2, "train --resume a --name broken"),
        (2, "train --resume a --minutes 1"),
        (2, "train --resume a --epochs 7"),
        (2, "train --resume a --preset paper"),
        (2, "train --resume a --data nowhere"),
        (2, "train --resume a --from base"),
        (1, "train --resume broken"),
        (2, "compare"),
        (2, "compare --methods and"),
        (2, "compare --methods magic --minutes 1"),
        (2, "compare --methods and --view-epochs 1 --from base"),
        (2, "compare --methods and --view-epochs 1 --epochs 2"),
        (2, "compare --methods and --minutes 0.000001"),
        (2, "compare nowhere/at/all --methods and --view-epochs 1"),
        (1, "compare --methods and --view-epochs 1 --runs file"),
    ] {
        let sized = !line.contains("--resume") && !line.contains("nowhere");
        let line = match sized {
            true => format!("{line} {tiny}"),
            false => line.into(),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let ran = sandbox.run(&words);
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
    }
    let begun = |name: &String| !name.starts_with("compare-");
    let after: Vec<String> = names(&sandbox.path("runs")).into_iter().filter(begun).collect();
    assert_eq!(after, before, "no run is left behind");
    let lost = "compare --methods and --view-epochs 4 --lr 1e30 --name lost --fill-memory false";
    let line = format!("{lost} {tiny}");
    let words: Vec<&str> = line.split_whitespace().collect();
    sandbox.run(&words).failed(1, &[]);
}
