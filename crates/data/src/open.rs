//! From what the user typed to a data set: `shapes`, `cifar10`, `NAME:PATH`, or the path of a
//! folder, archive or pack.

use std::path::Path;

use crate::datasets::{is_archive, no_cifar};
use crate::recognise::{Contents, LocatedDataset, Named, list_of, recognise};
use crate::{
    CropsFrom, DataError, Dataset, FellowReaders, LabelChoice, dataset_names, files, pack, shapes,
};

/// Called with how many of how many pictures have been read.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// What to load of a data set.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Decides what `shapes` draws, and what a folder holds out or a limit keeps.
    pub seed: u64,
    /// Side of the pictures; by default 32, or what `largest` lets a folder have.
    pub size: Option<usize>,
    /// Where no size is said: the pictures of a folder that are large enough may have so many
    /// pixels a side.
    pub largest: Option<usize>,
    /// At most so many training pictures: the first ones, of a folder some by the seed.
    pub limit: Option<usize>,
    /// At most so many test pictures, likewise.
    pub test_limit: Option<usize>,
    /// So many of the training pictures, drawn by the seed after the limit, are held out of
    /// training and take the place of the test pictures, which are not looked at.
    pub validation: Option<usize>,
    /// Which share of a folder with classes, but without a test part, to hold out.
    pub held_out: f32,
    /// Whether sub-folders of a folder are classes.
    pub labels: LabelChoice,
    /// What crops of a folder's pictures are cut from.
    pub crops: CropsFrom,
    /// How many training pictures `shapes` draws.
    pub shapes_train: usize,
    /// How many test pictures `shapes` draws.
    pub shapes_test: usize,
    /// Who else opens it: each process then decodes its own part of a folder's files, and what it
    /// is asked for.
    pub fellows: FellowReaders,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            seed: 0,
            size: None,
            largest: None,
            limit: None,
            test_limit: None,
            validation: None,
            held_out: 0.1,
            labels: LabelChoice::Auto,
            crops: CropsFrom::Picture,
            shapes_train: 5000,
            shapes_test: 1000,
            fellows: None,
        }
    }
}

impl LoadOptions {
    fn check(&self) -> Result<(), DataError> {
        let bad = |option, why: &str| Err(DataError::option(option, why));
        if self.size.is_some_and(|size| !(4..=1024).contains(&size)) {
            return bad("size", "must be between 4 and 1024");
        }
        if self.limit == Some(0) || self.test_limit == Some(0) {
            return bad("limit", "must be at least 1");
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return bad("held out share", "must be in [0, 1)");
        }
        if self.shapes_train == 0 {
            return bad("number of shapes", "must be at least 1");
        }
        Ok(())
    }
}

/// Loads the data set that `spec` names. See [`open_with_progress`].
pub fn open(spec: &str, options: &LoadOptions) -> Result<Dataset, DataError> {
    open_with_progress(spec, options, &|_, _| {})
}

