//! SVHN, cropped digits: `train_32x32.mat`, `test_32x32.mat` and, for those who ask,
//! `extra_32x32.mat`.
//!
//! `X` is 32×32×3×N bytes with the row changing fastest; `y` counts as MATLAB does, so that 10 is
//! the digit 0.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{Archive, DatasetSpec, Read};
use crate::check::CheckReport;
use crate::mat::{self, Value};
use crate::{DataError, Dataset, Labels, Pictures, Progress, Split};

/// Street View House Numbers, cropped digits. Its statistics are those of the training images, as
/// commonly used.
pub(super) static SVHN: DatasetSpec = DatasetSpec {
    name: "svhn",
    title: "SVHN (cropped digits)",
    env_var: "ANCHORHOOD_SVHN",
    homepage: "http://ufldl.stanford.edu/housenumbers/",
    train: 73_257,
    test: 26_032,
    classes: 10,
    mean: [0.4377, 0.4438, 0.4728],
    std: [0.1980, 0.2010, 0.1970],
    size: 32,
    batch: 128,
    settings: &[],
    folder: "svhn",
    archives: &ARCHIVES,
    by_hand: "",
    layout: "train_32x32.mat and test_32x32.mat",
    places: &["svhn", ""],
    locate,
    read: Read::Images(open),
    check: |folder, progress| Ok(check(folder, progress)),
};

/// The sums are torchvision's; the authors publish none.
static ARCHIVES: [Archive; 3] = [
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
        file: TRAIN,
        md5: "e26dedcc434d2e4c54c9b2d4a06d8373",
        megabytes: 182,
        creates: None,
        optional: false,
    },
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
        file: TEST,
        md5: "eb5a983be6a315427106f1b164d9cef3",
        megabytes: 64,
        creates: None,
        optional: false,
    },
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/extra_32x32.mat",
        file: EXTRA,
        md5: "a93ce644f1a588dc4d68dda5feec44a7",
        megabytes: 1329,
        creates: None,
        optional: true,
    },
];

const SIDE: usize = 32;
const PIXELS: usize = SIDE * SIDE * 3;
/// More than `extra_32x32.mat` unpacks to (531,131 pictures).
const MOST_BYTES: u64 = 2 << 30;

const TRAIN: &str = "train_32x32.mat";
const TEST: &str = "test_32x32.mat";
const EXTRA: &str = "extra_32x32.mat";
/// How many images it has.
const EXTRA_IMAGES: usize = 531_131;

/// The folder with SVHN's files: `path` itself or `svhn` in it.
fn locate(path: &Path, _asked: bool) -> Option<PathBuf> {
    let places = [path.to_owned(), path.join("svhn"), path.join("SVHN")];
    places.into_iter().find(|place| place.join(TRAIN).is_file())
}

/// Loads the set from its folder; `extra` adds those pictures to the training pictures.
fn open(folder: &Path, extra: bool) -> Result<Dataset, DataError> {
    for file in [TRAIN, TEST, EXTRA] {
        if !folder.join(file).is_file() && (extra || file != EXTRA) {
            return Err(DataError::missing(folder, file));
        }
    }
    // Unpacking a file is one thread's work, so the files are read side by side.
    let (train, (test, more)) = rayon::join(
        || read(&folder.join(TRAIN)),
        || rayon::join(|| read(&folder.join(TEST)), || extra.then(|| read(&folder.join(EXTRA)))),
    );
    let (mut pixels, mut values) = train?;
    if let Some(more) = more {
        let more = more?;
        pixels.extend(more.0);
        values.extend(more.1);
    }
    let train = split(pixels, values)?;
    let (pixels, values) = test?;
    let test = Some(split(pixels, values)?);
    Ok(Dataset::of(SVHN.name, train, test, (SVHN.mean, SVHN.std)))
}

fn check(folder: &Path, progress: &Progress) -> CheckReport {
    let mut report = CheckReport::new(SVHN.title, folder);
    let files =
        [("train", TRAIN, SVHN.train), ("test", TEST, SVHN.test), ("extra", EXTRA, EXTRA_IMAGES)];
    for (done, (name, file, expected)) in files.into_iter().enumerate() {
        let path = folder.join(file);
        if !path.is_file() {
            if file != EXTRA {
                report.count(name, 0, Some(expected));
                report.problem(path.display().to_string(), "is missing");
            }
            continue;
        }
        let found = match read(&path) {
            Ok((_, digits)) => digits.len(),
            Err(error) => {
                report.error(&path, &error);
                0
            }
        };
        report.count(name, found, Some(expected));
        progress(done + 1, files.len());
    }
    report
}

fn split(pixels: Vec<u8>, values: Vec<u32>) -> Result<Split, DataError> {
    let classes = (0..10).map(|digit| digit.to_string()).collect();
    Split::from(Pictures::new(SIDE, SIDE, pixels)?).labelled(Labels::new(values, classes))
}

/// The pictures of one file, HWC, and the digit on each.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Vec<u32>), DataError> {
    let bad = |reason: String| DataError::bad(path, reason);
    let [pixels, labels] = mat::read(path, ["X", "y"], MOST_BYTES)?;
    let Value::Bytes(sizes, mut pixels) = pixels else {
        return Err(bad("expected X to be bytes (uint8)".into()));
    };
    // MATLAB leaves out a last dimension of one.
    let count = match sizes[..] {
        [SIDE, SIDE, 3] => 1,
        [SIDE, SIDE, 3, n] => n,
        _ => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            let sizes = sizes.join("×");
            return Err(bad(format!("expected X to be 32×32×3×N, found {sizes}")));
        }
    };
    let labels = labels.numbers();
    let labels = labels.ok_or_else(|| bad("expected y to be numbers".into()))?;
    if labels.len() != count {
        return Err(bad(format!(
            "expected as many labels in y as pictures in X, found {} and {count}",
            labels.len()
        )));
    }
    let digits = labels.iter().map(|&label| digit(label)).collect();
    let digits: Result<Vec<u32>, f64> = digits;
    let digits = digits.map_err(|label| {
        bad(format!("expected labels 1 to 10 in y (10 for the digit 0), found {label}"))
    })?;
    pixels.par_chunks_exact_mut(PIXELS).for_each(to_rows);
    Ok((pixels, digits))
}

fn digit(label: f64) -> Result<u32, f64> {
    match (1..=10).find(|&known| f64::from(known) == label) {
        Some(known) => Ok(known % 10),
        None => Err(label),
    }
}

/// From rows fastest, then columns, then channels, to HWC.
fn to_rows(picture: &mut [u8]) {
    let mut columns = [0; PIXELS];
    columns.copy_from_slice(picture);
    for (row, out) in picture.chunks_exact_mut(SIDE * 3).enumerate() {
        for (column, pixel) in out.chunks_exact_mut(3).enumerate() {
            for (channel, value) in pixel.iter_mut().enumerate() {
                *value = columns[row + SIDE * (column + SIDE * channel)];
            }
        }
    }
}
