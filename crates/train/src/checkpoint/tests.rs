use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anchorhood_storage::{Container, Fault, Forgetful};
use tempfile::TempDir;

use super::*;
use crate::fuzzing::{small_checkpoint as small, small_state as state};

/// A folder for files of one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("c.safetensors")
    }

    fn encode(&self, checkpoint: &Checkpoint) -> Vec<u8> {
        checkpoint.save(&self.path()).unwrap();
        fs::read(self.path()).unwrap()
    }
}

fn decode(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    let (disk, path) = (Forgetful::new(), Path::new("/c.safetensors"));
    let mut file = disk.create_new(path).unwrap();
    file.write_all(bytes).unwrap();
    Checkpoint::load_from(&disk, path)
}

#[test]
fn what_was_saved_is_loaded_to_the_bit() {
    let (folder, checkpoint) = (Folder::new(), small());
    checkpoint.save(&folder.path()).unwrap();
    let back = Checkpoint::load(&folder.path()).unwrap();
    let bits = |c: &Checkpoint| -> Vec<u32> {
        let values = c.weights.iter().flat_map(|t| &t.values);
        values.map(|v| v.to_bits()).collect()
    };
    assert_eq!(bits(&back), bits(&checkpoint));
    assert_eq!(back, checkpoint);
}

/// Neighbourhoods are what the whole file has, or the reason why not, whichever bit is flipped, of
/// every so many.
fn flipped_bits_leave_neighbourhoods(every: usize) {
    let (folder, whole) = (Folder::new(), small());
    let good = folder.encode(&whole);
    for bit in (0..8 * good.len()).step_by(every) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(folder.path(), &bytes).unwrap();
        // What is damaged elsewhere changes nothing.
        if let Ok(found) = Checkpoint::load_neighbourhoods(&folder.path()) {
            assert_eq!(found, whole.neighbourhoods(), "bit {bit}");
        }
    }
}

mod long {
    #[test]
    #[ignore = "long: reads a file once for each of its bits"]
    fn neighbourhoods_are_checked_bit_by_bit() {
        super::flipped_bits_leave_neighbourhoods(1);
    }
}

/// A run of which nothing was discovered has none.
#[test]
fn neighbourhoods_are_read_alone_and_checked() {
    flipped_bits_leave_neighbourhoods(23);
    let (folder, whole) = (Folder::new(), small());
    let alone = || Checkpoint::load_neighbourhoods(&folder.path());
    whole.save(&folder.path()).unwrap();
    assert!(whole.neighbourhoods().is_some());
    assert_eq!(alone().unwrap(), whole.neighbourhoods());
    let mut none = small();
    none.state = StateDict::default();
    none.save(&folder.path()).unwrap();
    assert_eq!(alone().unwrap(), None);
    let mut not_finite = small();
    for tensor in &mut not_finite.state.tensors {
        if let ("memory.entropy", Values::F32(values)) = (tensor.name.as_str(), &mut tensor.values)
        {
            values[0] = f32::NAN;
        }
    }
    not_finite.save(&folder.path()).unwrap();
    let said = alone().unwrap_err().to_string();
    assert!(said.contains("entropies"), "{said}");
}

