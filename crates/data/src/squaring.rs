//! How an image becomes the square that a network sees, where the network's makers say so: what
//! torchvision, timm and Hugging Face's processors do with Pillow.

use std::fmt;

/// The version of the whole way from an image's file to the pixels of a square: decoding, resizing
/// and cutting. Raised whenever other pixels come out, so that an index made by another is known.
pub const PREPROCESSING: u32 = 2;

/// How pixels in between are estimated; both filters are widened by the step between two output
/// pixels (antialiasing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// A triangle (Pillow's `BILINEAR`).
    #[default]
    Bilinear,
    /// Keys' cubic with a = −0.5 (Pillow's `BICUBIC`).
    Bicubic,
}

/// What is resized, to how many pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resize {
    /// The centre as a square, the shorter side whole, to the network's size. What networks of ours
    /// learn with.
    #[default]
    CentreSquare,
    /// The shorter side to so many pixels and the longer one in proportion; the centre is cut out
    /// of that. torchvision's `Resize(n)` and `CenterCrop`.
    ShorterSide(usize),
    /// Both sides to so many pixels, whatever the shape; the centre is cut out of that.
    /// `Resize((n, n))`.
    BothSides(usize),
}

/// How an image becomes a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Squaring {
    /// Pixels a side of the square.
    pub size: usize,
    /// What is resized.
    pub resize: Resize,
    /// By which filter.
    pub interpolation: Interpolation,
}

/// The centre square, as for networks of ours.
impl From<usize> for Squaring {
    fn from(size: usize) -> Self {
        Squaring { size, resize: Resize::default(), interpolation: Interpolation::default() }
    }
}

impl Squaring {
    /// Bytes of the square.
    pub fn bytes(self) -> usize {
        self.size * self.size * 3
    }

    /// Whether it is made as for networks of ours.
    pub fn is_ours(self) -> bool {
        self == Squaring::from(self.size)
    }

    /// Pixels of an image's shorter side that are needed.
    pub fn side(self) -> usize {
        match self.resize {
            Resize::CentreSquare => self.size,
            Resize::ShorterSide(side) | Resize::BothSides(side) => side.max(self.size),
        }
    }

    /// Rows and columns of the resized image of which the centre is cut out, of an image of so
    /// many; none where the centre is cut out before.
    pub(crate) fn resized(self, [rows, columns]: [f64; 2]) -> Option<[usize; 2]> {
        match self.resize {
            Resize::CentreSquare => None,
            Resize::BothSides(side) => Some([side, side]),
            Resize::ShorterSide(side) => {
                let shorter = rows.min(columns);
                // As torchvision does: whole pixels, rounded down.
                Some([rows, columns].map(|n| (side as f64 * n / shorter) as usize))
            }
        }
    }
}

impl fmt::Display for Squaring {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let size = self.size;
        write!(f, "{size}×{size} pixels")?;
        match self.resize {
            Resize::CentreSquare => {}
            Resize::ShorterSide(side) => write!(f, " of the centre, the shorter side made {side}")?,
            Resize::BothSides(side) if side == size => write!(f, ", whatever the shape")?,
            Resize::BothSides(side) => write!(f, " of the centre, both sides made {side}")?,
        }
        match self.interpolation {
            Interpolation::Bilinear => Ok(()),
            Interpolation::Bicubic => write!(f, ", bicubic"),
        }
    }
}
