//! CIFAR's python files.

use anchorhood_data::fuzzing;

use super::fixture;

pub fn read(bytes: &[u8]) -> Option<()> {
    fuzzing::pickle(bytes).then_some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        fixture!("data/tests/fixtures/cifar-10-batches-py/batches.meta"),
        fixture!("data/tests/fixtures/cifar-10-batches-py/test_batch"),
        fixture!("data/tests/fixtures/cifar-100-python/meta"),
        fixture!("data/tests/fixtures/cifar-100-python/test"),
        fixture!("data/tests/fixtures/resaved/protocol-2"),
        fixture!("data/tests/fixtures/resaved/protocol-3"),
        fixture!("data/tests/fixtures/resaved/protocol-4"),
        small(),
    ]
}

/// A dictionary in few bytes, with the instructions that no published file has.
fn small() -> Vec<u8> {
    let mut bytes =
        b"\x80\x02}q\x01(U\x06labels](K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x02\x01\x02e".to_vec();
    bytes.extend(b"X\x0b\x00\x00\x00label_namesr\x05\x00\x00\x00]U\x01aaN\x88G12345678");
    bytes.extend(b"\x85\x86uj\x05\x00\x00\x00)s.");
    bytes
}
