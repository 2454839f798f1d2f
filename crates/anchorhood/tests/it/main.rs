//! Tests from outside, together in one program, since each program is linked anew.

mod architecture;
mod examples;
mod links;
mod security;
