//! `serve`, by the real program on a free port.

#[path = "../clients/mod.rs"]
mod clients;
#[path = "../common/mod.rs"]
mod common;
#[path = "../folders/mod.rs"]
mod folders;

mod browser;
mod growing;
mod served;
mod stopping;
mod strangers;
mod training;
mod walking;
