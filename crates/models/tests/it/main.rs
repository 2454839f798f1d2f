//! Tests from outside, together in one program, since each program is linked anew.

mod networks;
mod torch_files;
mod torchvision;
mod trajectory;
