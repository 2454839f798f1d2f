//! How does a file get onto a disk whole, and how is damage to it noticed?
//!
//! Every file that a library of this workspace writes goes through a [`FileSystem`]: [`Disk`] in
//! programs, [`Forgetful`] in tests, with which [`attack`] tries all that can happen to a file.
//! [`AtomicFile`] is a file that is whole or not there, [`AtomicFolder`] a folder, [`AppendFile`] a
//! file that grows. A [`Container`] is a safetensors file with checksums over every one of its
//! bytes, in [blocks](BlockSums) that are checked when they are first touched. `docs/reference/formats.md`
//! has the bytes. [`protobuf`] writes and reads the messages that other programs' files are made
//! of.

mod append;
mod atomic_file;
mod atomic_folder;
mod attack;
mod blocks;
mod bounded;
mod bus_error;
mod bytes;
mod cache_folder;
mod container;
mod disk;
mod error;
mod file_system;
mod forgetful;
mod header;
mod leftovers;
mod move_file;
mod open;
pub mod pickle;
mod private_file;
pub mod protobuf;
mod python_packages;
pub mod random;
mod registry;
mod regular;
mod resolve;
mod varint;

pub use append::AppendFile;
pub use atomic_file::AtomicFile;
pub use atomic_folder::AtomicFolder;
pub use attack::attack;
pub use blocks::{BLOCK, BlockHasher, BlockSums, Checksum, checksum};
pub use bounded::{
    read_at_most, read_at_most_on, read_text_at_most, read_text_at_most_on, take_at_most,
};
pub use bus_error::explain_bus_errors;
pub use bytes::Bytes;
pub use cache_folder::{cache_folder, data_folder};
pub use container::{Container, NamedTensor, Rest, read, write, write_with};
pub use disk::Disk;
pub use error::{FileError, FileProblem};
pub use file_system::{FileId, FileStamp, FileSystem, Hold, Kind, WriteFile, folder_of};
pub use forgetful::{Fault, Forgetful, Operation, Survives};
pub use move_file::move_file;
pub use open::{OpenContainer, Tensor};
pub use private_file::private_file;
pub use python_packages::{entries_beginning, python_packages};
pub use registry::{NameTaken, Named, Registry};
pub use regular::open_regular;
pub use resolve::{resolve, resolve_inside_on, resolve_on, same_file};
pub use safetensors::Dtype;
pub use varint::{read_varint, write_varint};
