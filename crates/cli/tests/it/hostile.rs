//! What others do to pictures, packs and runs: damage them, swap them, name them badly, claim too
//! much, take the disk away. Always a sentence, never an abort, and nothing taken for what it is
//! not. What is refused before anything begins is in `refusals`.

use std::fs;
use std::process::Stdio;

use anchorhood::research::Checkpoint;
use image::{DynamicImage, GrayImage, ImageBuffer, Luma};

use crate::common::{Ran, Sandbox, names, train_args, trained, wait_for};
use crate::folders::{fill, huge_png, picture, png, wide};

#[test]
fn odd_pictures_are_read_and_broken_ones_named_wherever_pictures_are_read() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    fill(&folder, 46);
    let grey = GrayImage::from_fn(30, 20, |x, _| Luma([x as u8 * 8]));
    grey.save(folder.join("grey.png")).unwrap();
    let deep: ImageBuffer<Luma<u16>, Vec<u16>> =
        ImageBuffer::from_fn(9, 40, |_, y| Luma([y as u16 * 1600]));
    DynamicImage::from(deep).save(folder.join("sixteen-bit.png")).unwrap();
    picture(3).save(folder.join("Фото 写真 ü.PNG")).unwrap();
    wide(4).save(folder.join("whole.jpg")).unwrap();
    let jpeg = sandbox.read("mine/whole.jpg");
    let mut large = jpeg.clone();
    let at = large.windows(4).position(|w| w == [0, 16, 0, 20]).unwrap();
    large[at..at + 4].copy_from_slice(&[0x27, 0x0F, 0x27, 0x10]);
    sandbox.write("mine/half.jpg", &jpeg[..jpeg.len() / 3]);
    sandbox.write("mine/cut.jpg", &jpeg[..jpeg.len() * 9 / 10]);
    sandbox.write("mine/large.jpg", large);
    sandbox.write("mine/text.jpg", "this is no picture");
    sandbox.write("mine/huge.png", huge_png());

    let ran = sandbox.run("data check ./mine").failed(1, "is not whole");
    let ran = ran.prints("cut.jpg: the file is cut off; large.jpg: ; too few for 10000×9999");
    assert!(!ran.stdout.contains("whole.jpg"), "{}", ran.stdout);
    let skipped = "cut.jpg: skipped: the file is cut off; large.jpg: skipped; half.jpg: skipped; \
        text.jpg: skipped; huge.png: skipped";
    let ran = sandbox.train("./mine --name a").succeeded().says(skipped);
    let ran = ran.says("5 of 55 pictures; 50 pictures of 16×16").prints("no labels");
    let ran =
        ran.prints("No kNN is reported, because these pictures have no labels; anchors; loss");
    assert!(!ran.stdout.contains("kNN top-1"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("sixteen-bit.png: skipped"));
    sandbox.run("evaluate a").failed(2, "no labelled pictures; sub-folder per class");
    sandbox.run("embed --model a ./mine -o vectors.jsonl").succeeded().says(skipped);
    let vectors = sandbox.text("vectors.jsonl");
    assert!(vectors.contains("whole.jpg") && !vectors.contains("cut.jpg"));
}

#[test]
fn fewer_pictures_than_a_batch() {
    let ran = Sandbox::new().train("--shapes-train 10 --batch 64");
    ran.succeeded().says("warning; batch of 64; 10 pictures");
}

/// A limit on file sizes fails writes as a full disk does.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_the_last_good_checkpoint() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_anchorhood");
    let train = train_args("--name c");
    let line = format!("trap '' XFSZ; ulimit -f 8; exec '{program}' {train}");
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &line]).current_dir(sandbox.path(".")).output();
    let ran = Ran::from(output.unwrap());
    ran.failed(1, "round-0.safetensors; cannot write; --resume");
    let left = names(&sandbox.path("runs/c/checkpoints"));
    assert_eq!(left, Vec::<String>::new(), "nothing half-written");
    // With room again, it goes on.
    sandbox.run("train --resume c").succeeded();
}

#[test]
fn a_diverging_run_stops_and_keeps_what_was_good() {
    let sandbox = Sandbox::new();
    let diverged = "the loss became; lower --lr";
    sandbox.train("--name a --lr 1e30 --epochs 3").failed(1, diverged);
    // A comparison with it has failed, too.
    let lost = "compare --methods and --view-epochs 4 --lr 1e30 --fill-memory false \
        --shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 --rounds 0 --threads 1";
    sandbox.run(lost).failed(1, "");
}

