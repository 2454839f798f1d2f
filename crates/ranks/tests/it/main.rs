//! Tests from outside, together in one program, since each program is linked anew.

mod common;
mod mpi;
mod processes;
mod tcp;
