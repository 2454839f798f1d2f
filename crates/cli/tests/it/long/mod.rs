//! What takes long, or needs other programs: ignored by `cargo test`, run by `.ci/run`.

mod browser;
mod documents;
mod mpi;
mod onnx_runtime;
mod readers;
mod trainings;
