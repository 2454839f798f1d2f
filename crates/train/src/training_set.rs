//! What training may know of a data set: pictures, and no labels; but for the one method that is
//! given them.

use anchorhood_data::{Dataset, Pictures};

use crate::{RunConfig, TrainError};

/// All that training may know of a data set: pictures, and no labels.
#[derive(Clone, Debug)]
pub struct TrainingSet {
    /// What to call it.
    pub name: String,
    /// The pictures.
    pub pictures: Pictures,
    /// Mean of each channel.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
}

impl TrainingSet {
    /// The training pictures of a data set, without what else is known of them.
    pub fn of(data: &Dataset) -> Self {
        TrainingSet {
            name: data.name.clone(),
            pictures: data.train.pictures.clone(),
            mean: data.mean,
            std: data.std,
        }
    }
}

/// Says why a data set cannot be trained on with a configuration, before anything is made.
pub fn check_data(config: &RunConfig, data: &Dataset) -> Result<(), TrainError> {
    config.check_method_is_known()?;
    check_pictures(config, &TrainingSet::of(data))
}

pub(crate) fn check_pictures(config: &RunConfig, set: &TrainingSet) -> Result<(), TrainError> {
    config.check()?;
    let (n, k) = (set.pictures.len(), config.discovery.neighbours);
    if n < 2 {
        return Err(TrainError::TooFewPictures { data: set.name.clone(), pictures: n });
    }
    if config.method.name.discovers {
        check_neighbours(k, n)?;
    }
    let (height, width) = (set.pictures.height(), set.pictures.width());
    if height != width {
        return Err(TrainError::NotSquare { data: set.name.clone(), height, width });
    }
    config.check_embed_size(height)?;
    match set.pictures.one_colour() {
        Some(colour) => Err(TrainError::OneColour { data: set.name.clone(), pictures: n, colour }),
        None => Ok(()),
    }
}

/// A picture and its neighbours are positives, and positives are counted in 32 bits.
fn check_neighbours(k: usize, pictures: usize) -> Result<(), TrainError> {
    if k >= pictures {
        return Err(TrainError::TooManyNeighbours { k, pictures });
    }
    let most = (u32::MAX as usize / pictures).saturating_sub(1);
    if k > most {
        return Err(TrainError::NeighboursBeyondCount { k, pictures, most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_as_many_as_there_are_and_can_be_counted() {
        check_neighbours(1, 2).unwrap();
        check_neighbours(49_999, 50_000).unwrap();
        check_neighbours(3_351, 1_281_167).unwrap();
        let why = |k, pictures| check_neighbours(k, pictures).unwrap_err().to_string();
        assert!(why(2, 2).contains("only 1 others among 2 pictures"));
        let beyond = check_neighbours(3_352, 1_281_167);
        assert!(matches!(beyond, Err(TrainError::NeighboursBeyondCount { most: 3351, .. })));
    }
}
