//! Where do pictures come from, and what does the network see of them?
