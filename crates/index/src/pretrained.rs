//! A model that training begins from, in place of being used as it is.

use anchorhood_train::Pretrained;

use crate::{Model, SearchError};

impl Model {
    /// The model for a run to begin from, with pictures of the size that it learnt with; `name` is
    /// where it can be had again. What another program's library runs cannot be.
    pub fn pretrained(&self, name: impl Into<String>) -> Result<Pretrained, SearchError> {
        let learnt = match self.learnt_size() == self.input().size {
            true => self.clone(),
            false => self.at_size(self.learnt_size())?,
        };
        Ok(Pretrained {
            name: name.into(),
            network: learnt.network()?.clone(),
            input: *learnt.input(),
            embed_size: self.input().size,
            graph: learnt.graph()?.clone(),
            weights: learnt.weights()?.to_vec(),
            fingerprint: self.fingerprint().into(),
        })
    }
}
