//! How good are the features?
