//! What each command refuses: its exit code and what the sentence names, a line each; and nothing
//! is left behind, nor is anything that was there another. 2 is for what cannot be asked for, 1 for
//! what was asked for and failed.

use std::fs;
use std::path::Path;

use anchorhood::research::{Checkpoint, Form};

use crate::common::{self, Ran, Sandbox, files_below, trained, with_settings};
use crate::folders::fill;
use crate::protocols::foreign;

/// Settings that `train` and `compare` are given where a line has none of its own.
const SMALL: &str = "--shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 --rounds 0 \
    --threads 1";

/// Runs `a`, `b` (another network) and `broken`, folders of pictures, an index, and files that are
/// none of what their names say.
fn world() -> Sandbox {
    let sandbox = trained("");
    for (path, bytes) in files_below(&trained("--network resnet18 --seed 5").path("runs/a")) {
        sandbox.write(&format!("runs/b/{}", path.display()), bytes);
    }
    for (path, bytes) in files_below(&sandbox.path("runs/a")) {
        let bytes = if path.starts_with("checkpoints") { b"none".to_vec() } else { bytes };
        sandbox.write(&format!("runs/broken/{}", path.display()), bytes);
    }
    for (folder, pictures) in [("pictures", 30), ("one", 1), ("empty", 0), ("torn", 8)] {
        fill(&sandbox.path(folder), pictures);
    }
    fs::create_dir(sandbox.path("black")).unwrap();
    for number in 0..12 {
        let black = image::RgbImage::new(16, 16);
        black.save(sandbox.path(&format!("black/{number}.png"))).unwrap();
    }
    for batch in ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"] {
        sandbox.write(&format!("cifar-10-batches-bin/{batch}.bin"), vec![0; 3073 * 2 + 5]);
    }
    sandbox.run("index --model a pictures -o p.index --quiet").succeeded();
    let index = sandbox.read("p.index");
    sandbox.write("cut.index", &index[..index.len() - 10]);
    for (file, text) in [
        ("torn/text-0.jpg", "no"),
        ("torn/text-1.jpg", "no"),
        ("bad/text.jpg", "no"),
        ("cifar-10-batches-bin/test_batch.bin", "no"),
        ("empty.index", ""),
        ("file", "no folder"),
        ("text.jpg", "no picture"),
        ("no.pth", "no model"),
        ("no.onnx", "no model"),
        ("empty.onnx", ""),
        ("mine.pack", "no pack"),
        ("mine.toml", "[training]\nepoch = 3\n"),
        ("taken.npy", "mine"),
        ("taken.onnx", "mine"),
        ("w.paths.csv", "mine"),
        ("bad.jsonl", "what?\n"),
        ("bad.txt", "nowhere.png\n"),
        ("labels.csv", "1.png,x\n2.png,y\n"),
        ("one.csv", "1.png,x\n"),
        ("cat.csv", "cat.png,x\n"),
        ("none.csv", ""),
        ("short", "fifteen-letters"),
        ("word", "open-sesame-open"),
    ] {
        sandbox.write(file, text);
    }
    sandbox.write("long.toml", vec![b'#'; 2 << 20]);
    sandbox
}

