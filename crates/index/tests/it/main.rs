//! Tests from outside, together in one program, since each program is linked anew.

mod long;
mod other_programs;
mod update;
