//! A model that training begins from, in place of being used as it is.

use anchorhood_train::Pretrained;

use crate::{Model, SearchError};

impl Model {
    /// The model for a run to begin from; `name` is where it can be had again. What another program's library runs cannot be.
    pub fn pretrained(&self, name: impl Into<String>) -> Result<Pretrained, SearchError> {
        Ok(Pretrained {
            name: name.into(),
            network: self.network()?.clone(),
            input: *self.input(),
            graph: self.graph()?.clone(),
            weights: self.weights()?.to_vec(),
            fingerprint: self.fingerprint().into(),
        })
    }
}
