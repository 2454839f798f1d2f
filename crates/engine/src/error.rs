//! What can go wrong, with the layer's name and the shapes in it.

use crate::Shape;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A layer cannot take what it was given.
    #[error("{layer}: expected {expected}, got {got}")]
    Shape {
        /// The layer's name.
        layer: String,
        /// What it takes.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// Two layers share a name.
    #[error("{0}: a layer of this name exists already")]
    DuplicateName(String),
    /// A name no layer has.
    #[error("no layer is named {name:?}; there are {known}")]
    UnknownLayer {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A slice has the wrong length.
    #[error("{what}: expected {expected} values, got {got}")]
    Length {
        /// What the slice holds.
        what: String,
        /// How many values it must hold.
        expected: usize,
        /// How many it holds.
        got: usize,
    },
    /// The graph cannot be planned as asked.
    #[error("{0}")]
    Plan(String),
    /// The device has not enough memory.
    #[error(
        "{what}: {} MiB asked for, {} of the device's {} MiB are free",
        .asked.div_ceil(1 << 20), .free >> 20, .total >> 20
    )]
    Memory {
        /// What it was for.
        what: String,
        /// Bytes asked for.
        asked: usize,
        /// Bytes free.
        free: usize,
        /// Bytes there are.
        total: usize,
        /// What would fit, where that is known.
        fits: Option<Fits>,
    },
    /// The device failed.
    #[error("{0}")]
    Device(String),
}

/// What would fit where a device has not enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// Fewer pictures at a time.
    Batch {
        /// How many; 0 where not even one would fit.
        pictures: usize,
        /// Whether a narrower precision would need half as much.
        halved: bool,
    },
    /// Fewer rows of features, or as much shorter ones.
    Rows {
        /// So much of them.
        percent: u8,
    },
    /// As many rows of fewer values each.
    ShorterRows,
}

/// A result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn shape(layer: &str, expected: impl Into<String>, got: Shape) -> Self {
        Error::Shape { layer: layer.into(), expected: expected.into(), got: got.to_string() }
    }

    /// Refuses what cannot be done as asked, where that is so.
    pub(crate) fn refuse(is_so: bool, why: impl FnOnce() -> String) -> Result<()> {
        match is_so {
            true => Err(Error::Plan(why())),
            false => Ok(()),
        }
    }

    /// Checks a slice's length.
    pub fn check_length(what: &str, expected: usize, got: usize) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(Error::Length { what: what.into(), expected, got })
    }
}