/// Lines of code, words, and what is named, the last divided by `;`.
fn refused(sandbox: &Sandbox, lines: &str) {
    // The cache is the program's own, and from a journal a job goes on.
    let own = |path: &Path| path.starts_with("cache") || path.ends_with(".v.npy.journal");
    let files = || {
        let mut files = files_below(&sandbox.path(""));
        files.retain(|path, _| !own(path));
        files
    };
    let mut before = files();
    let mut wrong = vec![];
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [code, words, named] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let ran = sandbox.run(&with_small(words));
        let error = ran.error();
        let after = files();
        if ran.code != code.parse().ok() || !named.split("; ").all(|part| error.contains(part)) {
            wrong.push(format!("{line}\n  {:?}: {error}", ran.code));
        }
        let new = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
        let new: Vec<_> = new.map(|(path, _)| path).collect();
        if !new.is_empty() || after.len() != before.len() {
            wrong.push(format!("{line}\n  it left or took {new:?}"));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn with_small(words: &str) -> String {
    let has = |flag: &str| words.split_whitespace().any(|word| word == flag);
    let learns = ["train ", "compare "].iter().any(|command| words.starts_with(command));
    if !learns || has("--resume") || has("--config") {
        return words.into();
    }
    with_settings(words, SMALL)
}

#[test]
fn train() {
    let sandbox = world();
    refused(
        &sandbox,
        "
        2 | trian | trian
        2 | train ./empty | empty; give a folder
        2 | train ./one | one; at least 2
        1 | train ./torn | 2 of 10; text-0.jpg
        2 | train ./black | black; 12 pictures
        2 | train ./nowhere/at/all | nowhere
        2 | train shaeps | `shaeps`; `shapes`
        2 | train cifar10 | cifar10; ANCHORHOOD_CIFAR10; data
        1 | train cifar10:cifar-10-batches-bin | data_batch_1.bin; 30730000; 6151
        1 | train ./mine.pack | mine.pack; data pack
        1 | train --runs file | file
        1 | train --width 4096 | MiB; --width
        2 | train --name a | runs/a; --resume a; --name
        2 | train --name ../up | --name; ../up
        2 | train --data elsewhere | --resume; anchorhood train elsewhere
        2 | train --shapes-train 10 -k 10 | 10 neighbours; 9 others; --neighbours
        2 | train ./pictures --validate-on train:5 | pictures; --validate-on
        2 | train --validate-on train:0 | data.validate_on
        2 | train --validate-on train:47 | 47 of the 48; --validate-on train:46
        2 | train ./pictures --method supervised | pictures; label
        2 | train --method supervised --features 8 | --features
        2 | train --method byol --features 8 | --features
        ",
    );
}

#[test]
fn train_settings() {
    refused(
        &world(),
        "
        2 | train --epochs 0 | training.epochs
        2 | train --epochs many | many
        2 | train --epochs 2 --minutes 1 | --minutes
        2 | train --lr=-1 | training.learning_rate
        2 | train --tau 0 | discovery.temperature
        2 | train --tau 1e-30 | discovery.temperature; 0.001; 1000; 1e-30
        2 | train --held-out 1.5 | data.held_out
        2 | train --hue 0.9 | augmentation; hue
        2 | train --threads 4096 | machine.threads; 256
        2 | train --device gpu | gpu; cuda:N
        2 | train --device toaster | toaster
        2 | train --network resnet19 | resnet19
        2 | train --method simclr --embed-size 224 | data.embed_size; 224×224
        2 | train --config nowhere.toml | nowhere.toml
        2 | train --config mine.toml | mine.toml; epoch
        2 | train --config long.toml | long.toml; 1048576
        2 | train --config file | file
        ",
    );
}

#[test]
fn train_from() {
    refused(
        &world(),
        "
        2 | train --from nothing | `nothing`
        2 | train --from no.pth | no.pth
        2 | train --from no.onnx | no.onnx
        2 | train --from a --width 8 | network.width; has 2; --width
        2 | train --from a --network resnet34 | network.architecture; resnet10; --network
        2 | train --from a --size 32 | data.size; has 16
        2 | train --from a --epochs 1 --freeze-epochs 2 | training.freeze_epochs
        2 | train --freeze-epochs 1 | training.freeze_epochs
        ",
    );
}

#[test]
fn train_resume() {
    refused(
        &world(),
        "
        1 | train --resume broken | checkpoint
        2 | train --resume nobody | `nobody`; runs has a
        2 | train --resume a --name broken | --name
        2 | train --resume a --minutes 1 | --minutes
        2 | train --resume a --epochs 7 --lr 0.5 | runs/a; training.epochs; training.learning_rate
        2 | train --resume a --validate-on train:20 | data.validate_on
        2 | train --resume a --preset paper | network.width
        2 | train --resume a --data nowhere | nowhere
        2 | train --resume a --from base | training.from
        2 | train cifar10 --resume a | data.set; cifar10; shapes
        ",
    );
}

#[test]
fn compare_and_reproduce() {
    refused(
        &world(),
        "
        2 | compare --methods and | --minutes
        2 | compare --methods magic --minutes 1 | magic
        2 | compare --methods and --minutes 0 | minutes
        2 | compare --methods and --minutes 1 --epochs 2 | --epochs
        2 | compare --methods and --minutes 1 --knn-features memory | --knn-features
        2 | compare --methods and --minutes 1 --view-epochs 2 | --minutes
        2 | compare --methods and --view-epochs 1 --epochs 2 | --epochs
        2 | compare --methods and --view-epochs 1 --from base | --from
        2 | compare --methods and --view-epochs 1 --name ../x | ../x
        1 | compare --methods and --view-epochs 1 --runs file | file
        2 | reproduce | NAME
        2 | reproduce all --seeds 0 | 0
        2 | reproduce all --scale huge | huge
        2 | reproduce table9 --scale smoke | table9; table1; oneoff; attention; all
        2 | reproduce table3 --data-folder no/such | no/such
        1 | reproduce table5 --scale smoke --device cpu -o file | file; -o
        2 | bench step --threads 4096 | --threads 4096; 256
        2 | bench step --batch 0 | --batch
        ",
    );
}

/// Weights as another program would leave them, and a small checkpoint that claims a large network.
#[test]
fn evaluate_attention_and_report() {
    let sandbox = world();
    sandbox.write("theirs.safetensors", foreign(Form::Large, 16, 2, 1000));
    let mut checkpoint = Checkpoint::load(&sandbox.checkpoint("a", "last")).unwrap();
    checkpoint.config.network.width = 4096;
    checkpoint.save(&sandbox.path("claims.safetensors")).unwrap();
    refused(
        &sandbox,
        "
        2 | evaluate a --layer conv9 | conv9; conv1; all
        2 | evaluate a --linear --seeds 0 | --seeds
        2 | evaluate a --linear --linear-lr 0 | learning rate
        2 | evaluate untrained --data shapes | --network
        2 | evaluate untrained --network resnet18 | --data
        1 | evaluate ./claims.safetensors | claims.safetensors; conv1.weight
        1 | evaluate ./claims.safetensors --linear | claims.safetensors; conv1.weight
        2 | evaluate theirs.safetensors | theirs.safetensors; --network
        2 | evaluate theirs.safetensors --network resnet34 --data shapes | layer1.2.conv1.weight
        2 | evaluate theirs.safetensors --network alexnet --data shapes --size 16 | 7×7
        2 | evaluate theirs.safetensors --network resnet18 --width 3 --data shapes | conv1.weight
        2 | evaluate nothing.safetensors --network resnet18 --data shapes | nothing.safetensors
        2 | evaluate runs/a/checkpoints/last.safetensors --network resnet18 --data shapes | leave
        2 | attention a --pictures 48 | --pictures 48; 0 to 47
        2 | attention a --pictures 1 --layer conv7 | --layer; conv7
        2 | attention nobody --pictures 1 | `nobody`
        2 | report nobody | `nobody`; a
        2 | report a --data no/such | --data; no/such
        1 | report broken | runs/broken; not a whole checkpoint
        1 | embed --model ./claims.safetensors pictures -o v.npy | conv1.weight
        ",
    );
}

#[test]
fn embed_index_and_export() {
    refused(
        &world(),
        "
        2 | embed --model a empty -o v.npy | empty
        2 | embed --model a nowhere -o v.npy | nowhere
        1 | embed --model a bad -o v.npy | text.jpg
        2 | embed --model a pictures -o v.xlsx | v.xlsx; .parquet, .npy, .csv, .jsonl
        2 | embed --model a pictures -o no/v.npy | no
        2 | embed --model a pictures -o taken.npy | taken.npy; --overwrite
        2 | embed --model a pictures -o w.npy | w.paths.csv
        2 | embed --model a pictures -o v.npy --layer conv9 | conv9; conv1; fc
        2 | embed --model a pictures -o v.npy --shard 3/3 | --shard
        2 | embed --model a pictures -o v.npy --shard x | --shard
        2 | embed --model a pictures -o v.npy --shard 1 | --shard
        2 | embed --model a pictures -o v.npy --device cuda:0,1 | --device; --shard
        2 | embed --model a pictures -o v.npy --device cuda:all | --device; --shard
        2 | embed --model nobody pictures -o v.npy | `nobody`; a
        2 | embed --model pictures/0.png pictures -o v.npy | 0.png
        2 | embed a pictures -o v.npy | --model a
        2 | index a pictures -o n.index | --model a
        2 | index base | --model base
        2 | index --model a pictures -o cut.index | cut.index; --overwrite
        1 | index --model no.onnx pictures -o n.index | no.onnx; ONNX
        1 | index --model empty.onnx pictures -o n.index | empty.onnx; ONNX
        2 | export a | --onnx
        2 | export a --onnx taken.onnx | taken.onnx; --overwrite
        2 | export a --onnx one.x --safetensors ./one.x | ./one.x; a name of its own
        2 | export nobody --onnx x.onnx | `nobody`
        2 | export b --timm t | 64 channels; --onnx
        ",
    );
}

#[test]
fn neighbours_and_clusters() {
    refused(
        &world(),
        "
        1 | neighbours --model a cut.index pictures/1.png | cut.index; not a whole index
        1 | neighbours --model a empty.index pictures/1.png | empty.index; empty
        2 | neighbours --model a none.index pictures/1.png | none.index; anchorhood index
        1 | neighbours --model a runs/a/checkpoints/last.safetensors text.jpg | a checkpoint
        1 | neighbours --model a p.index text.jpg | text.jpg; JPEG
        2 | neighbours --model a p.index none.jpg | none.jpg
        2 | neighbours --model b p.index pictures/7.png | p.index; anchorhood index
        2 | neighbours p.index pictures/2.png --runs nowhere --model a | `a`
        2 | neighbours a pictures | --model a
        2 | cluster a pictures -o c | --model a
        1 | cluster cut.index -o c | cut.index
        2 | cluster p.index -k 31 -o c | 31 clusters; 30
        2 | cluster p.index -k 4 -o pictures | pictures; exists
        2 | classify --model b p.index --labels labels.csv | p.index; anchorhood index
        2 | classify --model a p.index --labels one.csv | 1 labelled picture; 2
        2 | classify --model a p.index --labels cat.csv | cat.csv; cat.png
        2 | classify --model a p.index --labels none.csv | none.csv
        2 | classify --model a p.index --labels labels.csv -o both.csv --next-to both.csv | both.csv
        2 | classify --model a pictures --check | sub-folders; --labels
        2 | classify --model a pictures | --labels
        2 | select p.index 3 --already bad.txt | bad.txt; nowhere.png
        1 | duplicates cut.index | cut.index
        2 | duplicates | FOLDER
        2 | duplicates p.index --above=98 | 98
        2 | duplicates p.index --above=-1.1 | -1.1
        2 | duplicates p.index --above=nan | NaN
        2 | duplicates pictures --keep prettiest | prettiest
        2 | duplicates p.index --move-to pictures/copies | pictures/copies
        2 | duplicates --undo bad.jsonl | bad.jsonl; line 1
        1 | duplicates --undo none.jsonl | none.jsonl
        ",
    );
}

#[test]
fn serve() {
    refused(
        &world(),
        "
        2 | serve nothing | nothing
        2 | serve a pictures | --model a
        2 | serve / --port 0 | holds more than pictures
        2 | serve empty --port 0 | empty
        1 | serve cut.index --port 0 | cut.index
        2 | serve p.index --model b --port 0 | another model
        2 | serve a --host 0.0.0.0 --token fifteen-letters | --token; 16
        2 | serve a --token-file nothing | nothing
        2 | serve a --token-file short | 16; --token-file
        2 | serve a --token-file word --token open-sesame-open | --token
        ",
    );
}

#[test]
fn data_and_model() {
    let zeros = "0".repeat(64);
    let lines = "
        2 | data check ./nowhere | ./nowhere
        2 | data check dogs | dogs; data fetch dogs
        2 | data check shapes | shapes
        2 | data pack shapes -o x.pack | shapes
        2 | data fetch imagenet | account; data/imagenet/train; ILSVRC2012_devkit_t12.tar.gz; check
        2 | data fetch mnist | mnist; cifar10, cifar100, svhn
        2 | data fetch cifar10 --extra | extra
        2 | model fetch resnet19 | resnet19; torchvision-resnet18
        2 | model fetch https://example.org/a.pth | --sha256
        2 | model fetch https://example.org/a.pth --sha256 12 | --sha256
        2 | model fetch https://example.org/ --sha256 ZEROS | the name of a file
        2 | model fetch https://example.org/.. --sha256 ZEROS | the name of a file
        2 | model fetch https://a.b/x%2fy.pth --sha256 ZEROS | the name of a file
        2 | model show torchvision-resnet18 | model fetch torchvision-resnet18
        2 | model show nothing | nothing
        ";
    let sandbox = world();
    refused(&sandbox, &lines.replace("ZEROS", &zeros));
    // No folder at all.
    let mut command = sandbox.command("model list");
    for name in ["ANCHORHOOD_CACHE", "XDG_CACHE_HOME", "HOME"] {
        command.env_remove(name);
    }
    Ran::of(&mut command).failed(2, "ANCHORHOOD_CACHE");
}

/// Files that have no end, or are none.
#[cfg(unix)]
#[test]
fn pipes_and_devices() {
    let sandbox = world();
    refused(
        &sandbox,
        "
        2 | train --config /dev/zero | /dev/zero; not a regular file
        1 | neighbours --model a /dev/zero /dev/zero | /dev/zero; not a regular file
        1 | neighbours /dev/zero /dev/zero /dev/zero | /dev/zero
        2 | evaluate /dev/zero --network resnet18 --data shapes | /dev/zero
        2 | serve a --token-file /dev/zero | /dev/zero; not a regular file
        ",
    );
    // Root may write anywhere but here.
    #[cfg(target_os = "linux")]
    refused(&sandbox, "1 | train --runs /proc/runs | /proc/runs");
    let pipe = sandbox.path("pipe");
    if !common::pipe(&pipe) {
        return;
    }
    refused(
        &sandbox,
        "
        2 | export a --onnx pipe --overwrite | pipe
        2 | serve a --token-file pipe | pipe; not a regular file
        ",
    );
    assert!(pipe.exists() && !pipe.is_file());
}
