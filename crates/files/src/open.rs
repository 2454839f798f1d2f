//! A container that stays on disk: opened at once, read where it lies, each block checked when it is first touched.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use crate::header::{self, Beginning};
use crate::{BLOCK, BlockSums, Bytes, Disk, FileError, FileSystem};

/// Whether what was read is known to be what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Every byte that was handed out was under a checksum, and right.
    Verified,
    /// A file of 0.1 or of another program, which cannot be checked.
    CannotBeChecked,
}

impl Checked {
    /// What to tell whoever uses a file of which damage would go unnoticed.
    pub fn warning(self, path: &Path) -> Option<String> {
        match self {
            Checked::Verified => None,
            Checked::CannotBeChecked => Some(format!(
                "{}: written by version 0.1 or another program, without checksums: it cannot be checked for damage",
                path.display()
            )),
        }
    }
}

/// An open container.
#[derive(Debug)]
pub struct OpenContainer {
    path: PathBuf,
    bytes: Bytes,
    /// Where the data begins.
    start: usize,
    metadata: BTreeMap<String, String>,
    clock: String,
    /// By their place in the data.
    order: Vec<String>,
    tensors: BTreeMap<String, Info>,
    blocks: Option<BlockSums>,
}

#[derive(Debug)]
struct Info {
    dtype: Dtype,
    shape: Vec<usize>,
    at: Range<usize>,
}

/// A tensor where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// Type of an element.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: &'a [usize],
    /// Its bytes, found right where they can be checked.
    pub data: &'a [u8],
}

impl OpenContainer {
    /// Whether a file was written with this program's checksums, damaged or not.
    pub fn is_ours(path: &Path) -> bool {
        match OpenContainer::open(path, &Disk) {
            Ok(open) => open.checked() == Checked::Verified,
            Err(error) => matches!(error, FileError::Damaged { .. }),
        }
    }

    /// Opens a file and checks its header; of the data nothing is read.
    pub fn open(path: &Path, disk: &dyn FileSystem) -> Result<OpenContainer, FileError> {
        OpenContainer::of_bytes(path, disk.map(path).map_err(FileError::io(path))?)
    }

    /// The same of bytes that are at hand; `path` names them in errors.
    pub fn of_bytes(path: &Path, bytes: Bytes) -> Result<OpenContainer, FileError> {
        let (start, right) = beginning(path, &bytes)?;
        check_version(path, &bytes[8..start], right)?;
        let parsed = parse(path, &bytes, start, right)?;
        let metadata = parsed.metadata().clone().unwrap_or_default();
        let mut file = OpenContainer {
            path: path.into(),
            start,
            metadata: metadata.into_iter().collect(),
            clock: String::new(),
            order: parsed.offset_keys(),
            tensors: tensors(&parsed),
            blocks: None,
            bytes,
        };
        if right {
            let (sums, length) = (file.metadata.get("blocks"), file.bytes.len() - start);
            file.blocks = Some(blocks(path, sums, length)?);
            file.clock = header::clock(&file.bytes);
            let own = |name: &str| header::RESERVED.contains(&name);
            file.metadata.retain(|name, _| !own(name));
        }
        Ok(file)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has checksums; with them, nothing wrong is ever handed out.
    pub fn checked(&self) -> Checked {
        match self.blocks {
            Some(_) => Checked::Verified,
            None => Checked::CannotBeChecked,
        }
    }

    /// The program's own fields.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// What may differ between identical runs; empty in a file without checksums.
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// Names of all tensors, as they lie in the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }

    /// Type and dimensions of a tensor, where there is one.
    pub fn shape(&self, name: &str) -> Option<(Dtype, &[usize])> {
        let info = self.tensors.get(name)?;
        Some((info.dtype, &info.shape))
    }

    /// A tensor, all of it checked.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, FileError> {
        let info = self.info(name)?;
        Ok(Tensor {
            dtype: info.dtype,
            shape: &info.shape,
            data: self.data(name, info.at.clone())?,
        })
    }

    /// Some bytes of a tensor, with the blocks that they lie in checked.
    pub fn bytes_of(&self, name: &str, range: Range<usize>) -> Result<&[u8], FileError> {
        let at = &self.info(name)?.at;
        if range.start > range.end || range.end > at.len() {
            let reason = format!("its {name} has {} bytes, not {range:?}", at.len());
            return Err(self.content(reason));
        }
        self.data(name, at.start + range.start..at.start + range.end)
    }

