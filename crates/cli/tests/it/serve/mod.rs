//! `serve`, by the real program on a free port.

mod browser;
mod growing;
mod served;
mod stopping;
mod strangers;
mod training;
mod walking;
