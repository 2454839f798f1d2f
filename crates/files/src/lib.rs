//! How does a file get onto a disk whole, and how is damage to it noticed?
//!
//! Every file that a library of this workspace writes goes through a [`FileSystem`]: [`Disk`] in programs, [`Failing`] or
//! another in tests. [`AtomicFile`] is a file that is whole or not there, [`append_line`] adds to one that grows. A
//! [`Container`] is a safetensors file with checksums over every one of its bytes, in [blocks](BlockSums) that are checked
//! when they are first touched. `docs/formats.md` has the bytes. [`protobuf`] writes and reads the messages that other
//! programs' files are made of.

mod append;
mod atomic_file;
mod blocks;
mod bounded;
mod bus_error;
mod bytes;
mod container;
mod disk;
mod error;
mod failing;
mod file_system;
mod header;
mod leftovers;
mod open;
pub mod protobuf;
mod varint;

pub use append::append_line;
pub use atomic_file::AtomicFile;
pub use blocks::{BLOCK, BlockHasher, BlockSums, Checksum, checksum};
pub use bounded::{read_at_most, read_text_at_most};
pub use bus_error::explain_bus_errors;
pub use bytes::Bytes;
pub use container::{Container, NamedTensor, read, write};
pub use disk::Disk;
pub use error::FileError;
pub use failing::Failing;
pub use file_system::{FileSystem, Kind, WriteFile, folder_of};
pub use open::{Checked, OpenContainer, Tensor};
pub use safetensors::Dtype;
pub use varint::{read_varint, write_varint};
