//! Where the bytes of pictures are: in memory, in a mapped file, still in picture files, or nowhere
//! until they are made.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::files::OnDemand;
use crate::pack::PackedPixels;

/// What the checksum of a picture is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumOf {
    /// Its pixels, as they are given to training.
    Pixels,
    /// The name and the length of its file: where its pixels would have to be decoded for it.
    File,
}

/// Bytes of pictures, all of one length, by their number.
pub(crate) enum Store {
    /// In memory, one after the other, and the names of those that stand for files which could not
    /// be read, each with the reason.
    Memory(Vec<u8>, Vec<(String, String)>),
    /// In a pack, a mapped file.
    Pack(Arc<PackedPixels>),
    /// In files of their own, decoded whenever one is asked for.
    Files(OnDemand),
    /// Made by somebody else's program whenever one is asked for.
    Made(Made),
}

/// Fills in the bytes of a picture.
type Make = Box<dyn Fn(usize, &mut [u8]) + Send + Sync>;

/// Pictures that a function fills in.
pub(crate) struct Made {
    make: Make,
    kept: Vec<OnceLock<Box<[u8]>>>,
}

impl Made {
    pub fn new(len: usize, make: Make) -> Self {
        let kept = (0..len).map(|_| OnceLock::new()).collect();
        Made { make, kept }
    }

    fn keep(&self, i: usize, one: usize) -> &[u8] {
        self.kept[i].get_or_init(|| {
            let mut pixels = vec![0; one];
            (self.make)(i, &mut pixels);
            pixels.into_boxed_slice()
        })
    }
}

impl Store {
    /// Picture `i` of `one` bytes: where it lies, or decoded into `scratch`.
    pub fn get<'a>(&'a self, i: usize, one: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Store::Memory(pixels, _) => &pixels[i * one..][..one],
            Store::Pack(pack) => pack.get(i),
            Store::Files(files) if files.keeps() => files.keep(i, one),
            Store::Files(files) => {
                scratch.resize(one, 0);
                files.decode(i, scratch);
                scratch
            }
            Store::Made(made) => {
                scratch.resize(one, 0);
                (made.make)(i, scratch);
                scratch
            }
        }
    }

    /// Fills a slot with what crops of picture `i` are cut from; only files have more than the
    /// picture.
    pub fn fill_slot(&self, i: usize, slot: &mut [u8]) {
        match self {
            Store::Files(files) => files.fill_slot(i, slot),
            Store::Memory(..) | Store::Pack(_) | Store::Made(_) => {
                unreachable!("slots are filled from files alone")
            }
        }
    }

    /// Picture `i`, for as long as the store lives. A decoded picture is kept for that long.
    pub fn keep(&self, i: usize, one: usize) -> &[u8] {
        match self {
            Store::Memory(pixels, _) => &pixels[i * one..][..one],
            Store::Pack(pack) => pack.get(i),
            Store::Files(files) => files.keep(i, one),
            Store::Made(made) => made.keep(i, one),
        }
    }

    /// The `n` pictures of `one` bytes from `start` on, where they lie side by side.
    pub fn range(&self, start: usize, n: usize, one: usize) -> Option<&[u8]> {
        match self {
            Store::Memory(pixels, _) => Some(&pixels[start * one..][..n * one]),
            Store::Pack(pack) => pack.range(start, n),
            Store::Files(_) | Store::Made(_) => None,
        }
    }

    /// A checksum of picture `i`, and of what it is.
    pub fn checksum(&self, i: usize, one: usize, scratch: &mut Vec<u8>) -> (ChecksumOf, u32) {
        let pixels = match self {
            Store::Pack(pack) => pack.checksum(i),
            Store::Files(files) => match files.checksum(i) {
                Some(pixels) => pixels,
                None => return (ChecksumOf::File, files.checksum_of_file(i)),
            },
            Store::Memory(..) | Store::Made(_) => crc32fast::hash(self.get(i, one, scratch)),
        };
        (ChecksumOf::Pixels, pixels)
    }

    /// Pictures whose files could not be read when they were asked for, each with the reason.
    pub fn failures(&self) -> Cow<'_, [(String, String)]> {
        match self {
            Store::Files(files) => Cow::Owned(files.failures()),
            Store::Pack(pack) => Cow::Owned(pack.failures()),
            Store::Memory(_, failures) => Cow::Borrowed(failures),
            Store::Made(_) => Cow::Borrowed(&[]),
        }
    }

    /// Whether asking for a picture costs no decoding.
    pub fn is_resident(&self) -> bool {
        !matches!(self, Store::Files(_) | Store::Made(_))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Store::Memory(..) => "in memory",
            Store::Pack(_) => "in a mapped file",
            Store::Files(_) => "decoded on demand",
            Store::Made(_) => "made on demand",
        })
    }
}
