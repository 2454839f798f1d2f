//! Tests from outside, together in one program, since each program is linked anew.

mod and;
mod architecture;
mod examples;
mod exports;
mod ignored;
mod links;
mod security;
mod tree;
