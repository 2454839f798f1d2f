//! A tensor as a file keeps it.

use safetensors::Dtype;

/// A name, dimensions, the kind of numbers, and their bytes.
pub(crate) struct RawTensor<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    pub kind: Number,
    pub bytes: &'a [u8],
}

/// What numbers are kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F16,
    Bf16,
    /// Something that no weight is.
    Other,
}

impl From<Dtype> for Number {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Number::F32,
            Dtype::F16 => Number::F16,
            Dtype::BF16 => Number::Bf16,
            _ => Number::Other,
        }
    }
}

impl Number {
    /// Bytes of one; 0 of what is not read.
    pub fn bytes(self) -> usize {
        match self {
            Number::F32 => 4,
            Number::F16 | Number::Bf16 => 2,
            Number::Other => 0,
        }
    }
}

impl RawTensor<'_> {
    /// Its numbers, if they are of a kind that weights are.
    pub fn values(&self) -> Option<Vec<f32>> {
        let halves = || self.bytes.as_chunks::<2>().0.iter();
        Some(match self.kind {
            Number::F32 => {
                let words = self.bytes.as_chunks::<4>().0.iter();
                words.map(|b| f32::from_le_bytes(*b)).collect()
            }
            Number::F16 => halves().map(|b| of_half(u16::from_le_bytes(*b))).collect(),
            Number::Bf16 => {
                let of = |b: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
                halves().map(of).collect()
            }
            Number::Other => return None,
        })
    }
}

/// IEEE's half precision: a sign, five bits of exponent, ten of fraction.
fn of_half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        e => (1024.0 + fraction) * 2_f32.powi(e - 25),
    };
    match bits >> 15 {
        0 => size,
        _ => -size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_what_they_say() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(of_half(bits), value, "{bits:#06x}");
        }
        assert!(of_half(0x7e00).is_nan());
    }
}