    /// Checks every byte of the file.
    pub fn check_all(&self) -> Result<Checked, FileError> {
        for (name, info) in &self.tensors {
            self.data(name, info.at.clone())?;
        }
        Ok(self.checked())
    }

    /// How many of its blocks were touched and found right, and how many there are; both 0 without checksums.
    pub fn blocks(&self) -> (usize, usize) {
        let count = |b: &BlockSums| (b.checked(), b.len());
        self.blocks.as_ref().map_or((0, 0), count)
    }

    fn info(&self, name: &str) -> Result<&Info, FileError> {
        let missing = || self.content(format!("it has no {name}"));
        self.tensors.get(name).ok_or_else(missing)
    }

    fn data(&self, name: &str, range: Range<usize>) -> Result<&[u8], FileError> {
        let data = &self.bytes[self.start..];
        if let Some(blocks) = &self.blocks {
            let wrong = blocks.check(data, range.clone());
            wrong.map_err(|block| self.wrong_block(name, block))?;
        }
        Ok(&data[range])
    }

    fn wrong_block(&self, name: &str, block: usize) -> FileError {
        let first = self.start + block * BLOCK;
        let last = self.bytes.len().min(first + BLOCK);
        let place = format!("bytes {first} to {last}, met in {name}, are not what was written");
        FileError::damaged(&self.path, place)
    }

    fn content(&self, reason: String) -> FileError {
        let path = self.path.clone();
        FileError::Content { path, reason }
    }
}

/// Where the data begins, and whether the header has checksums, all of which are then right.
fn beginning(path: &Path, bytes: &[u8]) -> Result<(usize, bool), FileError> {
    if bytes.is_empty() {
        return Err(not_container(path, "the file is empty"));
    }
    match header::check(bytes) {
        Ok(Beginning::Right { data }) => Ok((data, true)),
        Ok(Beginning::Unchecked { data }) => Ok((data, false)),
        Err(place) if begins_like_one(bytes) => Err(FileError::damaged(path, place)),
        Err(place) => Err(not_container(path, &place)),
    }
}

fn parse(path: &Path, bytes: &[u8], start: usize, right: bool) -> Result<Metadata, FileError> {
    let parsed = SafeTensors::read_metadata(bytes).map_err(|e| match right {
        // The header is right, so what is wrong is how much follows it.
        true => {
            let data = bytes.len() - start;
            let place = format!("its end: {data} bytes of data are too few or too many");
            FileError::damaged(path, place)
        }
        false => not_container(path, &format!("its header, bytes 0 to {start}: {e}")),
    });
    parsed.map(|(_, metadata)| metadata)
}

fn tensors(parsed: &Metadata) -> BTreeMap<String, Info> {
    let info = |info: &TensorInfo| Info {
        dtype: info.dtype,
        shape: info.shape.clone(),
        at: info.data_offsets.0..info.data_offsets.1,
    };
    let tensors = parsed.tensors().into_iter();
    tensors.map(|(name, t)| (name, info(t))).collect()
}

fn not_container(path: &Path, reason: &str) -> FileError {
    FileError::NotContainer {
        path: path.into(),
        reason: reason.into(),
    }
}

/// Whether a file that is wrong was meant to be a safetensors file.
fn begins_like_one(bytes: &[u8]) -> bool {
    bytes.get(8..).is_some_and(|b| b.starts_with(b"{\"__"))
}

fn check_version(path: &Path, header: &[u8], right: bool) -> Result<(), FileError> {
    match (header::version(header).as_deref(), right) {
        (Some(header::VERSION), true) | (Some("1") | None, false) => Ok(()),
        // A flipped bit must not make a file with checksums one without.
        (Some(header::VERSION), false) => Err(FileError::damaged(
            path,
            "its first bytes are not what was written",
        )),
        (found, _) => Err(FileError::Version {
            path: path.into(),
            found: found.unwrap_or("unknown").into(),
        }),
    }
}

fn blocks(path: &Path, text: Option<&String>, length: usize) -> Result<BlockSums, FileError> {
    let sums = text.and_then(|text| header::block_sums(text));
    let sums = sums.and_then(|sums| BlockSums::new(sums, length));
    sums.ok_or_else(|| FileError::damaged(path, "its checksums are not those of its data"))
}