#[test]
fn a_run_does_not_go_on_with_pictures_in_other_places() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("mine");
    fill(&folder, 30);
    sandbox.train("./mine --name a").succeeded();
    let resume = || sandbox.run("train --resume a").succeeded();
    resume();
    // A run of before, which has no such file, goes on with a word.
    fs::remove_file(sandbox.path("runs/a/pictures.safetensors")).unwrap();
    resume().says("warning; cannot be told");
    let ran = resume();
    assert!(!ran.stderr.contains("cannot be told"), "{}", ran.stderr);
    let (one, other, aside) = (folder.join("3.png"), folder.join("7.png"), folder.join("aside"));
    for (from, to) in [(&one, &aside), (&other, &one), (&aside, &other)] {
        fs::rename(from, to).unwrap();
    }
    sandbox.run("train --resume a").failed(2, "2 of 30; 3.png, 7.png; new run");
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
        if fs::write(path, png(&picture(40 + number as u32))).is_err() {
            return anchorhood_testing::skip("a file system of Unicode names alone");
        }
    }
    let broken = folder.join(std::ffi::OsStr::from_bytes(b"broken\x1b]0;title\x07.png"));
    fs::write(broken, "no picture").unwrap();
    let quiet = |ran: Ran| {
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}', '\u{202e}']), "{text:?}");
            assert!(!text.contains("\nerror: forged"), "{text:?}");
        }
        ran
    };
    let skipped = "broken\\x1b]0";
    quiet(sandbox.train("./mine --name a")).succeeded().says(skipped);
    quiet(sandbox.run("index --model a ./mine -o mine.index")).succeeded().says(skipped);
    let all = "neighbours --model a mine.index ./mine/0.png -k 16";
    let ran = quiet(sandbox.run(all)).succeeded();
    let lines: std::collections::HashSet<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 16, "{}", ran.stdout);
    for name in ["bad\\xff.png", "bad\u{fffd}.png", "red\\x1b[31m\\x0aerror: forged\\x0d.png"] {
        assert!(lines.iter().any(|l| l.ends_with(name)), "{name}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("gone"), "{}", ran.stdout);
    let mut nowhere = sandbox.command("neighbours --model a mine.index");
    nowhere.arg("./no\x1b[31m\nerror: forged.png");
    quiet(Ran::of(&mut nowhere)).failed(2, "./no\\u001b[31m");
}

/// Noise in the form of CIFAR-10 is whole, and told from the published pictures.
#[test]
fn noise_in_the_form_of_cifar_is_told() {
    let sandbox = Sandbox::new();
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
    for name in (1..=5).map(|i| format!("data_batch_{i}")).chain(["test_batch".into()]) {
        sandbox.write(&format!("cifar-10-batches-bin/{name}.bin"), &batch);
    }
    let ran = sandbox.run("data check ./cifar-10-batches-bin").succeeded();
    ran.prints("warning: ; other pixels");
    if let Some(place) = anchorhood_testing::variable("ANCHORHOOD_CIFAR10", "a CIFAR-10") {
        let ran = Ran::of(sandbox.command("data check").arg(place)).succeeded();
        assert!(!ran.stdout.contains("warning"), "{ran:?}");
    }
}

#[test]
fn removed_checkpoints_are_made_again_and_a_removed_run_is_told() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start("--name a --rounds 10000"); // saved after each
    let last = sandbox.checkpoint("a", "last");
    wait_for("checkpoint", || last.exists());
    fs::rename(sandbox.path("runs/a/checkpoints"), sandbox.path("gone")).unwrap();
    wait_for("checkpoint", || last.exists());
    fs::rename(sandbox.path("runs/a"), sandbox.path("runs/moved")).unwrap();
    wait_for("end without a folder", || child.try_wait().unwrap().is_some());
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.failed(1, ".safetensors; moved or removed");
    assert_eq!(names(&sandbox.path("runs")), ["moved"], "no half of a run is made again");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pack_that_is_shortened_while_it_is_read_ends_with_a_sentence() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 60);
    sandbox.run("data pack ./mine -o mine.pack --size 32").succeeded();
    let line = "train ./mine.pack --name a --epochs 100000 --width 2 --batch 16 --rounds 0 \
        --threads 1";
    let mut command = sandbox.command(line);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let begun = sandbox.path("runs/a/metrics.jsonl");
    wait_for("metrics", || fs::metadata(&begun).is_ok_and(|m| m.len() >= 300));
    let file = fs::File::options().write(true).open(sandbox.path("mine.pack")).unwrap();
    file.set_len(5000).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.failed(1, "mine.pack; shortened; What was saved before is whole");
}

/// A picture that is damaged is seen as grey, and named; a damaged checkpoint, index or pack is
/// refused. The libraries' own tests flip each bit.
#[test]
fn a_flipped_bit_is_noticed_by_whoever_reads_the_file() {
    let sandbox = trained("");
    fill(&sandbox.path("pictures"), 12);
    sandbox.run("index --model a pictures -o p.index").succeeded();
    sandbox.run("data pack ./pictures -o mine.pack --size 16").succeeded();
    let last = "runs/a/checkpoints/last.safetensors";
    let flipped = |file: &str, part: usize, commands: &[&str]| {
        let mut bytes = sandbox.read(file);
        let at = bytes.len() * part / 4 - bytes.len() / 7;
        bytes[at] ^= 1 << (at % 8);
        let whole = fs::read(sandbox.path(file)).unwrap();
        sandbox.write(file, bytes);
        let named = file.rsplit('/').next().unwrap();
        commands.iter().for_each(|command| drop(sandbox.run(command).failed(1, named)));
        sandbox.write(file, whole);
    };
    let readers = [
        "evaluate a",
        "embed --model a pictures -o v.csv",
        "index --model a pictures -o new.index",
        "export a --onnx m.onnx",
        "report a",
        "serve a --port 0",
    ];
    flipped(last, 2, &readers);
    let find = "neighbours --model a p.index pictures/7.png -k 3";
    flipped("p.index", 3, &[find]);
    flipped("mine.pack", 1, &["data check mine.pack"]);
    let mut pack = sandbox.read("mine.pack");
    let middle = pack.len() / 2;
    pack[middle] ^= 4;
    sandbox.write("grey.pack", pack);
    sandbox.train("./grey.pack --rounds 0").succeeded().says("damaged; seen as plain grey");
    for output in ["v.csv", "new.index", "m.onnx"] {
        assert!(!sandbox.path(output).exists(), "{output}");
    }
    // Numbers that are none, under right checksums.
    let mut bad = Checkpoint::load(&sandbox.path(last)).unwrap();
    bad.weights[0].values[0] = f32::NAN;
    bad.save(&sandbox.path(last)).unwrap();
    sandbox.run("evaluate a").failed(1, "last.safetensors; not a whole checkpoint");
    let resumed = sandbox.run("train --resume a").succeeded();
    resumed.says("holds NaN; the run goes on from; round-1");
    sandbox.run("evaluate a").succeeded();
    sandbox.run(find).succeeded();
}
