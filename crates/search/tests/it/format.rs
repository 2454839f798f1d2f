//! Files of earlier versions, written by another program, are read for ever.

use std::path::Path;

use anchorhood_files::Checked;
use anchorhood_search::PictureIndex;

/// Written by `tools/golden/index.py`.
#[test]
fn an_index_of_version_1() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1.index");
    let index = PictureIndex::load(&path).unwrap();
    assert_eq!(index.checked(), Checked::CannotBeChecked);
    assert_eq!(index.len(), 3);
    assert_eq!(index.name(1), "dog/ü.png");
    assert_eq!(index.picture(2), Path::new("/pictures/loose.jpg"));
    let parts = index.parts();
    assert_eq!(parts.model, "00112233445566778899aabbccddeeff");
    assert_eq!(parts.layer.as_deref(), Some("conv5"));
    let classes = [Some("cat".into()), Some("dog".into()), None];
    assert_eq!(parts.classes, classes);
    assert_eq!(parts.thumbnails.as_ref().unwrap().get(2).unwrap(), b"third");
    assert_eq!(index.recall(), 0.975);
    for hits in [
        index.nearest(&[0.0, 2.0], 2).unwrap(),
        index.nearest_exactly(&[0.0, 2.0], 2).unwrap(),
    ] {
        let found: Vec<usize> = hits.iter().map(|h| h.index).collect();
        assert_eq!(found, [1, 0]);
        assert!((hits[0].similarity - 0.8).abs() < 1e-6);
    }
}
