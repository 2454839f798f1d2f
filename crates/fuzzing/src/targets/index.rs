//! Indices.

use std::path::Path;

use anchorhood_index::fuzzing::{small_index, small_index_of_two};
use anchorhood_index::{IndexParts, PictureIndex};
use anchorhood_storage::{Forgetful, OpenContainer};

use super::container::{bytes_of, with_checksums};
use crate::repair;
use crate::scratch::with_file;

pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.index", bytes, |path| {
        let index = PictureIndex::load(path).ok()?;
        search(&index);
        save_again(&index);
        Some(())
    })
}

/// What is whole is read back the same from what is written of it.
fn save_again(index: &PictureIndex) {
    let (disk, path) = (Forgetful::new(), Path::new("b.index"));
    let parts = index.parts();
    let saved =
        PictureIndex::from_parts(path, parts.clone()).and_then(|index| index.save_on(&disk));
    if saved.is_ok() {
        with_file("b.index", &bytes_of(path, &disk), |path| {
            let again = PictureIndex::load(path).expect("what was saved is read");
            assert_eq!(again.parts(), parts);
        });
    }
}

/// Everything in it is touched; what is damaged is an error, and what is found is there.
fn search(index: &PictureIndex) {
    assert!(!index.is_empty() && index.parts().classes.len() == index.len());
    for i in 0..index.len().min(4) {
        assert!(index.picture(i).file_name().is_some() || index.name(i).len() < 4096);
        let thumbnails = index.parts().thumbnails.as_ref();
        let _ = thumbnails.map(|t| t.get(i).map(<[u8]>::len));
        let Ok(vector) = index.vector(i) else {
            continue;
        };
        for hits in [index.nearest(vector, 3), index.nearest_exactly(vector, 3)] {
            let hits = hits.unwrap_or_default();
            assert!(hits.iter().all(|hit| hit.index < index.len()));
        }
    }
    let _ = index.recall();
}

fn written(parts: IndexParts) -> Vec<u8> {
    with_file("seed.index", b"", |path: &Path| {
        let index = PictureIndex::from_parts(path, parts).expect("its parts fit");
        index.save().expect("it is written");
        std::fs::read(path).expect("it is there")
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    let plain = IndexParts {
        layer: None,
        preprocessing: None,
        sizes: None,
        stamps: None,
        content_sums: None,
        model_path: None,
        classes: vec![None; 3],
        thumbnails: None,
        lists: None,
        ..small_index()
    };
    let seeds = vec![
        written(small_index()),
        written(small_index_of_two()),
        written(plain),
        nan_centre(),
        empty([1 << 61, 0], 0),
        empty([1_000_000_000, 0], 2),
        empty([0, 1 << 63], 2),
    ];
    // What is wrong in some is behind their checksums.
    for seed in &seeds {
        let open = OpenContainer::of_bytes(Path::new("a"), seed.clone().into());
        assert!(open.is_ok_and(|open| open.check_all().is_ok()));
    }
    seeds
}

/// The centre of a cluster is no number.
fn nan_centre() -> Vec<u8> {
    let mut bytes = written(small_index());
    let centre = [0x3f80_0000_u32, 0].map(u32::to_le_bytes);
    let centre = centre.as_flattened(); // (1, 0), as the centres begin
    let at = bytes.windows(8).position(|w| w == centre);
    let at = at.expect("there is such a centre");
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    repair::container(&bytes).expect("it is one")
}

/// Vectors of a shape that takes no bytes, and names of one letter.
fn empty(shape: [u64; 2], names: u64) -> Vec<u8> {
    let end = names * 9;
    let rest = format!(
        r#""format":"anchorhood-index","model":"m","dtype":"F32","folders":"[]"}},
            "name_ends":{{"dtype":"U64","shape":[{names}],"data_offsets":[0,{ends}]}},
            "names":{{"dtype":"U8","shape":[{names}],"data_offsets":[{ends},{end}]}},
            "vectors":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{end},{end}]}}}}"#,
        ends = names * 8
    );
    let ends: Vec<u8> = (1..=names).flat_map(u64::to_le_bytes).collect();
    with_checksums(&rest, &[ends, vec![b'a'; names as usize]].concat())
}
