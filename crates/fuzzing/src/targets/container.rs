//! Containers, whatever is in them.

use std::io::Write as _;
use std::path::Path;

use anchorhood_storage::{
    BLOCK, Container, Dtype, FileSystem, Forgetful, NamedTensor, OpenContainer,
    read as read_container, write,
};

use crate::repair;

/// What was read is read again from what is written of it.
pub fn read(bytes: &[u8]) -> Option<()> {
    let path = Path::new("a");
    let disk = disk_with(path, bytes);
    if let Ok(open) = OpenContainer::open(path, &disk) {
        let _ = open.check_all();
        for name in open.names() {
            let part = open.bytes_of(name, 1..3);
            assert!(part.map_or(true, |part| part.len() == 2));
            assert!(open.shape(name).is_some(), "{name}");
        }
        assert!(open.blocks().0 <= open.blocks().1 && !open.path().as_os_str().is_empty());
    }
    let container = read_container(path, &disk).ok()?;
    // What is repaired may have what is never written.
    if write(&container, path, &disk).is_ok() {
        let again = read_container(path, &disk).expect("what was written is read");
        assert!(same(&container, &again), "{container:?}\n{again:?}");
    }
    Some(())
}

/// Tensors may lie in another order than they are written in.
fn same(a: &Container, b: &Container) -> bool {
    let there = |t: &NamedTensor| b.tensors.contains(t);
    let fields = (&a.metadata, &a.clock) == (&b.metadata, &b.clock);
    fields && a.tensors.len() == b.tensors.len() && a.tensors.iter().all(there)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let (path, disk) = (Path::new("a"), Forgetful::new());
    let data: Vec<u8> = (0..48).collect();
    let container = Container {
        metadata: [("format", "a test"), ("rows", "[0,3]")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        clock: "seconds=1".into(),
        tensors: vec![
            NamedTensor::new("long", Dtype::U64, &[2, 1], &data[..16]),
            NamedTensor::new("real", Dtype::F32, &[2, 3], &data[..24]),
            NamedTensor::new("flag", Dtype::U8, &[3], &data[..3]),
            NamedTensor::new("none", Dtype::F32, &[0, 4], &[]),
        ],
    };
    write(&container, path, &disk).expect("it is one");
    vec![bytes_of(path, &disk), plain(), vec![]]
}

/// A disk in memory with one file: nobody waits for a real one to sync.
pub fn disk_with(path: &Path, bytes: &[u8]) -> Forgetful {
    let disk = Forgetful::new();
    let file = disk.create_new(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.expect("memory takes any file");
    disk
}

/// A file on a disk of a target's own.
pub fn bytes_of(path: &Path, disk: &Forgetful) -> Vec<u8> {
    disk.read(path).expect("it was written")
}

/// A file that another program wrote, without checksums.
fn plain() -> Vec<u8> {
    safetensors(
        r#"{"__metadata__":{"format":"pt"},
            "a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
            "b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}}"#,
        &[0x3f; 22],
    )
}

/// A plain safetensors file.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length, header.as_bytes(), data].concat()
}

/// A file with right checksums whose header goes on, after the checksums of its blocks, with any
/// JSON.
pub fn with_checksums(rest: &str, data: &[u8]) -> Vec<u8> {
    let sums = "0".repeat(32 * data.len().div_ceil(BLOCK));
    let header = format!(
        "{{\"__metadata__\":{{\"clock\":\"{:192}{:032}\",\"checksum\":\"{:032}\",\
         \"blocks\":\"{sums}\",\"version\":\"2\",{rest}",
        "", 0, 0
    );
    repair::container(&safetensors(&header, data)).expect("it is laid out as one")
}
