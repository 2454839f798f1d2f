//! A safetensors file with checksums: other tools read it as they read any, and this program
//! notices every changed bit.
//!
//! Tensors lie sorted by the size of their elements, largest first, then by name, so that all are
//! aligned; the header is that of `header.rs`. Equal containers make equal files. Nothing is copied
//! to be written: memory is the caller's own, and what is somebody else's is [asked
//! for](write_with) piece by piece.
//!
//! Kept by hand: `safetensors` reads and writes such files, and has no checksums.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use safetensors::Dtype;

use crate::{AtomicFile, BlockHasher, FileError, FileProblem, FileSystem, OpenContainer, header};

/// One tensor: its elements one after the other, little endian, the last dimension fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor<'a> {
    /// What it is called; no two of a file are called the same.
    pub name: String,
    /// Type of an element.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its bytes, borrowed from whoever writes it.
    pub data: Cow<'a, [u8]>,
}

impl<'a> NamedTensor<'a> {
    /// A tensor whose bytes are borrowed.
    pub fn new(name: &str, dtype: Dtype, shape: &[usize], data: &'a [u8]) -> Self {
        NamedTensor { name: name.into(), dtype, shape: shape.into(), data: Cow::Borrowed(data) }
    }

    /// Bytes of all its elements, unless they are too many to be counted.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let mut shape = self.shape.iter();
        let bits = shape.try_fold(self.dtype.bitsize(), |bits, n| bits.checked_mul(*n));
        bits.filter(|bits| bits.is_multiple_of(8)).map(|b| b / 8)
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container<'a> {
    /// The program's own fields; `clock`, `checksum`, `blocks` and `version` are the container's.
    pub metadata: BTreeMap<String, String>,
    /// The one field that may differ between identical runs: at most 192 printable ASCII
    /// characters, neither `"` nor `\`.
    pub clock: String,
    /// The tensors, in any order.
    pub tensors: Vec<NamedTensor<'a>>,
}

/// Whoever has the bytes of a tensor that its writer has not: shows them, piece after piece.
pub type Rest<'r> = &'r mut dyn FnMut(&str, &mut dyn FnMut(&[u8])) -> io::Result<()>;

/// Writes the file, whole or not at all.
pub fn write(container: &Container, path: &Path, disk: &dyn FileSystem) -> Result<(), FileError> {
    write_with(container, path, disk, &mut |_, _| Ok(()))
}

/// The same of tensors of which some have fewer bytes than elements: the rest is asked for by name,
/// twice, since checksums come before the data, each time in the order of [`Container::order`].
pub fn write_with(
    container: &Container,
    path: &Path,
    disk: &dyn FileSystem,
    rest: Rest,
) -> Result<(), FileError> {
    let bad = |reason| FileProblem::Content(reason).of(path);
    let tensors = sorted(&container.tensors).map_err(bad)?;
    let mut hasher = BlockHasher::new();
    for tensor in &tensors {
        let seen = each_piece(tensor, rest, &mut |piece| hasher.write(piece));
        let seen = seen.map_err(FileError::io(path))?;
        check_length(tensor, seen).map_err(bad)?;
    }
    let blocks = hasher.finish();
    let header = header::encode(&container.metadata, &container.clock, &tensors, &blocks);
    let header = header.map_err(bad)?;
    let written = AtomicFile::create_on(disk, path).and_then(|mut file| {
        file.write_all(&header)?;
        for tensor in &tensors {
            let mut written = Ok(());
            each_piece(tensor, rest, &mut |piece| {
                if written.is_ok() {
                    written = file.write_all(piece);
                }
            })?;
            written?;
        }
        file.finish()
    });
    written.map_err(FileError::io(path))
}

impl Container<'_> {
    /// Names of its tensors as they lie in the file.
    pub fn order(&self) -> Vec<&str> {
        in_order(&self.tensors).map(|t| t.name.as_str()).collect()
    }
}

/// Shows all bytes of a tensor; says how many they are.
fn each_piece(tensor: &NamedTensor, rest: Rest, see: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
    let mut seen = tensor.data.len();
    see(&tensor.data);
    if tensor.bytes().is_some_and(|bytes| seen < bytes) {
        rest(&tensor.name, &mut |piece| {
            seen += piece.len();
            see(piece);
        })?;
    }
    Ok(seen)
}

fn check_length(tensor: &NamedTensor, bytes: usize) -> Result<(), String> {
    if tensor.bytes() == Some(bytes) {
        return Ok(());
    }
    let NamedTensor { name, shape, dtype, .. } = tensor;
    Err(format!("{name}: {bytes} bytes are no {shape:?} of {dtype:?}"))
}

fn in_order<'c, 'a>(
    tensors: &'c [NamedTensor<'a>],
) -> impl Iterator<Item = &'c NamedTensor<'a>> + use<'c, 'a> {
    let mut all: Vec<&NamedTensor> = tensors.iter().collect();
    all.sort_by(|a, b| {
        let size = b.dtype.bitsize().cmp(&a.dtype.bitsize());
        size.then_with(|| a.name.cmp(&b.name))
    });
    all.into_iter()
}

fn sorted<'c, 'a>(tensors: &'c [NamedTensor<'a>]) -> Result<Vec<&'c NamedTensor<'a>>, String> {
    let all: Vec<&NamedTensor> = in_order(tensors).collect();
    let mut taken = BTreeSet::from(["__metadata__"]);
    for tensor in &all {
        let name = &tensor.name;
        if !taken.insert(name) {
            return Err(format!("no tensor can be called {name} here"));
        }
    }
    Ok(all)
}

/// Reads a whole file into memory, every byte of it checked. To read tensors one at a time, or rows
/// of one, see [`OpenContainer`].
pub fn read(path: &Path, disk: &dyn FileSystem) -> Result<Container<'static>, FileError> {
    let file = OpenContainer::open(path, disk)?;
    let own = |name: &str| {
        let tensor = file.tensor(name)?;
        Ok(NamedTensor {
            data: Cow::Owned(tensor.data.to_vec()),
            ..NamedTensor::new(name, tensor.dtype, tensor.shape, &[])
        })
    };
    let tensors: Result<Vec<NamedTensor>, FileError> = file.names().map(own).collect();
    Ok(Container {
        tensors: tensors?,
        metadata: file.metadata().clone(),
        clock: file.clock().into(),
    })
}
