//! Tests from outside, together in one program, since each program is linked anew.
//! Beside this folder: a test that limits the memory of its program.

mod augment_golden;
mod augment_same_bits;
mod resize_golden;
mod sets;
