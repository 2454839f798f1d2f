//! MATLAB's files.

use anchorhood_data::fuzzing;

use super::fixture;
use crate::scratch::with_file;
use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "mat",
    read,
    repair: repair::mat,
    seeds,
};

fn read(bytes: &[u8]) {
    with_file("a.mat", bytes, |path| {
        let _something = fuzzing::mat(path);
    });
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        fixture!("data/tests/fixtures/mat/plain.mat"),
        fixture!("data/tests/fixtures/mat/compressed.mat"),
        fixture!("data/tests/fixtures/svhn/test_32x32.mat"),
        fixture!("data/tests/fixtures/mat/v4.mat"),
        fixture!("data/tests/fixtures/mat/v73.mat"),
        numbers(),
    ]
}

/// An element: its kind, its length, its bytes, and zeros up to a multiple of eight.
fn element(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    let mut element = [&kind.to_le_bytes(), &length, bytes].concat();
    element.resize(element.len().next_multiple_of(8), 0);
    element
}

/// A variable `numbers` for every kind of number, and one `text` of each of the kinds that texts have.
fn numbers() -> Vec<u8> {
    let mut file = b"MATLAB 5.0 MAT-file".to_vec();
    file.resize(124, b' ');
    file.extend([0, 1, b'I', b'M']);
    let kinds = [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
        (5, 4),
        (6, 4),
        (7, 4),
        (9, 8),
        (12, 8),
        (13, 8),
    ];
    for (kind, width) in kinds {
        file.extend(variable(6, "numbers", kind, &vec![1; 2 * width]));
    }
    for (kind, width) in [(1, 1), (4, 2), (16, 1), (17, 2)] {
        file.extend(variable(4, "text", kind, &vec![b'a'; 2 * width]));
    }
    file
}

fn variable(class: u8, name: &str, kind: u32, data: &[u8]) -> Vec<u8> {
    let flags = element(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    let sizes = element(5, [1_i32, 2].map(i32::to_le_bytes).as_flattened());
    let parts = [
        flags,
        sizes,
        element(1, name.as_bytes()),
        element(kind, data),
    ];
    element(14, &parts.concat())
}
