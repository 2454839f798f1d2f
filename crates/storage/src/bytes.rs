//! The bytes of a file: mapped, or in memory.

use std::fmt;
use std::ops::Deref;

use memmap2::Mmap;

/// Bytes of a file, read where they lie.
pub struct Bytes(Held);

enum Held {
    Map(Mmap),
    Memory(Vec<u8>),
    Program(&'static [u8]),
}

impl From<Mmap> for Bytes {
    fn from(map: Mmap) -> Self {
        Bytes(Held::Map(map))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes(Held::Memory(bytes))
    }
}

/// Bytes that are part of the program.
impl From<&'static [u8]> for Bytes {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes(Held::Program(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Map(map) => map,
            Held::Memory(bytes) => bytes,
            Held::Program(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match &self.0 {
            Held::Map(_) => "mapped",
            Held::Memory(_) | Held::Program(_) => "in memory",
        };
        write!(f, "{} bytes {how}", self.len())
    }
}
