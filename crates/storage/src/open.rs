//! A container that stays on disk: opened at once, read where it lies, each block checked when it
//! is first touched.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors};

use crate::header;
use crate::{BLOCK, BlockSums, Bytes, Disk, FileError, FileProblem, FileSystem};

/// How the `format` of this program's files begins.
const OURS: &str = "anchorhood-";

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
    tensors: BTreeMap<String, TensorInfo>,
    blocks: BlockSums,
}

/// A tensor where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// Type of an element.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: &'a [usize],
    /// Its bytes, found right.
    pub data: &'a [u8],
}

impl OpenContainer {
    /// Whether a file was written by this program, in whichever version, damaged or not.
    pub fn is_ours(path: &Path) -> bool {
        match OpenContainer::open(path, &Disk) {
            Ok(_) => true,
            Err(e) => matches!(e.problem, FileProblem::Damaged(_) | FileProblem::Version(_)),
        }
    }

    /// Opens a file and checks its header; of the data nothing is read.
    pub fn open(path: &Path, disk: &dyn FileSystem) -> Result<OpenContainer, FileError> {
        OpenContainer::of_bytes(path, disk.map(path).map_err(FileError::io(path))?)
    }

    /// The same of bytes that are at hand; `path` names them in errors.
    pub fn of_bytes(path: &Path, bytes: Bytes) -> Result<OpenContainer, FileError> {
        let start = beginning(path, &bytes)?;
        let length = bytes.len() - start;
        let (_, parsed) = SafeTensors::read_metadata(&bytes).map_err(|_| {
            // The header is right, so what is wrong is how much follows it.
            let place = format!("its end: {length} bytes of data are too few or too many");
            FileError::damaged(path, place)
        })?;
        let metadata = parsed.metadata().clone().unwrap_or_default();
        let mut metadata: BTreeMap<String, String> = metadata.into_iter().collect();
        let version = metadata.get("version").map(String::as_str);
        if version != Some(header::VERSION) {
            return Err(other_version(path, version));
        }
        let blocks = blocks(path, metadata.get("blocks"), length)?;
        metadata.retain(|name, _| !header::RESERVED.contains(&name.as_str()));
        Ok(OpenContainer {
            path: path.into(),
            start,
            metadata,
            clock: header::clock(&bytes),
            order: parsed.offset_keys(),
            tensors: parsed.tensors().into_iter().map(|(name, t)| (name, t.clone())).collect(),
            blocks,
            bytes,
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The program's own fields.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// What may differ between identical runs.
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
        Ok(Tensor { dtype: info.dtype, shape: &info.shape, data: self.data(name, place(info))? })
    }

    /// Some bytes of a tensor, with the blocks that they lie in checked.
    pub fn bytes_of(&self, name: &str, range: Range<usize>) -> Result<&[u8], FileError> {
        let at = place(self.info(name)?);
        if range.start > range.end || range.end > at.len() {
            let reason = format!("its {name} has {} bytes, not {range:?}", at.len());
            return Err(self.content(reason));
        }
        self.data(name, at.start + range.start..at.start + range.end)
    }

    /// Checks every byte of the file.
    pub fn check_all(&self) -> Result<(), FileError> {
        for (name, info) in &self.tensors {
            self.data(name, place(info))?;
        }
        Ok(())
    }

    /// How many of its blocks were touched and found right, and how many there are.
    pub fn blocks(&self) -> (usize, usize) {
        (self.blocks.checked(), self.blocks.len())
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, FileError> {
        let missing = || self.content(format!("it has no {name}"));
        self.tensors.get(name).ok_or_else(missing)
    }

    fn data(&self, name: &str, range: Range<usize>) -> Result<&[u8], FileError> {
        let data = &self.bytes[self.start..];
        let wrong = self.blocks.check(data, range.clone());
        wrong.map_err(|block| self.wrong_block(name, block))?;
        Ok(&data[range])
    }

    fn wrong_block(&self, name: &str, block: usize) -> FileError {
        let first = self.start + block * BLOCK;
        let last = self.bytes.len().min(first + BLOCK);
        let place = format!("bytes {first} to {last}, met in {name}, are not what was written");
        FileError::damaged(&self.path, place)
    }

    fn content(&self, reason: String) -> FileError {
        FileProblem::Content(reason).of(&self.path)
    }
}

/// Where the data begins, after a header whose checksums are right.
fn beginning(path: &Path, bytes: &[u8]) -> Result<usize, FileError> {
    if bytes.is_empty() {
        return Err(not_container(path, "the file is empty"));
    }
    match header::check(bytes) {
        Ok(Some(data)) => Ok(data),
        Ok(None) => Err(without_checksums(path, bytes)),
        Err(place) if begins_like_one(bytes) => Err(FileError::damaged(path, place)),
        Err(place) => Err(not_container(path, &place)),
    }
}

/// Why a file whose header has no checksums is refused.
fn without_checksums(path: &Path, bytes: &[u8]) -> FileError {
    let parsed = match SafeTensors::read_metadata(bytes) {
        Ok((_, parsed)) => parsed,
        Err(e) => return not_container(path, &format!("its header: {e}")),
    };
    let field = |name: &str| parsed.metadata().as_ref()?.get(name).map(String::as_str);
    match field("version") {
        // A flipped bit must not make a file with checksums one without.
        Some(header::VERSION) => {
            FileError::damaged(path, "its first bytes are not what was written")
        }
        version if field("format").is_some_and(|format| format.starts_with(OURS)) => {
            other_version(path, version)
        }
        _ => {
            let theirs = "it is of another program: it has no checksums";
            FileProblem::Content(theirs.into()).of(path)
        }
    }
}

fn other_version(path: &Path, found: Option<&str>) -> FileError {
    FileProblem::Version(found.unwrap_or("unknown").into()).of(path)
}

/// Where a tensor lies in the data.
fn place(info: &TensorInfo) -> Range<usize> {
    info.data_offsets.0..info.data_offsets.1
}

fn not_container(path: &Path, reason: &str) -> FileError {
    FileProblem::NotContainer(reason.into()).of(path)
}

/// Whether a file that is wrong was meant to be a safetensors file.
fn begins_like_one(bytes: &[u8]) -> bool {
    bytes.get(8..).is_some_and(|b| b.starts_with(b"{\"__"))
}

fn blocks(path: &Path, text: Option<&String>, length: usize) -> Result<BlockSums, FileError> {
    let sums = text.and_then(|text| header::block_sums(text));
    let sums = sums.and_then(|sums| BlockSums::new(sums, length));
    sums.ok_or_else(|| FileError::damaged(path, "its checksums are not those of its data"))
}
