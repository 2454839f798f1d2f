//! Lists of files.

use anchorhood_data::{LabelChoice, find_pictures, unseen};

use crate::scratch::with_file;

/// Every name can be shown anywhere, and is there once. No file is opened: a list may name any. One
/// must be there: the list itself.
pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.txt", bytes, |path| {
        let found = find_pictures(path, LabelChoice::Auto).ok()?;
        let names = found.files.iter().map(|file| &file.name);
        assert!(names.is_sorted_by(|a, b| a < b));
        assert!(!found.files.iter().any(|f| f.name.contains(unseen)));
        Some(())
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"a.jpg\nb/c.png\na.txt\n".to_vec(),
        b"# mine\n./a.jpg\tcat\r\n/x/b.jpg\tdog\n\n../c.jpg\tcat\na.txt\tcat\n".to_vec(),
        "Фото 写真.jpg\tü\nback\\x5c.jpg\n2019/05/a.jpg\n2020/06/b.jpg\na.txt\n".into(),
    ]
}
