//! Files as scipy writes them (tools/golden/set_fixtures.py), and files that nobody should have
//! written.

use super::*;
use crate::test_folder::fixture;

const MOST: u64 = 1 << 20;

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture("mat").join(name)).unwrap()
}

fn all(mut bytes: &[u8]) -> Result<[Value; 5], String> {
    read_from(&mut bytes, ["bytes", "numbers", "text", "cells", "synsets"], MOST)
}

fn check(name: &str) {
    let [pixels, numbers, text, cells, synsets] = all(&bytes(name)).unwrap();
    assert_eq!(pixels, Value::Bytes(vec![2, 3], vec![0, 3, 1, 4, 2, 5]));
    assert_eq!(numbers.numbers().unwrap(), [-1.5, 300.0, 1e10]);
    assert_eq!(text.text(), Some("grüße"));
    let Value::Cells(cells) = cells else { panic!("{cells:?}") };
    assert_eq!(cells[0].text(), Some("a/b.jpg"));
    assert_eq!(cells[1].text(), Some("c/d.jpg"));
    assert_eq!(cells[2].numbers().unwrap(), [] as [f64; 0]);
    assert_eq!(synsets.field(1, "WNID").unwrap().text(), Some("n00000002"));
    assert_eq!(synsets.field(0, "ID").unwrap().numbers().unwrap(), [7.0]);
    assert!(synsets.field(2, "ID").is_none() && synsets.field(0, "no").is_none());
}

#[test]
fn every_kind_of_variable_packed_or_not() {
    check("compressed.mat");
    check("plain.mat");
}

#[test]
fn other_versions_are_named() {
    let message = |name| all(&bytes(name)).unwrap_err();
    assert!(message("v4.mat").contains("version 4"));
    assert!(message("v73.mat").contains("MATLAB 7.3 file (HDF5); expected version 5"));
    assert!(all(b"hello").unwrap_err().contains("not a MATLAB file"));
    assert!(all(&[b'x'; 200]).unwrap_err().contains("version 5"));
    let mut big_endian = bytes("plain.mat");
    big_endian[124..128].copy_from_slice(&[1, 0, b'M', b'I']);
    assert!(all(&big_endian).unwrap_err().contains("big-endian"));
}

#[test]
fn what_is_not_there_or_longer_than_allowed_is_refused() {
    let found = read_from(&mut bytes("plain.mat").as_slice(), ["X"], MOST);
    assert_eq!(found.unwrap_err(), "expected a variable called X");
    let found = read_from(&mut bytes("compressed.mat").as_slice(), ["numbers"], 8);
    assert!(found.unwrap_err().contains("24 bytes where at most 8"));
}

#[test]
fn a_cut_file_says_so() {
    for name in ["plain.mat", "compressed.mat"] {
        let whole = bytes(name);
        for length in (129..whole.len() - 8).step_by(7) {
            assert!(all(&whole[..length]).is_err(), "{name} cut at {length}");
        }
    }
}

/// Cells within cells without end are refused at a fixed depth.
#[test]
fn depth_is_bounded() {
    let mut inner = Vec::new();
    for _ in 0..2000 {
        let mut cell = Vec::new();
        let flags = [6_u32, 8, u32::from(1_u8), 0].map(u32::to_le_bytes).concat();
        let sizes = [5_u32, 8, 1, 1].map(u32::to_le_bytes).concat();
        let name = [1 | 1 << 16, u32::from(b'c')].map(u32::to_le_bytes).concat();
        cell.extend([flags, sizes, name].concat());
        cell.extend(inner);
        let tag = [14, cell.len() as u32].map(u32::to_le_bytes).concat();
        inner = [tag, cell].concat();
    }
    let mut file = bytes("plain.mat")[..128].to_vec();
    file.extend(inner);
    let found = read_from(&mut file.as_slice(), ["c"], MOST);
    assert!(found.unwrap_err().contains("nest deeper"));
}
