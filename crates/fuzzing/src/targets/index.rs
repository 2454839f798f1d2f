//! Indices of both versions.

use std::path::Path;

use anchorhood_search::{IndexParts, Lists, PictureIndex, Thumbnails};
use anchorhood_train::InputForm;

use super::container::safetensors;
use super::fixture;
use crate::scratch::with_file;
use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "index",
    read,
    repair: repair::container,
    seeds,
};

fn read(bytes: &[u8]) {
    with_file("a.index", bytes, |path| {
        if let Ok(index) = PictureIndex::load(path) {
            search(&index);
        }
    });
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

fn parts() -> IndexParts {
    let mut thumbnails = Thumbnails::default();
    thumbnails.push(b"jpeg");
    thumbnails.push(b"");
    thumbnails.push(b"another");
    IndexParts {
        model: "0123".into(),
        layer: Some("conv5".into()),
        folder: "/somewhere/pictures".into(),
        preprocessing: Some(InputForm {
            version: 1,
            size: 32,
            mean: [0.1, 0.2, 0.3],
            std: [0.4, 0.5, 0.6],
        }),
        rows: Some([2, 10]),
        sizes: Some(vec![[600, 800], [0, 0], [1, 70_000]]),
        names: ["a.png", "ü/b.jpg", "日本.gif"].map(String::from).into(),
        classes: vec![Some("x".into()), None, Some("a".into())],
        dim: 2,
        vectors: vec![1.0, 0.0, 0.6, 0.8, 0.0, -1.0].into(),
        thumbnails: Some(thumbnails),
        lists: Some((
            Lists {
                centres: vec![1.0, 0.0, 0.0, -1.0],
                starts: vec![0, 2, 3],
                members: vec![0, 1, 2],
            },
            0.975,
        )),
    }
}

fn written(parts: IndexParts) -> Vec<u8> {
    with_file("seed.index", b"", |path: &Path| {
        let index = PictureIndex::from_parts(path, parts).expect("its parts fit");
        index.save().expect("it is written");
        std::fs::read(path).expect("it is there")
    })
}

fn seeds() -> Vec<Vec<u8>> {
    let plain = IndexParts {
        layer: None,
        preprocessing: None,
        rows: None,
        sizes: None,
        classes: vec![None; 3],
        thumbnails: None,
        lists: None,
        ..parts()
    };
    vec![
        written(parts()),
        written(plain),
        fixture!("search/tests/golden/version-1.index"),
        empty([1 << 61, 0], 0),
        empty([1_000_000_000, 0], 2),
        empty([0, 1 << 63], 2),
    ]
}

/// Vectors of a shape that takes no bytes, and names of one letter.
fn empty(shape: [u64; 2], names: u64) -> Vec<u8> {
    let end = names * 9;
    let header = format!(
        r#"{{"__metadata__":{{"format":"anchorhood-index","version":"1","model":"m","folder":"/p"}},"name_ends":{{"dtype":"U64","shape":[{names}],"data_offsets":[0,{ends}]}},"names":{{"dtype":"U8","shape":[{names}],"data_offsets":[{ends},{end}]}},"vectors":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{end},{end}]}}}}"#,
        ends = names * 8
    );
    let ends: Vec<u8> = (1..=names).flat_map(u64::to_le_bytes).collect();
    safetensors(&header, &[ends, vec![b'a'; names as usize]].concat())
}
