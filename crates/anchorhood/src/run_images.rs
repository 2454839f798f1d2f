//! The pictures a run was trained on, opened from any folder, or the way to say where they are now.

use anchorhood_data::{DataError, Dataset, FellowReaders, LoadOptions, Progress};
use anchorhood_train::{CropsChoice, RunConfig};

use crate::Error;
use crate::error::usage;

/// The pictures of a run, to look at: where `given`, its `--data`, says; else where they were when
/// it was trained.
pub fn open_images_of(config: &RunConfig, given: Option<&str>) -> Result<Dataset, Error> {
    let mut config = config.clone();
    config.data.crops = CropsChoice::Square; // nobody cuts any
    open_with_progress(&config, given, None, &|_, _| {})
}

/// The same to train on, with others or alone, telling about every picture that is decoded.
pub(crate) fn open_with_progress(
    config: &RunConfig,
    given: Option<&str>,
    fellows: FellowReaders,
    progress: &Progress,
) -> Result<Dataset, Error> {
    let options = LoadOptions { fellows, ..config.data.load_options(config.seed) };
    let place = match given {
        Some(spec) => spec.into(),
        None => config.data.place(),
    };
    anchorhood_data::open_with_progress(&place, &options, progress).map_err(|error| match given {
        Some(_) => Error::from(error).of("--data"),
        None => lost(config, error),
    })
}

/// What to say of pictures that are not where they were.
fn lost(config: &RunConfig, error: DataError) -> Error {
    use DataError::*;
    let why = match &error {
        NotFound(_) => "it is not found".into(),
        NotThisSet(_) => format!("it cannot be opened ({error})"),
        // They are there, and something else is wrong.
        _ => return error.into(),
    };
    let place = config.data.describe_place();
    usage!("the run was trained on {place}, and {why}; say where it lies now with --data PATH")
}
