//! What others do to pictures, packs and runs: damage them, swap them, name them badly, claim too
//! much. Always a sentence, never an abort, and nothing taken for what it is not.

use std::fs;
use std::path::Path;

use image::{Rgb, RgbImage};

use crate::common::{self, Sandbox, names};

fn picture(number: u32) -> RgbImage {
    RgbImage::from_fn(20, 16, |x, y| {
        Rgb([(x * 12 + number) as u8, (y * 15) as u8, (number * 37) as u8])
    })
}

fn fill(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        picture(number).save(folder.join(format!("{number:02}.png"))).unwrap();
    }
}

#[test]
fn cut_jpegs_are_noticed_wherever_pictures_are_read() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    fill(&folder, 30);
    let whole = folder.join("whole.jpg");
    picture(1).save(&whole).unwrap();
    let bytes = fs::read(&whole).unwrap();
    fs::write(folder.join("cut.jpg"), &bytes[..bytes.len() * 9 / 10]).unwrap();
    let mut large = bytes.clone();
    let at = large.windows(4).position(|w| w == [0, 16, 0, 20]).unwrap();
    large[at..at + 4].copy_from_slice(&[0x27, 0x0F, 0x27, 0x10]);
    fs::write(folder.join("large.jpg"), large).unwrap();

    let ran = sandbox.run(&["data", "check", "./mine"]);
    assert!(ran.stdout.contains("cut.jpg: the file is cut off"), "{}", ran.stdout);
    assert!(ran.stdout.contains("large.jpg: ") && ran.stdout.contains("too few for 10000×9999"));
    assert!(!ran.stdout.contains("whole.jpg"), "{}", ran.stdout);
    ran.failed(1, &["is not whole"]);
    let skipped = ["cut.jpg: skipped: the file is cut off", "large.jpg: skipped"];
    sandbox.train(&["./mine", "--name", "a"]).succeeded().says(&skipped);
    let embed = ["embed", "--model", "a", "./mine", "-o", "vectors.jsonl"];
    sandbox.run(&embed).succeeded().says(&skipped);
    let vectors = fs::read_to_string(sandbox.path("vectors.jsonl")).unwrap();
    assert!(vectors.contains("whole.jpg") && !vectors.contains("cut.jpg"));
}

#[test]
fn what_needs_more_memory_than_there_is_says_so() {
    let sandbox = Sandbox::new();
    let parts = ["MiB asked for", "not one picture fits", "--width"];
    sandbox.train(&["--width", "4096"]).failed(1, &parts);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
    sandbox.train(&["--name", "a"]).succeeded();
    // A small file that claims a large network.
    let path = sandbox.path("runs/a/checkpoints/last.safetensors");
    let mut checkpoint = anchorhood::train::Checkpoint::load(&path).unwrap();
    checkpoint.config.network.width = 4096;
    let claims = sandbox.path("claims.safetensors");
    checkpoint.save(&claims).unwrap();
    let parts = ["claims.safetensors", "conv1.weight"];
    sandbox.run(&["evaluate", "./claims.safetensors"]).failed(1, &parts);
    sandbox.run(&["evaluate", "./claims.safetensors", "--linear"]).failed(1, &parts);
    fill(&sandbox.path("mine"), 3);
    let embed = ["embed", "--model", "./claims.safetensors", "./mine", "-o", "v.npy"];
    sandbox.run(&embed).failed(1, &parts);
}

