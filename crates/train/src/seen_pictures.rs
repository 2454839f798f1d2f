//! Are these the pictures that a run was begun on? Memory and order belong to them by their number,
//! so others in their places, or the same in other places, would be resumed into the wrong memory.
//!
//! A checksum of each is kept in the run's folder, four bytes a picture, when the run begins, and
//! compared when it goes on. It is that of the pixels, whether they come from files or from a pack;
//! of a published set that stays in its files, which are not all decoded for it, that of each
//! file's name and length.

use std::path::{Path, PathBuf};

use anchorhood_data::{ChecksumOf, Split};
use anchorhood_storage::{
    Container, Dtype, FileError, FileProblem, FileSystem, NamedTensor, OpenContainer,
};

use crate::TrainError;

/// What is kept.
#[derive(Debug, PartialEq)]
struct Seen {
    of: ChecksumOf,
    sums: Vec<u32>,
}

/// Pictures named where some are not the same.
const NAMED: usize = 3;
const FORMAT: &str = "anchorhood-pictures";

fn place(run: &Path) -> PathBuf {
    run.join("pictures.safetensors")
}

/// Keeps what a run is begun on.
pub fn keep(disk: &dyn FileSystem, run: &Path, train: &Split) -> Result<(), TrainError> {
    let (of, sums) = train.pictures.checksums();
    write(disk, &place(run), &Seen { of, sums })
}

/// Refuses pictures that are not those the run was begun on; says so where that cannot be told, and
/// keeps these.
pub fn recognise(
    disk: &dyn FileSystem,
    run: &Path,
    train: &Split,
) -> Result<Option<String>, TrainError> {
    let (of, sums) = train.pictures.checksums();
    let (seen, path) = (Seen { of, sums }, place(run));
    let why = match read(disk, &path) {
        Ok(kept) if kept.of == seen.of && kept.sums.len() == seen.sums.len() => {
            return compare(run, &kept, &seen, train).map(|()| None);
        }
        // Their number is compared with the memory's; this is another way of looking at as many.
        Ok(_) => "they were read in another way then".into(),
        Err(error) => match &error.problem {
            FileProblem::Io(e) if e.kind() == std::io::ErrorKind::NotFound => {
                "no checksums of them were kept".into()
            }
            _ => error.to_string(),
        },
    };
    write(disk, &path, &seen)?;
    Ok(Some(format!(
        "whether these are the pictures that the run was begun on cannot be told: {why}"
    )))
}

fn compare(run: &Path, kept: &Seen, seen: &Seen, train: &Split) -> Result<(), TrainError> {
    let both = kept.sums.iter().zip(&seen.sums).enumerate();
    let others: Vec<usize> = both.filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect();
    if others.is_empty() {
        return Ok(());
    }
    let name = |i: &usize| match train.names.get(*i) {
        Some(name) => name.clone(),
        None => format!("picture {i}"),
    };
    Err(TrainError::OtherPictures {
        path: run.into(),
        others: others.len(),
        pictures: seen.sums.len(),
        first: others.iter().take(NAMED).map(name).collect(),
    })
}

fn write(disk: &dyn FileSystem, path: &Path, seen: &Seen) -> Result<(), TrainError> {
    let bytes: Vec<u8> = seen.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let container = Container {
        metadata: [("format", FORMAT), ("of", word(seen.of))]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        clock: String::new(),
        tensors: vec![NamedTensor::new("checksums", Dtype::U32, &[seen.sums.len()], &bytes)],
    };
    anchorhood_storage::write(&container, path, disk).map_err(|error| match error {
        FileError { path, problem: FileProblem::Io(source) } => TrainError::Io { path, source },
        other => TrainError::io(path, std::io::Error::other(other.to_string())),
    })
}

fn read(disk: &dyn FileSystem, path: &Path) -> Result<Seen, FileError> {
    let file = OpenContainer::open(path, disk)?;
    let bad = |reason: &str| FileProblem::Content(reason.into()).of(path);
    let field = |name: &str| file.metadata().get(name).map(String::as_str);
    if field("format") != Some(FORMAT) {
        return Err(bad("it does not hold checksums of pictures"));
    }
    let of = [ChecksumOf::Pixels, ChecksumOf::File].into_iter();
    let of = of.into_iter().find(|of| field("of") == Some(word(*of)));
    let checksums = file.tensor("checksums")?;
    if checksums.dtype != Dtype::U32 {
        return Err(bad("its checksums are no whole numbers"));
    }
    let number = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    Ok(Seen {
        of: of.ok_or_else(|| bad("it does not say what its checksums are of"))?,
        sums: checksums.data.chunks_exact(4).map(number).collect(),
    })
}

fn word(of: ChecksumOf) -> &'static str {
    match of {
        ChecksumOf::Pixels => "pixels",
        ChecksumOf::File => "files",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::Pictures;
    use anchorhood_storage::Disk;

    fn split(order: &[u8]) -> Split {
        let pixels = order.iter().flat_map(|n| [*n; 12]).collect();
        let split = Split::from(Pictures::new(2, 2, pixels).unwrap());
        let names = (0..order.len()).map(|i| format!("{i}.png")).collect();
        split.named(names).unwrap()
    }

    #[test]
    fn two_pictures_that_changed_places_are_named() {
        let run = tempfile::tempdir().unwrap();
        keep(&Disk, run.path(), &split(&[1, 2, 3, 4])).unwrap();
        assert_eq!(recognise(&Disk, run.path(), &split(&[1, 2, 3, 4])).unwrap(), None);
        let error = recognise(&Disk, run.path(), &split(&[1, 3, 2, 4])).unwrap_err();
        assert!(error.is_usage());
        let said = error.to_string();
        assert!(said.contains("2 of 4") && said.contains("1.png, 2.png"), "{said}");
    }

    #[test]
    fn what_cannot_be_told_is_said_once() {
        let run = tempfile::tempdir().unwrap();
        let pictures = split(&[1, 2]);
        let told = || recognise(&Disk, run.path(), &pictures).unwrap();
        assert!(told().unwrap().contains("no checksums"));
        assert_eq!(told(), None);
        std::fs::write(place(run.path()), "damaged").unwrap();
        assert!(told().unwrap().contains("cannot be told"));
        assert_eq!(told(), None);
    }
}
