//! Tests from outside, together in one program, since each program is linked anew.

mod atomic;
mod container;
mod power_cut;
