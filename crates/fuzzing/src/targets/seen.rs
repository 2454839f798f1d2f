//! Checksums of the pictures that a run was begun on.

use std::path::Path;

use anchorhood_data::{Pictures, Split};
use anchorhood_storage::{Container, Dtype, Forgetful, NamedTensor, write};
use anchorhood_train::fuzzing::{keep_pictures, recognise_pictures};

use super::container::{bytes_of, disk_with};

const RUN: &str = "";
const FILE: &str = "pictures.safetensors";

fn pictures() -> Split {
    let pixels = (0..36).collect();
    let pictures = Pictures::new(2, 2, pixels).expect("three pictures");
    Split::from(pictures)
}

/// The pictures are known, are others, or are kept; what was kept is known. Taken are the checksums
/// of these pictures.
pub fn read(bytes: &[u8]) -> Option<()> {
    let (disk, pictures) = (disk_with(Path::new(FILE), bytes), pictures());
    let recognise = || recognise_pictures(&disk, Path::new(RUN), &pictures);
    match recognise() {
        Ok(said) => {
            assert!(said.as_ref().is_none_or(|said| said.contains("cannot be told")));
            let again = recognise();
            assert!(matches!(again, Ok(None)), "{again:?}");
            said.is_none().then_some(())
        }
        Err(error) => {
            assert!(error.is_usage(), "{error}");
            None
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let (disk, path) = (Forgetful::new(), Path::new(FILE));
    let kept = keep_pictures(&disk, Path::new(RUN), &pictures());
    kept.expect("memory takes a file");
    let kept = bytes_of(path, &disk);
    let of_files = Container {
        metadata: [("format", "anchorhood-pictures"), ("of", "files")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        clock: String::new(),
        tensors: vec![NamedTensor::new("checksums", Dtype::U32, &[3], &[1; 12])],
    };
    write(&of_files, path, &disk).expect("memory takes a file");
    vec![kept, bytes_of(path, &disk)]
}
