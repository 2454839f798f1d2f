//! Tests from outside, together in one program, since each program is linked anew.
//! Beside this folder: tests that count threads, and those that look at the clock.

#[path = "../../examples/load/asking.rs"]
mod asking;
#[path = "../../../cli/tests/clients/mod.rs"]
mod clients;
mod keyboard;
mod load;
mod page;
mod run;
