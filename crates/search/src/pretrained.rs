//! A model that training begins from, in place of being used as it is.

use anchorhood_train::Pretrained;

use crate::Model;

impl Model {
    /// The model for a run to begin from; `name` is where it can be had again.
    pub fn pretrained(&self, name: impl Into<String>) -> Pretrained {
        Pretrained {
            name: name.into(),
            network: self.network().clone(),
            input: *self.input(),
            graph: self.graph().clone(),
            weights: self.weights().to_vec(),
            fingerprint: self.fingerprint().into(),
        }
    }
}