#[test]
fn a_run_does_not_go_on_with_pictures_in_other_places() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    fill(&folder, 30);
    sandbox.train(&["./mine", "--name", "a"]).succeeded();
    let resume = ["train", "--resume", "a"];
    sandbox.run(&resume).succeeded();
    let (one, other, aside) = (folder.join("03.png"), folder.join("07.png"), folder.join("aside"));
    let swap = || {
        fs::rename(&one, &aside).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(&aside, &other).unwrap();
    };
    swap();
    sandbox.run(&resume).failed(2, &["2 of 30", "03.png, 07.png", "new run"]);
    swap();
    sandbox.run(&resume).succeeded();
    // A run of before, which has no such file, goes on with a word.
    fs::remove_file(sandbox.path("runs/a/pictures.safetensors")).unwrap();
    sandbox.run(&resume).succeeded().says(&["warning", "cannot be told"]);
    let ran = sandbox.run(&resume).succeeded();
    assert!(!ran.stderr.contains("cannot be told"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn names_are_kept_apart_and_do_nothing_to_the_terminal() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    fill(&folder, 12);
    let odd: [&[u8]; 4] = [
        b"bad\xff.png",
        "bad\u{fffd}.png".as_bytes(),
        b"red\x1b[31m\nerror: forged\r.png",
        "turned\u{202e}gnp.png".as_bytes(),
    ];
    for (number, name) in odd.iter().enumerate() {
        let path = folder.join(std::ffi::OsStr::from_bytes(name));
        let mut bytes = std::io::Cursor::new(vec![]);
        picture(40 + number as u32).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        if fs::write(path, bytes.into_inner()).is_err() {
            anchorhood_testing::skip("a file system of Unicode names alone");
            return;
        }
    }
    let broken = folder.join(std::ffi::OsStr::from_bytes(b"broken\x1b]0;title\x07.png"));
    fs::write(broken, "no picture").unwrap();
    let quiet = |ran: common::Ran| {
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}', '\u{202e}']), "{text:?}");
            assert!(!text.contains("\nerror: forged"), "{text:?}");
        }
        ran
    };
    let ran = quiet(sandbox.train(&["./mine", "--name", "a"])).succeeded();
    ran.says(&["broken\\x1b]0;title\\x07.png: skipped"]);
    let ran =
        quiet(sandbox.run(&["index", "--model", "a", "./mine", "-o", "mine.index"])).succeeded();
    ran.says(&["broken\\x1b]0;title\\x07.png: skipped"]);
    let all = ["neighbours", "--model", "a", "mine.index", "./mine/00.png", "-k", "16"];
    let ran = quiet(sandbox.run(&all)).succeeded();
    let lines: std::collections::HashSet<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 16, "{}", ran.stdout);
    for name in ["bad\\xff.png", "bad\u{fffd}.png", "red\\x1b[31m\\x0aerror: forged\\x0d.png"] {
        assert!(lines.iter().any(|l| l.ends_with(name)), "{name}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("gone"), "{}", ran.stdout);
    let nowhere = ["neighbours", "--model", "a", "mine.index", "./no\x1b[31m\nerror: forged.png"];
    quiet(sandbox.run(&nowhere)).failed(2, &["./no\\u001b[31m"]).says(&["no such picture"]);
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    let no_file = ["/dev/zero", "not a regular file"];
    sandbox.train(&["--config", "/dev/zero"]).failed(2, &no_file);
    fs::write(sandbox.path("long.toml"), vec![b'#'; 2 << 20]).unwrap();
    sandbox.train(&["--config", "long.toml"]).failed(2, &["long.toml", "more than 1048576 bytes"]);
    sandbox.run(&["neighbours", "--model", "a", "/dev/zero", "/dev/zero"]).failed(1, &no_file);
    let model = ["neighbours", "/dev/zero", "/dev/zero", "/dev/zero"];
    assert!(sandbox.run(&model).code.is_some_and(|code| code > 0));
    let evaluate = ["evaluate", "/dev/zero", "--network", "resnet18", "--data", "shapes"];
    assert!(sandbox.run(&evaluate).code.is_some_and(|code| code > 0));
}

#[test]
fn settings_and_pictures_from_which_nothing_is_learnt() {
    let sandbox = Sandbox::new();
    sandbox
        .train(&["--tau", "1e-30"])
        .failed(2, &["discovery.temperature", "between 0.001 and 1000", "is 1e-30"]);
    let folder = sandbox.path("black");
    fs::create_dir_all(&folder).unwrap();
    for number in 0..12 {
        RgbImage::new(16, 16).save(folder.join(format!("{number}.png"))).unwrap();
    }
    let parts = ["black", "12 pictures", "same colour", "nothing to learn"];
    sandbox.train(&["./black"]).failed(2, &parts);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
}

/// Noise in the form of CIFAR-10 is whole, and told from the published pictures.
#[test]
fn noise_in_the_form_of_cifar_is_told() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("cifar-10-batches-bin");
    fs::create_dir_all(&folder).unwrap();
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut batch = vec![0; 10_000 * 3073];
    for record in batch.chunks_exact_mut(3073) {
        record.fill_with(&mut noise);
        record[0] %= 10;
    }
    for name in (1..=5).map(|i| format!("data_batch_{i}.bin")).chain(["test_batch.bin".into()]) {
        fs::write(folder.join(name), &batch).unwrap();
    }
    let check = ["data", "check", "./cifar-10-batches-bin"];
    let ran = sandbox.run(&check).succeeded();
    assert!(
        ran.stdout.contains("warning: ") && ran.stdout.contains("other pixels"),
        "{}",
        ran.stdout
    );
    if let Some(place) = anchorhood_testing::variable("ANCHORHOOD_CIFAR10", "a CIFAR-10") {
        let ran = sandbox.run(&["data", "check", &place.to_string_lossy()]).succeeded();
        assert!(!ran.stdout.contains("warning"), "{}", ran.stdout);
    }
}

#[test]
fn removed_checkpoints_are_made_again_and_a_removed_run_is_told() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start(&["--name", "a", "--rounds", "10000"]); // saved after each
    let last = sandbox.path("runs/a/checkpoints/last.safetensors");
    let wait_for = |there: &dyn Fn() -> bool| {
        let clock = std::time::Instant::now();
        while !there() {
            assert!(clock.elapsed().as_secs() < 120, "it takes too long");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait_for(&|| last.exists());
    fs::rename(sandbox.path("runs/a/checkpoints"), sandbox.path("gone")).unwrap();
    wait_for(&|| last.exists());
    fs::rename(sandbox.path("runs/a"), sandbox.path("runs/moved")).unwrap();
    let clock = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(clock.elapsed().as_secs() < 120, "it goes on without a folder");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ran = common::Ran::from(child.wait_with_output().unwrap());
    ran.failed(1, &[".safetensors", "moved or removed"]);
    assert_eq!(names(&sandbox.path("runs")), ["moved"], "no half of a run is made again");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pack_that_is_shortened_while_it_is_read_ends_with_a_sentence() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 60);
    let pack = ["data", "pack", "./mine", "-o", "mine.pack", "--size", "32"];
    sandbox.run(&pack).succeeded();
    let mut command =
        sandbox.command(&["train", "./mine.pack", "--name", "a", "--epochs", "100000"]);
    command.args(["--width", "2", "--batch", "16", "--rounds", "0", "--threads", "1"]);
    let child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    let begun = sandbox.path("runs/a/metrics.jsonl");
    let clock = std::time::Instant::now();
    while fs::metadata(&begun).map_or(0, |m| m.len()) < 300 {
        assert!(clock.elapsed().as_secs() < 120, "it does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let file = fs::File::options().write(true).open(sandbox.path("mine.pack")).unwrap();
    file.set_len(5000).unwrap();
    let ran = common::Ran::from(child.wait_with_output().unwrap());
    ran.failed(1, &["mine.pack", "shortened", "What was saved before is whole"]);
}
