//! How good are a model's vectors?

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_index::Model;
use anchorhood_train::{
    Accuracy, EvaluationConfig, FeatureSource, Labelled, Preset, RunConfig, TrainError,
};

use crate::{Error, Images};

/// How good a model's vectors are by kNN on labelled images, beside raw pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// By the model's vectors.
    pub model: Accuracy,
    /// By raw pixels.
    pub raw_pixels: Accuracy,
}

/// Evaluates a model on images that have labels, a part of which is tested on: weighted kNN, by so
/// many neighbours (200 by default, as in the paper).
pub fn evaluate(
    model: &Model,
    images: &Images,
    device: &Device,
    neighbours: Option<usize>,
) -> Result<Evaluation, Error> {
    let set = images.place().unwrap_or("images");
    let mut config = paper_settings(set);
    config.data.size = Some(model.input().size);
    config.evaluation.k = neighbours.unwrap_or(config.evaluation.k);
    config.check()?;
    let data = images.load(&config.data.load_options(config.seed))?;
    let (how, none) = (&config.evaluation, || TrainError::NoLabels { data: data.name.clone() });
    let raw_pixels = Labelled::of(&data, how, device).ok_or_else(none)?.raw_pixels()?;
    let (model, _) = vote(device, model, how, &data)?.ok_or_else(none)?;
    Ok(Evaluation { model, raw_pixels })
}

/// The paper's settings on a data set; of shapes there are as many as `train` would have drawn.
pub fn paper_settings(set: &str) -> RunConfig {
    let mut config = Preset::Paper.config(set);
    let quick = Preset::Quick.config(set);
    config.data.shapes_train = quick.data.shapes_train;
    config.data.shapes_test = quick.data.shapes_test;
    config.evaluation.features = FeatureSource::Recomputed;
    config
}

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
    let train = model.embed(device, &data.train.pictures)?;
    let test = model.embed(device, &test.pictures)?;
    let values = train.dim;
    Ok(Some((examiner.vectors(train, test)?, values)))
}
