//! How good are a model's vectors?

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_index::Model;
use anchorhood_train::evaluation::Rows;
use anchorhood_train::{Accuracy, EvaluationConfig, Labelled};

use crate::Error;

/// How good a model's vectors are, of pictures that it is given in its own size, and how long they
/// are; nothing without labels.
pub fn vote(
    device: &Device,
    model: &Model,
    how: &EvaluationConfig,
    data: &Dataset,
) -> Result<Option<(Accuracy, usize)>, Error> {
    let (Some(examiner), Some(test)) = (Labelled::of(data, how, device), &data.test) else {
        return Ok(None);
    };
    let rows = |pictures: &Pictures| -> Result<Rows, Error> {
        let vectors = model.embed(device, pictures)?;
        Ok(Rows { dim: vectors.dim(), channels: vectors.dim(), values: vectors.values().to_vec() })
    };
    let (train, test) = (rows(&data.train.pictures)?, rows(&test.pictures)?);
    let values = train.dim;
    Ok(Some((examiner.vectors(train, test)?, values)))
}
