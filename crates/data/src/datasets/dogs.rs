//! Stanford Dogs: `Images/` with a folder for each breed, and `train_list.mat` and `test_list.mat`
//! with names and labels.

use std::path::{Path, PathBuf};

use super::lists::{check_there, inside};
use super::{Archive, DatasetSpec, IMAGENET_MEAN, IMAGENET_STD, Read};
use crate::check::check_listed;
use crate::files::{Listing, Part};
use crate::mat::{self, Value};
use crate::{DataError, Labels};

/// Stanford Dogs. ImageNet's statistics: its images are ImageNet's.
pub(super) static DOGS: DatasetSpec = DatasetSpec {
    name: "dogs",
    title: "Stanford Dogs",
    env_var: "ANCHORHOOD_DOGS",
    homepage: "http://vision.stanford.edu/aditya86/ImageNetDogs/",
    train: 12_000,
    test: 8_580,
    classes: 120,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 128,
    settings: &[],
    folder: "dogs",
    archives: &ARCHIVES,
    by_hand: "",
    layout: "Images, train_list.mat and test_list.mat",
    places: &["dogs", ""],
    locate,
    read: Read::Files(open),
    check: |folder, progress| Ok(check_listed(&DOGS, folder, list(folder), progress)),
};

/// The authors publish no sums; these are the ones several public loaders agree on.
static ARCHIVES: [Archive; 2] = [
    Archive {
        url: "http://vision.stanford.edu/aditya86/ImageNetDogs/images.tar",
        file: "images.tar",
        md5: "1bb1f2a596ae7057f99d7d75860002ef",
        megabytes: 757,
        creates: Some("Images"),
        optional: false,
    },
    Archive {
        url: "http://vision.stanford.edu/aditya86/ImageNetDogs/lists.tar",
        file: "lists.tar",
        md5: "edbb9f16854ec66506b5f09b583e0656",
        megabytes: 1,
        creates: Some("train_list.mat"),
        optional: false,
    },
];

/// More than any variable of the lists.
const MOST_BYTES: u64 = 64 << 20;

/// The folder with `Images`: `path` itself, or `dogs` or `stanford_dogs` in it. The lists lie there
/// or in `lists`.
fn locate(path: &Path, _asked: bool) -> Option<PathBuf> {
    let places = ["", "dogs", "stanford_dogs"].map(|name| path.join(name));
    let is_it =
        |place: &PathBuf| place.join("Images").is_dir() && list_of(place, "train").is_file();
    places.into_iter().find(is_it)
}

/// The set in its folder; every picture must be there.
fn open(folder: &Path) -> Result<Listing, DataError> {
    let listing = list(folder)?;
    check_there(&listing, |split| list_of(folder, split))?;
    Ok(listing)
}

/// Where the list of a split is expected.
fn list_of(folder: &Path, split: &str) -> PathBuf {
    let name = format!("{split}_list.mat");
    let below = folder.join("lists").join(&name);
    if below.is_file() { below } else { folder.join(name) }
}

/// What the lists name.
fn list(folder: &Path) -> Result<Listing, DataError> {
    let (train, test) = (read(folder, "train")?, read(folder, "test")?);
    let classes = classes(folder, &train, &test)?;
    let part = |rows: Vec<Row>| {
        let values = rows.iter().map(|row| row.class as u32).collect();
        let files = rows.into_iter().map(|row| format!("Images/{}", row.name)).collect();
        Part { files, labels: Some(Labels::new(values, classes.clone())) }
    };
    Ok(Listing::published(&DOGS, folder, part(train), part(test)))
}

/// A picture and its class, from 0.
struct Row {
    name: String,
    class: usize,
}

impl Row {
    fn folder(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

fn read(folder: &Path, split: &str) -> Result<Vec<Row>, DataError> {
    let path = list_of(folder, split);
    if !path.is_file() {
        return Err(DataError::missing(folder, &format!("{split}_list.mat")));
    }
    let bad = |reason: String| DataError::bad(&path, reason);
    let [files, labels] = mat::read(&path, ["file_list", "labels"], MOST_BYTES)?;
    let Value::Cells(files) = files else {
        return Err(bad("expected file_list to be cells with names of files".into()));
    };
    let labels = labels.numbers();
    let labels = labels.ok_or_else(|| bad("expected labels to be numbers".into()))?;
    if labels.len() != files.len() {
        return Err(bad(format!(
            "expected as many labels as names in file_list, found {} and {}",
            labels.len(),
            files.len()
        )));
    }
    let row = |(file, &label): (&Value, &f64)| {
        let name = file.text().filter(|name| inside(name));
        let name = name.ok_or_else(|| bad(format!("expected BREED/FILE, found {file:?}")))?;
        if label < 1.0 || label > DOGS.classes as f64 || label.fract() != 0.0 {
            let most = DOGS.classes;
            return Err(bad(format!("{name}: expected a label from 1 to {most}, found {label}")));
        }
        Ok(Row { name: name.into(), class: label as usize - 1 })
    };
    files.iter().zip(&labels).map(row).collect()
}

/// The folder of each class, which both lists must agree on.
fn classes(folder: &Path, train: &[Row], test: &[Row]) -> Result<Vec<String>, DataError> {
    let count = train.iter().chain(test).map(|row| row.class + 1).max();
    let mut classes = vec![String::new(); count.unwrap_or(0)];
    for (split, rows) in [("train", train), ("test", test)] {
        for row in rows {
            let class = &mut classes[row.class];
            if class.is_empty() {
                row.folder().clone_into(class);
            }
            if class != row.folder() {
                return Err(DataError::bad(
                    list_of(folder, split),
                    format!(
                        "{}: expected the label {} to mean {class} everywhere",
                        row.name,
                        row.class + 1
                    ),
                ));
            }
        }
    }
    Ok(classes)
}
