//! Containers come back as they went, other tools read them, and no changed bit is believed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anchorhood_storage::{
    AtomicFile, BLOCK, Container, Disk, Dtype, FileProblem, FileSystem, Forgetful, NamedTensor,
    OpenContainer, attack, read, write,
};
use tempfile::TempDir;

/// Three blocks of data.
fn large() -> Vec<u8> {
    (0..2 * BLOCK + 4096).map(|i| ((i * 31) >> 3) as u8).collect()
}

fn example(large: &[u8]) -> Container<'_> {
    let fields = [("format", "a \"test\" of\nü"), ("method", "and")];
    let fields = fields.map(|(k, v)| (k.to_string(), v.to_string()));
    Container {
        metadata: BTreeMap::from(fields),
        clock: "written=2026-01-02T03:04:05Z seconds=1.5".into(),
        tensors: vec![
            NamedTensor::new("flags", Dtype::U8, &[3], &[1, 0, 1]),
            NamedTensor::new("memory.bank", Dtype::F32, &[large.len() / 16, 4], large),
            NamedTensor::new("conv1.weight", Dtype::F32, &[2, 1], &large[..8]),
            NamedTensor::new("empty", Dtype::F32, &[0, 7], &[]),
            NamedTensor::new("one", Dtype::U64, &[], &large[..8]),
        ],
    }
}

fn written(container: &Container) -> (TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    write(container, &path, &Disk).unwrap();
    let bytes = fs::read(&path).unwrap();
    (folder, path, bytes)
}

fn by_name(mut container: Container) -> Container {
    container.tensors.sort_by(|a, b| a.name.cmp(&b.name));
    container
}

#[test]
fn what_was_written_is_read() {
    let large = large();
    for container in [example(&large), Container::default()] {
        let (_folder, path, bytes) = written(&container);
        let back = read(&path, &Disk).unwrap();
        let (_folder, _, again) = written(&back);
        assert!(again == bytes, "equal containers make equal files");
        assert_eq!(by_name(back), by_name(container));
    }
}

#[test]
fn other_tools_read_it_and_numbers_lie_as_in_memory() {
    let large = large();
    let (_folder, path, bytes) = written(&example(&large));
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let bank = theirs.tensor("memory.bank").unwrap();
    assert_eq!(bank.shape(), [large.len() / 16, 4]);
    assert!(bank.data() == large);
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().as_ref().unwrap()["version"], "2");
    let ours = OpenContainer::open(&path, &Disk).unwrap();
    let data = ours.tensor("memory.bank").unwrap().data;
    assert!(data.as_ptr().cast::<f32>().is_aligned());
}

#[test]
fn identical_runs_differ_in_their_clock_alone() {
    let large = large();
    let (_a, _, one) = written(&example(&large));
    let mut later = example(&large);
    later.clock = "written=2027-01-01T00:00:00Z seconds=123456.75".into();
    let (_b, _, two) = written(&later);
    assert_eq!(one.len(), two.len());
    let differ = (0..one.len()).filter(|i| one[*i] != two[*i]);
    let differ: Vec<usize> = differ.collect();
    assert!(!differ.is_empty() && differ.iter().all(|i| (34..258).contains(i)));
}

/// A generator that is good enough for places to damage.
struct Places(u64);

impl Places {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) as usize % below
    }
}

/// In memory, since some systems wait for the disk when a file is written over.
fn refused(bytes: &[u8], how: &str) {
    let open = OpenContainer::of_bytes(Path::new("a.safetensors"), bytes.to_vec().into());
    let error = open.and_then(|open| open.check_all()).err();
    let error = error.unwrap_or_else(|| panic!("{how} was not noticed"));
    let said = error.to_string();
    let named = said.contains("a.safetensors") && (said.contains("byte") || said.contains("its "));
    assert!(named, "{how}: {said}");
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let large = large();
    let (_folder, _, good) = written(&example(&large));
    let mut places = Places(1);
    // Anywhere: the header is what most of a small file is.
    for _ in 0..400 {
        let (at, bit) = (places.next(good.len()), places.next(8));
        let mut bytes = good.clone();
        bytes[at] ^= 1 << bit;
        refused(&bytes, &format!("bit {bit} of byte {at}"));
    }
    for _ in 0..50 {
        let length = places.next(good.len());
        refused(&good[..length], &format!("cut to {length} bytes"));
    }
}

