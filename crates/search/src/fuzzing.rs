//! A small index with everything in it: what tests damage, and `crates/fuzzing` mutates.

use anchorhood_train::InputForm;

use crate::{IndexParts, Lists, Thumbnails};

/// Its parts.
pub fn small_index() -> IndexParts {
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
        names: ["a.png", "ü/b\n.jpg", "日本.gif"].map(String::from).into(),
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
