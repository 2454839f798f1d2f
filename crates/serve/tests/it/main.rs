//! Tests from outside, together in one program, since each program is linked anew.
//! Beside this folder: tests that count threads, and those that look at the clock.

#[path = "../../../cli/tests/clients/mod.rs"]
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod long;
mod reference;
mod run;
