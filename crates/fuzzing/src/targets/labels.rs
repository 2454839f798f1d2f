//! Labels that a person gave: a CSV file.

use anchorhood_search::{GivenLabels, IndexedFolder};

use crate::scratch::with_file;

pub fn read(bytes: &[u8]) -> Option<()> {
    let names = ["a.png", "b/c.png"].map(String::from);
    with_file("a.csv", bytes, |path| {
        let labels = GivenLabels::read(path);
        let folders = ["a", "b"]
            .map(|label| IndexedFolder { label: label.into(), ..IndexedFolder::alone("pictures") });
        let found = labels.and_then(|labels| labels.of(&names, &folders));
        found.ok().map(|found| assert_eq!(found.len(), names.len()))
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = [
        "path,label\na.png,cat\n\"b/c.png\",\"a \"\"dog\"\"\"\n",
        "a.png,cat\nb/c.png,\n",
        "class,x,file\ncat,1,a.png\n",
        "a.png\n",
    ];
    files.map(|text| text.as_bytes().to_vec()).into()
}
