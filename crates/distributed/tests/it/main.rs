//! Tests from outside, together in one program, since each program is linked anew.

mod collectives;
mod common;
mod long;
mod processes;
mod tcp;
