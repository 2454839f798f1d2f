//! Tests from outside, together in one program, since each program is linked anew.

mod golden;
mod long;
mod networks;
mod torch_files;
mod trajectory;
