//! What takes long, or needs other programs: `cargo test -- --ignored long::`.

mod mpi;