#[test]
fn every_bit_of_a_small_file_counts() {
    let mut small = example(&[0; 16]);
    small.tensors.retain(|t| t.name != "empty");
    let (_folder, _, good) = written(&small);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            refused(&bytes, &format!("bit {bit} of byte {at}"));
        }
    }
    for length in 1..good.len() {
        refused(&good[..length], &format!("cut to {length} bytes"));
    }
    for more in [1, 63, 64, 4096] {
        let bytes = [&good[..], &vec![0; more]].concat();
        refused(&bytes, &format!("{more} bytes more"));
    }
}

#[test]
fn opening_touches_no_data_and_a_block_is_checked_once() {
    let large = large();
    let (_folder, path, mut bytes) = written(&example(&large));
    let last = bytes.len() - 1000;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let file = OpenContainer::open(&path, &Disk).unwrap();
    assert_eq!(file.blocks(), (0, 3));
    assert_eq!(file.bytes_of("memory.bank", 16..32).unwrap(), &large[16..32]);
    assert_eq!(file.blocks(), (1, 3));
    file.bytes_of("memory.bank", 64..BLOCK / 2).unwrap();
    assert_eq!(file.blocks(), (1, 3));
    let end = large.len();
    let said = file.bytes_of("memory.bank", end - 4..end).unwrap_err();
    assert!(said.to_string().contains("met in memory.bank"), "{said}");
    file.bytes_of("memory.bank", end..end + 1).unwrap_err();
    file.tensor("nothing").unwrap_err();
    file.check_all().unwrap_err();
}

#[test]
fn files_without_checksums_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.safetensors");
    let view = safetensors::tensor::TensorView::new(Dtype::F32, vec![1], &[0, 0, 128, 63]).unwrap();
    let refused = |fields: &[(&str, &str)]| {
        let fields = fields.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        let bytes = safetensors::serialize([("weight", &view)], Some(fields.collect())).unwrap();
        fs::write(&path, bytes).unwrap();
        (read(&path, &Disk).unwrap_err(), OpenContainer::is_ours(&path))
    };
    for theirs in [&[][..], &[("version", "1")], &[("format", "pt")]] {
        let (said, ours) = refused(theirs);
        assert!(matches!(said.problem, FileProblem::Content(_)) && !ours, "{said}");
    }
    let format = ("format", "anchorhood-checkpoint");
    for other in [&[format][..], &[format, ("version", "1")]] {
        let (said, ours) = refused(other);
        assert!(matches!(said.problem, FileProblem::Version(_)) && ours, "{said}");
    }
    // One that claims checksums and has none was damaged where they are.
    let (said, ours) = refused(&[("version", "2")]);
    assert!(matches!(said.problem, FileProblem::Damaged(_)) && ours, "{said}");
    for bytes in [&b""[..], b"PK\x03\x04 a zip file", &[0xff; 40]] {
        fs::write(&path, bytes).unwrap();
        let said = read(&path, &Disk).unwrap_err();
        assert!(matches!(said.problem, FileProblem::NotContainer(_)), "{said}");
    }
    let gone = read(&folder.path().join("gone"), &Disk).unwrap_err();
    assert!(matches!(gone.problem, FileProblem::Io(_)), "{gone}");
}

#[test]
fn what_cannot_be_written_is_refused_before_a_file_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let tensor = |name: &str, shape: &[usize]| NamedTensor::new(name, Dtype::U8, shape, &[1, 2]);
    let tensors =
        |tensors: Vec<NamedTensor<'static>>| Container { tensors, ..Container::default() };
    let clock = |clock: &str| Container { clock: clock.into(), ..Container::default() };
    let fields = BTreeMap::from([("checksum".to_string(), String::new())]);
    for bad in [
        tensors(vec![tensor("a", &[2]), tensor("a", &[1, 2])]),
        tensors(vec![tensor("__metadata__", &[2])]),
        tensors(vec![tensor("a", &[3])]),
        tensors(vec![tensor("a", &[usize::MAX, 4])]),
        clock("\""),
        clock("ü"),
        clock(&"x".repeat(193)),
        Container { metadata: fields, ..Container::default() },
    ] {
        let said = write(&bad, &path, &Disk).unwrap_err();
        assert!(matches!(said.problem, FileProblem::Content(_)), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn whatever_happens_to_the_disk_the_old_file_or_the_new_one_is_whole() {
    let (start, path) = (Forgetful::new(), Path::new("/a"));
    AtomicFile::write_on(&start, path, b"old").unwrap();
    let new = example(&[0; 16]);
    let faults = attack(
        &start,
        |disk| write(&new, path, &*disk).is_ok(),
        |disk, written, what| {
            let old = disk.read(path).is_ok_and(|bytes| bytes == b"old");
            assert!(read(path, disk).is_ok() || (old && !written), "{what}");
        },
    );
    assert!(faults > 20, "{faults}");
}
