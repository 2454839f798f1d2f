//! Encoders that PyTorch exports make the vectors that ONNX Runtime makes of the same pictures in
//! Python, and files that ask for too much, or are damaged, are refused with a sentence.

use std::path::Path;
use std::process::Command;

use anchorhood_engine::Device;
use anchorhood_engine::vectors::to_unit_length;
use anchorhood_index::onnx::{Encoder, Runtime};
use anchorhood_index::{Model, PictureIndex, SearchError};
use anchorhood_testing::{python_with, skip};

/// Memory for the networks of this test.
const MOST_BYTES: u64 = 1 << 30;
const MODULES: [&str; 6] = ["numpy", "onnx", "onnxruntime", "PIL", "timm", "torch"];

/// The files that the script makes; nothing where they cannot be made or run.
fn encoders() -> Option<tempfile::TempDir> {
    if Runtime::find(MOST_BYTES).is_err() {
        skip("ONNX Runtime is not here");
        return None;
    }
    let python = python_with(&MODULES)?;
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/encoders.py");
    let made = Command::new(python).arg(script).arg(folder.path()).output();
    let made = made.expect("it started a moment ago");
    let said = String::from_utf8_lossy(&made.stdout);
    let stderr = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}\n{stderr}");
    (said.lines().filter_map(|l| l.strip_prefix("skipped: "))).for_each(skip);
    Some(folder)
}

fn floats(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let values = bytes.chunks_exact(4).map(|b| b.try_into().unwrap());
    values.map(f32::from_le_bytes).collect()
}

/// The vectors of all pictures at unit length.
fn vectors(encoder: &Encoder, pictures: &[u8], one: usize) -> Vec<f32> {
    let parts = pictures.chunks(one * encoder.step());
    let mut vectors: Vec<f32> = parts.flat_map(|p| encoder.vectors(p).unwrap()).collect();
    to_unit_length(&mut vectors, encoder.dim());
    vectors
}

#[test]
#[ignore = "long: needs Python with torch, timm and ONNX Runtime"]
fn vectors_are_those_of_onnx_runtime_in_python() {
    let Some(folder) = encoders() else { return };
    let list = std::fs::read_to_string(folder.path().join("list")).unwrap();
    assert!(list.lines().count() >= 6, "{list}");
    for line in list.lines() {
        let [name, size, dim] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (size, dim): (usize, usize) = (size.parse().unwrap(), dim.parse().unwrap());
        let file = |ending: &str| folder.path().join(format!("{name}.{ending}"));
        let encoder = Encoder::load(&file("onnx"), MOST_BYTES).unwrap();
        println!("{name}: {encoder}");
        assert_eq!((encoder.preprocessing().size(), encoder.dim()), (size, dim));
        let pictures = std::fs::read(file("bytes")).unwrap();
        let ours = vectors(&encoder, &pictures, size * size * 3);
        let theirs = floats(&file("f32"));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let differences = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
        let worst = differences.fold(0.0, f32::max);
        println!("{name}: largest difference {worst:.1e}");
        assert!(worst < 1e-4, "{name}: {worst}");
        assert_ne!(ours[..dim], ours[dim..2 * dim], "{name}: pictures differ");
    }
    preprocessing(&folder.path().join("prepared"));
    refusals(folder.path());
    damage(&folder.path().join("mobilenet.onnx"));
}

/// An image file becomes the vector that Pillow and ONNX Runtime make of it, by the model's own
/// resizing and cutting: alone, and in an index.
fn preprocessing(folder: &Path) {
    let (model, device) = (Model::load(folder.join("model.onnx")).unwrap(), Device::cpu(1));
    let mut embedder = model.embedder(&device, 1, None).unwrap();
    let alone = embedder.embed_file(folder.join("images/image.png")).unwrap();
    let file = folder.join("images.index");
    let index = PictureIndex::build(&file, &model, &device, folder.join("images")).unwrap();
    let expected = floats(&folder.join("vector.f32"));
    for ours in [&alone[..], index.vector(0).unwrap()] {
        let likeness: f32 = ours.iter().zip(&expected).map(|(a, b)| a * b).sum();
        println!("prepared: similarity {likeness}");
        assert!(likeness > 0.9999, "{likeness}");
    }
}

/// What asks for too much, or for what nobody has.
fn refusals(folder: &Path) {
    let list = std::fs::read_to_string(folder.join("refused")).unwrap();
    for line in list.lines() {
        let (name, why) = line.split_once(' ').unwrap();
        let said = Encoder::load(&folder.join(format!("{name}.onnx")), MOST_BYTES).unwrap_err();
        assert!(matches!(said, SearchError::Failed(_)), "{said:?}");
        assert!(said.to_string().contains(why), "{said}");
    }
}

/// A whole file cut, or with a byte of its graph changed: a sentence or a network, and never the
/// end of the process.
fn damage(whole: &Path) {
    let bytes = std::fs::read(whole).unwrap();
    let file = whole.with_file_name("damaged.onnx");
    let mut refused = 0;
    for i in 0..60 {
        let mut bad = bytes.clone();
        let cut = i % 2 == 0;
        match cut {
            true => bad.truncate(bytes.len() * i / 60),
            false => bad[i * 211 % 12_000] ^= 0xff, // nodes come first, weights after them
        }
        std::fs::write(&file, &bad).unwrap();
        let read = Encoder::load(&file, MOST_BYTES);
        assert!(!cut || read.is_err(), "cut to {} bytes", bad.len());
        refused += usize::from(read.is_err());
    }
    println!("{refused} of 60 damaged files refused");
    assert!(refused > 30, "{refused}");
}
