//! What checksums cost: an index of a million vectors, a checkpoint of a ResNet-18 and the pictures of a run, saved, opened and
//! compared, each the median of five times after one that warms up. `cargo run --release -p anchorhood-fuzzing --example cost_of_checks`; it writes 1 GB into
//! a temporary folder.

use std::path::Path;
use std::time::Instant;

use anchorhood_data::{Pictures, Split};
use anchorhood_files::Disk;
use anchorhood_methods::{StateDict, Values};
use anchorhood_search::{IndexParts, PictureIndex};
use anchorhood_train::fuzzing::{keep_pictures, recognise_pictures};
use anchorhood_train::{Checked, Checkpoint, Preset, Slot, Standing, Tensor, embedding_graph};

const VECTORS: usize = 1_000_000;
const DIM: usize = 128;
const PICTURES: usize = 50_000;
const TIMES: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    index(&folder.path().join("a.index"));
    checkpoint(&folder.path().join("a.safetensors"));
    pictures(folder.path());
}

/// The median, after one time that does not count.
fn median(what: &str, mut work: impl FnMut()) {
    work();
    let mut seconds: Vec<f64> = (0..TIMES)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{what}: {:.1} ms", seconds[TIMES / 2] * 1e3);
}

fn index(path: &Path) {
    let name = |i: usize| format!("folder {}/picture {i}.jpg", i / 1000);
    let mut vectors: Vec<f32> = (0..VECTORS * DIM)
        .map(|i| ((i * 7919) % 1009) as f32 - 504.0)
        .collect();
    for row in vectors.chunks_exact_mut(DIM) {
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
    let query = vectors[..DIM].to_vec();
    let parts = IndexParts {
        folder: "/pictures".into(),
        names: (0..VECTORS).map(name).collect(),
        classes: vec![None; VECTORS],
        dim: DIM,
        vectors: vectors.into(),
        ..IndexParts::default()
    };
    let whole = PictureIndex::from_parts(path, parts).expect("its parts fit");
    median("index saved", || whole.save().expect("there is room"));
    drop(whole);
    let open = || PictureIndex::load(path).expect("it is whole");
    let search = |index: &PictureIndex| {
        let hits = index.nearest(&query, 10).expect("it is whole");
        assert_eq!(hits[0].index, 0);
    };
    median("index opened", || drop(open()));
    median("index opened and searched", || search(&open()));
    let opened = open();
    median("index searched again", || search(&opened));
    std::fs::remove_file(path).expect("it is there");
}

fn checkpoint(path: &Path) {
    let config = Preset::Paper.config("cifar10");
    let graph = embedding_graph(&config, 32).expect("the paper's network");
    let tensors = || -> Vec<Tensor> {
        let tensor = |p: &anchorhood_engine::Parameter| Tensor {
            name: p.name.clone(),
            shape: p.shape.clone(),
            values: vec![0.5; p.shape.iter().product()],
        };
        graph.parameters().iter().map(tensor).collect()
    };
    let mut state = StateDict::default();
    let bank = vec![0.25; PICTURES * DIM];
    state.push("memory.bank", vec![PICTURES, DIM], Values::F32(bank));
    let whole = Checkpoint {
        config,
        standing: Standing::default(),
        program: "0.1.0".into(),
        method: "and".into(),
        judged_layer: "normalise".into(),
        input: None,
        rows: [0, PICTURES as u64],
        weights: tensors(),
        slots: vec![Slot {
            name: "momentum".into(),
            tensors: tensors(),
        }],
        heads: vec![],
        state,
        checked: Checked::Verified,
    };
    median("checkpoint saved", || {
        whole.save(path).expect("there is room");
    });
    let bytes = std::fs::metadata(path).expect("it is there").len();
    println!("checkpoint: {:.1} MB", bytes as f64 / 1e6);
    median("checkpoint loaded", || {
        let loaded = Checkpoint::load(path).expect("it is whole");
        assert_eq!(loaded.pictures(), PICTURES);
    });
}

/// As many as CIFAR-10 has, in memory.
fn pictures(run: &Path) {
    let pixels = (0..PICTURES * 32 * 32 * 3).map(|p| p as u8).collect();
    let train = Split::from(Pictures::new(32, 32, pixels).expect("pictures"));
    keep_pictures(&Disk, run, &train).expect("there is room");
    median("pictures compared", || {
        let known = recognise_pictures(&Disk, run, &train).expect("the same");
        assert_eq!(known, None);
    });
}
