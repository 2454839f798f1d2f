//! `serve`, by the real program on a free port.

mod growing;
pub mod served;
mod stopping;
mod strangers;
mod training;
mod walking;