/// Loads the data set that `spec` names, telling `progress` about every picture decoded from a
/// folder.
///
/// `shapes`; the name of a published set (one of [`DATASETS`](crate::DATASETS), or `svhn+extra`),
/// looked for in its environment variable and under `./data`; `NAME:PATH`; or a path: the folder of
/// such a set (or its parent), a CIFAR archive, a packed set, a folder of pictures, a `.tar` of
/// them, or a `.txt` that lists files (`files:PATH` for a list of another name).
pub fn open_with_progress(
    spec: &str,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<Dataset, DataError> {
    options.check()?;
    let data = match spec {
        "shapes" => open_shapes(options)?,
        spec => open_place(find(spec)?, options, progress)?,
    };
    match options.validation {
        Some(pictures) => data.validated_on(pictures, options.seed),
        None => Ok(data),
    }
}

/// Whether there is what `spec` names, as [`open_with_progress`] takes it; nothing is read.
pub fn check_place(spec: &str) -> Result<(), DataError> {
    match spec {
        "shapes" => Ok(()),
        spec => find(spec).map(|_| ()),
    }
}

/// Where the data set lies that `spec` names: anything but `shapes`, which lies nowhere.
pub(crate) fn find(spec: &str) -> Result<LocatedDataset, DataError> {
    if spec == "shapes" {
        let why = "shapes are drawn by the program; there are no files";
        return Err(DataError::option("data", why));
    }
    if let Some(named) = Named::parse(spec) {
        return named.find();
    }
    if let Some(list) = list_of(spec) {
        return match list.is_file() {
            true => Ok(LocatedDataset::Folder(list.into())),
            false => Err(DataError::not_found(list)),
        };
    }
    let path = Path::new(spec);
    if !path.exists() {
        return Err(match spec.contains(['/', '\\', '.']) {
            true => DataError::not_found(path),
            false => unknown_name(spec),
        });
    }
    recognise(path).ok_or_else(|| match is_archive(path) {
        true => no_cifar(path),
        false => DataError::NotThisSet(format!(
            "{spec}: neither a folder, nor a packed set, nor a .tar of pictures, nor a .txt that \
             lists files, nor a .tar.gz archive of CIFAR"
        )),
    })
}

fn open_place(
    place: LocatedDataset,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<Dataset, DataError> {
    match place.contents(options.labels)? {
        Contents::Images(data) => data.select(options, true),
        Contents::Files(listing) => files::open(listing, options, progress),
        Contents::Pack(path) => pack::open(&path, options),
    }
}

fn open_shapes(options: &LoadOptions) -> Result<Dataset, DataError> {
    let size = options.size.unwrap_or(shapes::SIZE);
    let train = options.shapes_train.min(options.limit.unwrap_or(usize::MAX));
    let test = match options.validation {
        Some(_) => 0,
        None => options.shapes_test.min(options.test_limit.unwrap_or(usize::MAX)),
    };
    shapes::dataset(options.seed, size, train, test)
}

/// The name is neither a data set nor a path.
fn unknown_name(name: &str) -> DataError {
    let meant = nearest(name).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    let known: Vec<String> = dataset_names().map(|name| format!("`{name}`")).collect();
    let known = known.join(", ");
    DataError::NotFound(format!(
        "there is no data set or folder called `{name}`{meant}; give {known}, or the path of a \
         folder of pictures"
    ))
}

/// The data set whose name is most like `name`, if it is like enough to be meant.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let likeness = |known: &str| strsim::jaro_winkler(&name, known);
    let best = dataset_names().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(spec: &str, options: &LoadOptions) -> String {
        open(spec, options).unwrap_err().to_string()
    }

    #[test]
    fn shapes_by_name() {
        let options = LoadOptions {
            limit: Some(7),
            test_limit: Some(3),
            size: Some(16),
            ..LoadOptions::default()
        };
        let data = open("shapes", &options).unwrap();
        assert_eq!((data.train.pictures.len(), data.test.unwrap().pictures.len()), (7, 3));
        assert_eq!(data.train.pictures.height(), 16);
    }

    #[test]
    fn validation_takes_the_place_of_the_test_pictures() {
        let options =
            LoadOptions { limit: Some(30), validation: Some(10), ..LoadOptions::default() };
        let data = open("shapes", &options).unwrap();
        let test = data.test.unwrap();
        assert_eq!((data.train.pictures.len(), test.pictures.len()), (20, 10));
        let more = LoadOptions { validation: Some(29), ..options };
        assert!(message("shapes", &more).contains("29"));
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        let options = LoadOptions::default();
        assert!(message("shape", &options).contains("did you mean `shapes`?"));
        assert!(message("CIFAR-10", &options).contains("did you mean `cifar10`?"));
        assert!(message("cifar-100", &options).contains("did you mean `cifar100`?"));
        assert!(!message("xyzzy", &options).contains("did you mean"));
    }

    #[test]
    fn missing_paths_are_named() {
        let options = LoadOptions::default();
        assert_eq!(message("./no/such", &options), "./no/such: there is no such file or folder");
        assert!(message("cifar10:/no/such", &options).starts_with("/no/such: there is no"));
    }

    #[test]
    fn bare_names_say_where_they_looked_and_how_to_get_them() {
        for (name, variable, places) in [
            ("cifar100", "ANCHORHOOD_CIFAR100", ["cifar-100-binary", "cifar-100-python.tar.gz"]),
            ("dogs", "ANCHORHOOD_DOGS", ["dogs", ""]),
        ] {
            if std::env::var_os(variable).is_some() {
                continue;
            }
            let said = message(name, &LoadOptions::default());
            for part in places.map(|place| format!("./data/{place}")) {
                assert!(said.contains(&part), "{said}");
            }
            assert!(said.contains(variable), "{said}");
            assert!(said.contains(&format!("data fetch {name}")), "{said}");
        }
    }

    #[test]
    fn options_out_of_range_are_named() {
        let base = LoadOptions::default();
        for (options, name) in [
            (LoadOptions { size: Some(2), ..base.clone() }, "size"),
            (LoadOptions { limit: Some(0), ..base.clone() }, "limit"),
            (LoadOptions { held_out: 1.0, ..base.clone() }, "held out"),
            (LoadOptions { shapes_train: 0, ..base.clone() }, "number of shapes"),
        ] {
            assert!(message("shapes", &options).starts_with(name));
        }
    }

    #[test]
    fn files_that_are_no_data_set_are_refused() {
        let dir = tempfile::TempDir::new().unwrap();
        for name in ["notes.txt", "broken.tar.gz"] {
            let path = dir.path().join(name);
            std::fs::write(&path, "hello").unwrap();
            let said = message(path.to_str().unwrap(), &LoadOptions::default());
            assert!(said.contains(name), "{said}");
        }
    }
}
