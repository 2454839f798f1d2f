//! What numbers a device computes with (mixed precision).

use std::fmt;

/// What numbers a GPU computes with. Parameters, statistics, the loss and the memory bank are f32
/// in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Activations and their gradients in bf16, sums in f32.
    Bf16,
    /// Activations in f32, convolutions rounded to tf32 on the tensor cores.
    Tf32,
    /// Everything in f32.
    F32,
}

impl Precision {
    /// Bytes of one activation.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Precision::Bf16 => 2,
            Precision::Tf32 | Precision::F32 => 4,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Precision::Bf16 => "bf16",
            Precision::Tf32 => "tf32",
            Precision::F32 => "f32",
        })
    }
}