/// Other programs load the embedding network as it is; the rest is out of their way.
#[test]
fn the_embedding_network_is_at_top_level() {
    let folder = Folder::new();
    small().save(&folder.path()).unwrap();
    let file = anchorhood_storage::read(&folder.path(), &Disk).unwrap();
    let names: Vec<&str> = file.tensors.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "a",
            "memory.bank",
            "memory.entropy",
            "memory.neighbours",
            "method.queue",
            "optimiser.first.projector.z",
            "optimiser.momentum.z",
            "optimiser.second.projector.z",
            "projector.z",
            "z",
            "memory.anchors"
        ]
    );
    let model = fingerprint(&small().config.network, &small().input, &small().weights);
    assert_eq!(file.metadata["fingerprint"], model);
    assert_eq!(file.metadata["rows"], "[0,3]");
    assert!(file.metadata["preprocessing"].starts_with(r#"{"version":1,"size":32,"#));
    assert_eq!(file.clock, "seconds=0.7999999999999999 epoch_seconds=1e-9 metrics_bytes=17");
    assert!(!file.metadata["standing"].contains("seconds"));
}

#[test]
fn a_later_preprocessing_is_another_model() {
    let small = small();
    let of = |version| {
        let input = InputForm { version, ..small.input };
        fingerprint(&small.config.network, &input, &small.weights)
    };
    assert_ne!(of(1), of(2));
}

/// Containers have every bit flipped in their own tests: this reader checks what it reads.
#[test]
fn damage_is_an_error() {
    let good = Folder::new().encode(&small());
    decode(&good).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    for damaged in [&flipped[..], &good[..good.len() - 7], &[&good[..], &[0]].concat()] {
        assert!(decode(damaged).is_err());
    }
}

/// That a whole one is left is tested where several processes save it.
#[test]
fn a_failing_disk_is_an_error_of_its_kind() {
    let (disk, path) = (Forgetful::new(), Path::new("/c.safetensors"));
    small().save_on(&disk, path).unwrap();
    for n in 0..4 {
        let error = small().save_on(&disk.failing(n, Fault::Killed), path);
        assert!(matches!(error, Err(CheckpointError::Write { .. })), "{n}");
    }
    let error = Checkpoint::load_from(&disk.failing(0, Fault::Once), path);
    assert!(matches!(error, Err(CheckpointError::Read { .. })));
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let folder = Folder::new();
    let reason = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    assert!(reason(b"").contains("the file is empty"));
    assert!(reason(b"PK\x03\x04 a zip file, say").contains("no safetensors file"));
    let other = Container::default();
    anchorhood_storage::write(&other, &folder.path(), &Disk).unwrap();
    let error = Checkpoint::load(&folder.path()).unwrap_err().to_string();
    assert!(error.contains("another program"), "{error}");
    // One of another version is no damage that another checkpoint of the run would mend.
    let header = br#"{"__metadata__":{"format":"anchorhood-checkpoint","version":"1"}}"#;
    let length = (header.len() as u64).to_le_bytes();
    let old = decode(&[&length[..], header].concat()).unwrap_err();
    assert!(matches!(old, CheckpointError::Mismatch { .. }), "{old}");
    type Change = fn(&mut Checkpoint);
    let cannot_be: [(Change, &str); 7] = [
        (|c| c.standing.position.epoch = c.config.training.epochs, "beyond its own run"),
        (|c| c.input.std[1] = 0.0, "its input cannot be"),
        (|c| c.input.version = 2, "its input cannot be"),
        (|c| c.state = state(vec![1, 3, 0]), "picture 1 has the neighbour 3"),
        (|c| c.weights[0].values[0] = f32::INFINITY, "holds inf"),
        (|c| c.slots[0].tensors[0].values[0] = f32::NAN, "holds NaN"),
        (|c| c.heads[0].weights[0].values[0] = f32::NEG_INFINITY, "holds -inf"),
    ];
    for (change, why) in cannot_be {
        let mut checkpoint = small();
        change(&mut checkpoint);
        checkpoint.save(&folder.path()).unwrap();
        let error = Checkpoint::load(&folder.path()).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains(why), "{error}");
    }
    let said = other_rows("[1,3]");
    assert!(said.contains("begins with row 1 of its memory"), "{said}");
    let said = other_rows("[0,4]");
    assert!(said.contains("and there are 4 pictures"), "{said}");
}

/// What is said of a file whose memory is not of the pictures that it names.
fn other_rows(rows: &str) -> String {
    let folder = Folder::new();
    let checkpoint = small();
    let mut container = format::container(&checkpoint).unwrap();
    container.metadata.insert("rows".into(), rows.into());
    anchorhood_storage::write(&container, &folder.path(), &Disk).unwrap();
    Checkpoint::load(&folder.path()).unwrap_err().to_string()
}

/// Each of several processes reads its own rows, and no block that it does not need.
#[test]
fn some_rows_are_read_alone() {
    let folder = Folder::new();
    let mut whole = small();
    whole.save(&folder.path()).unwrap();
    let part = Checkpoint::load_rows(&Disk, &folder.path(), &|n| 1..n).unwrap();
    assert_eq!((part.rows, part.pictures()), ([1, 3], 2));
    assert_eq!(part.neighbourhoods().unwrap().neighbours(), [2, 0]);
    whole.keep_pictures(1..3);
    assert_eq!(part, whole);
}

#[test]
fn a_network_cannot_take_the_place_of_something_else() {
    let folder = Folder::new();
    for namespace in ["memory", "optimiser", "method"] {
        let mut checkpoint = small();
        checkpoint.heads[0].namespace = namespace.into();
        checkpoint.save(&folder.path()).unwrap_err();
    }
    let mut twice = small();
    twice.weights[1].name = "projector.z".into();
    twice.save(&folder.path()).unwrap_err();
}
