//! MATLAB's files.

use anchorhood_data::fuzzing;

use super::fixture;
use crate::scratch::with_file;

pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.mat", bytes, fuzzing::mat).then_some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        fixture!("data/tests/fixtures/mat/plain.mat"),
        fixture!("data/tests/fixtures/mat/compressed.mat"),
        fixture!("data/tests/fixtures/svhn/test_32x32.mat"),
        fixture!("data/tests/fixtures/mat/v4.mat"),
        fixture!("data/tests/fixtures/mat/v73.mat"),
        numbers(),
        svhn(&[32, 32, 3, 2], &[1, 11]),
        svhn(&[32, 32, 3, 2], &[1, 2, 3]),
        svhn(&[32, 96, 2], &[1, 2]),
        svhn(&[1, 2], &[]),
    ]
}

/// An element: its kind, its length, its bytes, and zeros up to a multiple of eight.
fn element(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    let mut element = [&kind.to_le_bytes(), &length, bytes].concat();
    element.resize(element.len().next_multiple_of(8), 0);
    element
}

/// A variable `numbers` for every kind of number, and one `text` of each of the kinds that texts
/// have.
fn numbers() -> Vec<u8> {
    let mut file = opening();
    let kinds = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 4), (6, 4), (7, 4), (9, 8), (12, 8), (13, 8)];
    for (kind, width) in kinds {
        file.extend(variable(6, "numbers", &[1, 2], kind, &vec![1; 2 * width]));
    }
    for (kind, width) in [(1, 1), (4, 2), (16, 1), (17, 2)] {
        file.extend(variable(4, "text", &[1, 2], kind, &vec![b'a'; 2 * width]));
    }
    file
}

/// Pictures of so many bytes and their labels, as SVHN has them or as it has not; a pair of them is
/// numbers, not bytes.
fn svhn(sizes: &[i32], labels: &[u8]) -> Vec<u8> {
    let count: i32 = sizes.iter().product();
    let class = if count == 2 { 6 } else { 9 };
    let pixels = variable(class, "X", sizes, 2, &vec![7; count as usize]);
    let labels = variable(9, "y", &[labels.len() as i32, 1], 2, labels);
    [opening(), pixels, labels].concat()
}

/// What a file begins with.
fn opening() -> Vec<u8> {
    let mut opening = b"MATLAB 5.0 MAT-file".to_vec();
    opening.resize(124, b' ');
    opening.extend([0, 1, b'I', b'M']);
    opening
}

fn variable(class: u8, name: &str, sizes: &[i32], kind: u32, data: &[u8]) -> Vec<u8> {
    let flags = element(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    let sizes: Vec<u8> = sizes.iter().flat_map(|n| n.to_le_bytes()).collect();
    let sizes = element(5, &sizes);
    let parts = [flags, sizes, element(1, name.as_bytes()), element(kind, data)];
    element(14, &parts.concat())
}
