//! CUB-200-2011: `images/`, and text files with a line `NUMBER VALUE` for each picture.

use std::path::{Path, PathBuf};

use super::lists::{check_there, inside};
use super::{Archive, DatasetSpec, IMAGENET_MEAN, IMAGENET_STD, Read};
use crate::check::{CheckReport, check_listed};
use crate::files::{Listing, Part};
use crate::{DataError, Labels, Progress};

/// CUB-200-2011: birds. ImageNet's statistics, as is usual for fine-grained sets.
pub(super) static CUB200: DatasetSpec = DatasetSpec {
    name: "cub200",
    title: "CUB-200-2011",
    env_var: "ANCHORHOOD_CUB200",
    homepage: "https://www.vision.caltech.edu/datasets/cub_200_2011/",
    train: 5_994,
    test: 5_794,
    classes: 200,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 128,
    settings: &[],
    folder: "",
    archives: &ARCHIVES,
    by_hand: "",
    layout: "images.txt, image_class_labels.txt, train_test_split.txt and images",
    places: &["CUB_200_2011", ""],
    locate,
    read: Read::Files(open),
    check,
};

/// The sum stands on CaltechDATA's record.
static ARCHIVES: [Archive; 1] = [Archive {
    url: "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
    file: "CUB_200_2011.tgz",
    md5: "97eceeb196236b17998738112f37df78",
    megabytes: 1151,
    creates: Some("CUB_200_2011"),
    optional: false,
}];

/// Longer than any list of the set.
const MOST_BYTES: u64 = 64 << 20;

/// Where the birds are in the pictures. Nothing here needs it, so that it may be missing.
const BOXES: &str = "bounding_boxes.txt";

/// The folder with the lists: `path` itself or `CUB_200_2011` in it.
fn locate(path: &Path, _asked: bool) -> Option<PathBuf> {
    let places = [path.to_owned(), path.join("CUB_200_2011")];
    let is_it = |place: &PathBuf| {
        let has = |name: &str| place.join(name).is_file();
        has("images.txt") && has("image_class_labels.txt")
    };
    places.into_iter().find(is_it)
}

/// The set in its folder; every picture must be there.
fn open(folder: &Path) -> Result<Listing, DataError> {
    let listing = list(folder)?;
    check_there(&listing, |_| folder.join("images.txt"))?;
    Ok(listing)
}

/// What the lists name.
fn list(folder: &Path) -> Result<Listing, DataError> {
    let images = Table::read(folder, "images.txt")?;
    let labels = Table::read(folder, "image_class_labels.txt")?;
    let splits = Table::read(folder, "train_test_split.txt")?;
    let classes = Table::read(folder, "classes.txt")?.values();
    labels.same_numbers(&images)?;
    splits.same_numbers(&images)?;
    let (mut train, mut test) = ((vec![], vec![]), (vec![], vec![]));
    for (line, (_, name)) in images.rows.iter().enumerate() {
        let part = match splits.rows[line].1.as_str() {
            "1" => &mut train,
            "0" => &mut test,
            other => {
                return Err(
                    splits.bad(line, format!("expected 1 (train) or 0 (test), found {other}"))
                );
            }
        };
        let label: Option<usize> = labels.rows[line].1.parse().ok();
        let label = label.filter(|l| (1..=classes.len()).contains(l));
        let label = label.ok_or_else(|| {
            let expected = format!("expected a class from 1 to {}", classes.len());
            labels.bad(line, format!("{expected}, found {}", labels.rows[line].1))
        })?;
        if !inside(name) {
            return Err(images.bad(line, format!("{name} leads out of the folder")));
        }
        part.0.push(format!("images/{name}"));
        part.1.push(label as u32 - 1);
    }
    let [train, test] = [train, test]
        .map(|(files, values)| Part { files, labels: Some(Labels::new(values, classes.clone())) });
    Ok(Listing::published(&CUB200, folder, train, test))
}

fn check(folder: &Path, progress: &Progress) -> Result<CheckReport, DataError> {
    let mut report = check_listed(&CUB200, folder, list(folder), progress);
    if let Err(error) = check_boxes(folder) {
        report.error(&folder.join(BOXES), &error);
    }
    Ok(report)
}

/// Whether the boxes, where there are any, are a line of four numbers for each picture.
fn check_boxes(folder: &Path) -> Result<(), DataError> {
    if !folder.join(BOXES).is_file() {
        return Ok(());
    }
    let boxes = Table::read(folder, BOXES)?;
    boxes.same_numbers(&Table::read(folder, "images.txt")?)?;
    for (line, (_, value)) in boxes.rows.iter().enumerate() {
        let numbers = value.split_whitespace().map(str::parse);
        let numbers: Result<Vec<f64>, _> = numbers.collect();
        if numbers.is_ok_and(|n| n.len() == 4) {
            continue;
        }
        let expected = format!("expected left, top, width and height, found {value:?}");
        return Err(boxes.bad(line, expected));
    }
    Ok(())
}

/// Lines of a number and a value.
struct Table {
    path: PathBuf,
    rows: Vec<(u32, String)>,
}

impl Table {
    fn read(folder: &Path, name: &str) -> Result<Table, DataError> {
        let path = folder.join(name);
        if !path.is_file() {
            return Err(DataError::missing(folder, name));
        }
        let text = super::lists::read_text(&path, MOST_BYTES)?;
        let mut table = Table { path, rows: Vec::new() };
        for (line, row) in text.lines().enumerate() {
            let Some((number, value)) = row.trim().split_once(' ') else {
                return Err(table.bad(line, format!("expected `NUMBER VALUE`, found {row:?}")));
            };
            let number = number.parse();
            let number =
                number.map_err(|_| table.bad(line, format!("expected a number, found {row:?}")))?;
            table.rows.push((number, value.trim().into()));
        }
        Ok(table)
    }

    fn values(self) -> Vec<String> {
        self.rows.into_iter().map(|(_, value)| value).collect()
    }

    fn same_numbers(&self, images: &Table) -> Result<(), DataError> {
        if self.rows.len() != images.rows.len() {
            return Err(DataError::bad(
                self.path.clone(),
                format!(
                    "expected a line for each of the {} pictures of images.txt, found {}",
                    images.rows.len(),
                    self.rows.len()
                ),
            ));
        }
        let pairs = self.rows.iter().zip(&images.rows).enumerate();
        for (line, (ours, theirs)) in pairs {
            if ours.0 != theirs.0 {
                let expected = format!("expected picture {}, found {}", theirs.0, ours.0);
                return Err(self.bad(line, expected));
            }
        }
        Ok(())
    }

    fn bad(&self, line: usize, reason: String) -> DataError {
        DataError::bad(self.path.clone(), format!("line {}: {reason}", line + 1))
    }
}
