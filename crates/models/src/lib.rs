//! Which graph is which network?
