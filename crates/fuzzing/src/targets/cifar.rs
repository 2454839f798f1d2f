//! CIFAR's archives, of every form.

use std::io::Write as _;

use anchorhood_data::fuzzing;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::fixture;
use super::pack::look;
use super::unpack::tar_of;
use crate::scratch::with_file;

/// What is not compressed is compressed first, so that mutations reach what lies within.
pub fn read(bytes: &[u8]) -> Option<()> {
    let compressed = if bytes.starts_with(b"\x1f\x8b") { bytes.to_vec() } else { gzip(bytes) };
    with_file("cifar-100-binary.tar.gz", &compressed, |path| {
        // By its name, and found in its folder.
        let folder = path.parent().expect("it lies in one");
        let _ = fuzzing::cifar(folder).iter().map(|d| look(&d.train));
        let data = fuzzing::cifar(path);
        let splits = data.iter().flat_map(|d| [Some(&d.train), d.test.as_ref()]);
        splits.flatten().for_each(look);
        data.is_some().then_some(())
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(vec![], Compression::none());
    let written = gzip.write_all(bytes).and_then(|()| gzip.finish());
    written.expect("memory takes all of it")
}

/// Two pictures, each after its labels.
fn binary(labels: &[u8]) -> Vec<u8> {
    let pixels: Vec<u8> = (0..3072).map(|p| p as u8).collect();
    [labels, &pixels].concat().repeat(2)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let (one, two) = (binary(&[7]), binary(&[19, 99]));
    let names: String = (0..10).map(|n| format!("class {n}\n")).collect();
    let binary_10 = [
        ("cifar-10-batches-bin/batches.meta.txt", names.as_bytes()),
        ("cifar-10-batches-bin/data_batch_1.bin", &one),
        ("cifar-10-batches-bin/data_batch_2.bin", &one),
        ("cifar-10-batches-bin/data_batch_3.bin", &one),
        ("cifar-10-batches-bin/data_batch_4.bin", &one),
        ("cifar-10-batches-bin/data_batch_5.bin", &one),
        ("cifar-10-batches-bin/test_batch.bin", &one),
    ];
    let binary_100 = [
        ("cifar-100-binary/train.bin", &two[..]),
        ("cifar-100-binary/test.bin", &two),
        ("cifar-100-binary/readme", b"passed over"),
    ];
    let python_100 = [
        ("cifar-100-python/meta", fixture!("data/tests/fixtures/cifar-100-python/meta")),
        ("cifar-100-python/train", fixture!("data/tests/fixtures/cifar-100-python/train")),
        ("cifar-100-python/test", fixture!("data/tests/fixtures/cifar-100-python/test")),
    ];
    let python_100 = python_100.each_ref().map(|(name, bytes)| (*name, &bytes[..]));
    let small = tar_of(&binary_100);
    vec![gzip(&small), small, tar_of(&binary_10), tar_of(&python_100)]
}
