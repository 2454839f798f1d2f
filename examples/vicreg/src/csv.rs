//! A data set that is read from a CSV: `csv:photos.csv` has a line `path,label` for each image,
//! after a first line with these words. Paths are seen from the file's folder.

use std::path::Path;

use anchorhood::research::{CheckReport, DataError, DatasetSpec, Read, SplitCount};
use anchorhood::{Dataset, Labels, Picture, Pictures, Split};

/// Side of the images.
const SIZE: usize = 32;

pub static CSV: DatasetSpec = DatasetSpec {
    name: "csv",
    title: "images that a CSV lists",
    env_var: "ANCHORHOOD_CSV",
    homepage: "",
    train: 0,
    test: 0,
    classes: 0,
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
    size: SIZE,
    batch: 128,
    settings: &[],
    folder: "",
    archives: &[],
    by_hand: "images, and a CSV with a line path,label for each",
    layout: "a file with lines path,label",
    places: &[],
    locate: |path, asked| (asked && path.is_file()).then(|| path.into()),
    read: Read::Images(|path, _extra| read(path)),
    check: |path, _progress| {
        let found = read(path)?.train.pictures.len();
        Ok(CheckReport {
            set: "images that a CSV lists".into(),
            place: path.into(),
            splits: vec![SplitCount { name: "train", found, expected: None }],
            problems: vec![],
            warnings: vec![],
        })
    },
};

fn read(path: &Path) -> Result<Dataset, DataError> {
    let bad = |reason: String| DataError::BadFile { path: path.into(), reason };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let (mut images, mut labels, mut names) = (vec![], vec![], vec![]);
    for (line, row) in (2..).zip(text.lines().skip(1)) {
        let (name, label) = row
            .rsplit_once(',')
            .ok_or_else(|| bad(format!("line {line}: expected path,label, found {row}")))?;
        let image = Picture::read(path.with_file_name(name));
        images.push(image.map_err(|why| bad(format!("line {line}: {name}: {why}")))?);
        labels.push(label);
        names.push(name.to_string());
    }
    let pictures = Pictures::squares(SIZE, &images)?;
    let train = Split::from(pictures).labelled(Labels::from_names(labels))?.named(names)?;
    Ok(Dataset::new("csv", train))
}
