//! Tests from outside, together in one program, since each program is linked anew.

mod faults;
mod loaded_again;
mod long;
