//! One page about a run, to look at and to send.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use anchorhood_data::{Dataset, Split};
use anchorhood_engine::Device;
use anchorhood_index::Model;
use anchorhood_report::{RunRecord, write_report};
use anchorhood_train::evaluation::Rows;
use anchorhood_train::{Event, checkpoint_path, model_path};

use crate::{Error, OnEvent};

/// More pictures than this are not embedded for a page.
const MOST_EMBEDDED: usize = 100_000;

/// Writes the page about a run, with its images or the reason why there are none; a device is
/// opened where something has to be computed for it.
pub fn write_run_report(
    run: &Path,
    data: &Result<impl Borrow<Dataset>, String>,
    open: &dyn Fn() -> Result<Device, Error>,
    overwrite: bool,
    on_event: OnEvent,
) -> Result<PathBuf, Error> {
    let mut record = RunRecord::read(run)?;
    if let Some(left_out) = &record.left_out {
        on_event(&Event::warning(format!("{}: {left_out}", run.display())));
    }
    let pictures = match data {
        Ok(data) => Ok(&data.borrow().train),
        Err(why) => Err(why.clone()),
    };
    if let (None, Ok(train)) = (&record.embedding, &pictures)
        && checkpoint_path(run, "last").is_file()
        && train.pictures.len() <= MOST_EMBEDDED
    {
        match open().and_then(|device| embedded(run, train, &device)) {
            Ok(vectors) => record.embedding = Some(vectors),
            Err(error) => on_event(&Event::warning(format!(
                "pictures are not shown beside those most like them: {}",
                error.with_advice()
            ))),
        }
    }
    Ok(write_report(run, &record, pictures, overwrite)?)
}

/// What a run's model makes of its pictures now, where its method remembers none.
fn embedded(run: &Path, train: &Split, device: &Device) -> Result<Rows, Error> {
    let model = Model::load(model_path(run))?;
    Ok(model.embed(device, &train.pictures)?)
}
