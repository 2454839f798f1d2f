//! The paper: memory bank, neighbourhoods, entropy, curriculum, the loss and its gradient.
