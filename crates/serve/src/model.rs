//! The model behind the page: vectors of uploaded pictures, and where it looks in those of a run.
//! When the run has saved a newer checkpoint, the next question is answered by that one.

use std::sync::{Mutex, PoisonError};

use anchorhood_engine::Device;
use anchorhood_index::{Embedder, Model};
use anchorhood_train::discovery::Neighbourhoods;

use crate::ServeError;
use crate::attention::{LookFrom, Looker};

/// Pictures that go through the network together, at most.
pub(crate) const BATCH: usize = 16;

/// A model that is on no device yet.
pub(crate) struct ServedModel {
    pub model: Model,
    /// What it needs to say where it looks, and what its last round discovered; of a run alone.
    pub look: Option<(LookFrom, Option<Neighbourhoods>)>,
}

/// The same on a device.
pub(crate) struct LoadedModel<'a> {
    device: &'a Device,
    layer: Option<&'a str>,
    embedder: Embedder,
    looker: Option<(Looker, Option<Neighbourhoods>)>,
}

impl<'a> LoadedModel<'a> {
    /// Puts it on a device.
    pub fn new(
        device: &'a Device,
        served: ServedModel,
        layer: Option<&'a str>,
    ) -> Result<LoadedModel<'a>, ServeError> {
        let ServedModel { model, look } = served;
        let looker = look
            .map(|(from, found)| Looker::new(device, &model, from).map(|looker| (looker, found)));
        Ok(LoadedModel {
            embedder: model.embedder(device, BATCH, layer)?,
            looker: looker.transpose()?,
            device,
            layer,
        })
    }

    /// Itself, with a newer model if there is one.
    pub fn renewed(&mut self, newer: &Mutex<Option<ServedModel>>) -> Result<&mut Self, String> {
        let taken = newer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(served) = taken {
            let renewed = LoadedModel::new(self.device, served, self.layer);
            *self = renewed.map_err(|e| format!("the newer checkpoint: {e}"))?;
        }
        Ok(self)
    }

    /// The vectors of pictures, one after the other.
    pub fn embed(&mut self, squares: &[u8]) -> Result<Vec<f32>, String> {
        let mut vectors = vec![];
        let done = self.embedder.embed(squares, &mut vectors);
        done.map(|()| vectors).map_err(|e| e.to_string())
    }

    /// A run's picture under the heat of attention, as PNG.
    pub fn look(&mut self, picture: usize) -> Result<Vec<u8>, String> {
        match &mut self.looker {
            Some((looker, found)) => looker.look(picture, found.as_ref()),
            None => Err("only a run's pictures can be looked at so".into()),
        }
    }
}
