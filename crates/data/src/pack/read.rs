//! Opening a packed set: the index is read and checked, the pictures are mapped and stay where they
//! are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_storage::{Disk, FileSystem, checksum};
use rayon::prelude::*;

use super::PackedPixels;
use super::format::{HEADER, HEADER_SUM, Index, MAGIC, PIXELS_START, PartIndex, VERSION};
use crate::datasets::{DatasetSpec, find_dataset};
use crate::files::choose::Offer;
use crate::statistics::Sums;
use crate::store::Store;
use crate::{DataError, Dataset, Labels, LoadOptions, Pictures, Split};

/// An opened pack.
pub(crate) struct Pack {
    path: PathBuf,
    pub index: Arc<Index>,
    pixels: Arc<PackedPixels>,
}

/// The data set in a pack, as the options choose it.
pub(crate) fn open(path: &Path, options: &LoadOptions) -> Result<Dataset, DataError> {
    Pack::open(path)?.dataset(options)
}

impl Pack {
    /// Maps the file at `path` and checks its header, its index and its length.
    pub fn open(path: &Path) -> Result<Pack, DataError> {
        Pack::open_on(&Disk, path)
    }

    /// The same of a file on any disk.
    pub fn open_on(disk: &dyn FileSystem, path: &Path) -> Result<Pack, DataError> {
        let bytes = disk.map(path).map_err(|e| DataError::io(path, e))?;
        let again = "pack the pictures again with `anchorhood data pack`";
        let bad = |reason: String| DataError::bad(path, format!("{reason}; {again}"));
        let index = Arc::new(read_index(&bytes).map_err(bad)?);
        Ok(Pack {
            path: path.into(),
            pixels: Arc::new(PackedPixels::new(bytes, Arc::clone(&index))),
            index,
        })
    }

    /// The published set that was packed.
    pub fn set(&self) -> Option<&'static DatasetSpec> {
        find_dataset(&self.index.set)
    }

    /// All pictures of the pack, those of the first part first, and the grey one.
    fn pictures(&self) -> Pictures {
        let size = self.index.size;
        let store = Arc::new(Store::Pack(Arc::clone(&self.pixels)));
        let grey = usize::from(self.pixels.grey().is_some());
        Pictures::stored(size, size, self.pixels.len() + grey, store)
    }

    /// The data set, as the options choose it.
    pub fn dataset(&self, options: &LoadOptions) -> Result<Dataset, DataError> {
        let size = self.index.size;
        if let Some(asked) = options.size.filter(|&asked| asked != size) {
            let path = self.path.clone();
            return Err(DataError::PackSize { path, size, asked });
        }
        let parts = &self.index.parts;
        let offer = Offer {
            train: parts[0].entries.len(),
            test: parts.get(1).map(|p| p.entries.len()),
            holds_out: self.index.holds_out && parts[0].classes.is_some(),
            shuffled: self.index.shuffled,
        };
        let choice = offer.choose(options);
        let mut skipped = Vec::new();
        let (train, sums) = self.split(0, &choice.train, &mut skipped);
        let test_part = usize::from(!choice.held_out);
        let test = choice.test.map(|of| self.split(test_part, &of, &mut skipped).0);
        let known = self.set().map(|set| (set.mean, set.std));
        let statistics = known.unwrap_or_else(|| sums.mean_and_std());
        let test = test.filter(|t| !t.pictures.is_empty());
        Ok(Dataset { skipped, ..Dataset::of(&self.index.name, train, test, statistics) })
    }

    /// The entries `of` a part; those without pixels are grey in a published set, and otherwise
    /// added to `skipped`.
    fn split(
        &self,
        part: usize,
        of: &[usize],
        skipped: &mut Vec<(String, String)>,
    ) -> (Split, Sums) {
        let before: usize = self.index.parts[..part].iter().map(PartIndex::readable).sum();
        let part = &self.index.parts[part];
        let mut slots = part.entries.iter().scan(before, |next, entry| {
            let slot = *next;
            *next += usize::from(entry.pixels.is_ok());
            Some(slot)
        });
        let (mut places, mut values, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sums, mut at) = (Sums::default(), 0);
        for &i in of {
            let slot = slots.nth(i - at).expect("chosen numbers ascend within the part");
            at = i + 1;
            let entry = &part.entries[i];
            let place = match (&entry.pixels, self.pixels.grey()) {
                (Ok((_, one)), _) => {
                    sums = sums + *one;
                    slot
                }
                (Err(_), Some(grey)) => grey,
                (Err(why), None) => {
                    skipped.push((entry.name.clone(), why.clone()));
                    continue;
                }
            };
            places.push(place);
            values.push(entry.class);
            names.extend(Some(entry.name.clone()).filter(|n| !n.is_empty()));
        }
        let split = Split {
            pictures: self.pictures().subset(&places),
            labels: part.classes.clone().map(|classes| Labels::new(values, classes)),
            names,
        };
        (split, sums)
    }

    /// Names of pictures whose pixels are not what was packed.
    pub fn damaged(&self, step: &(dyn Fn() + Sync)) -> Vec<String> {
        let all = (0..self.pixels.len()).into_par_iter();
        let wrong = all.filter(|i| {
            step();
            !self.pixels.is_right(*i)
        });
        wrong.map(|i| self.pixels.name(i)).collect()
    }
}

/// The index of a pack, after everything before and in it was checked, and that its pictures are
/// all there. The error is a clause.
fn read_index(bytes: &[u8]) -> Result<Index, String> {
    if !bytes.starts_with(&MAGIC) {
        return Err("this is not a packed set".into());
    }
    let cut = "the file is cut or damaged";
    let header = bytes.get(..HEADER).ok_or(cut)?;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    let sum = |at: usize| u128::from_le_bytes(header[at..at + 16].try_into().expect("16 bytes"));
    let version = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes"));
    if version != VERSION {
        return Err(format!("packed in layout {version}, and this program reads layout {VERSION}"));
    }
    if sum(HEADER_SUM) != checksum(&header[..HEADER_SUM]) {
        return Err("its first 4096 bytes are damaged (their checksum is another)".into());
    }
    let (start, length) = (number(16), number(24));
    if start < PIXELS_START || start.checked_add(length) != Some(bytes.len() as u64) {
        return Err(cut.into());
    }
    let index = &bytes[start as usize..];
    if checksum(index) != sum(32) {
        return Err("its index is damaged (its checksum is another)".into());
    }
    let index = Index::decode(index).ok_or("its index makes no sense")?;
    let pictures = index.parts.iter().map(PartIndex::readable).sum::<usize>();
    let one = (index.size * index.size * 3) as u64;
    match (pictures as u64).checked_mul(one) == Some(start - PIXELS_START) {
        true => Ok(index),
        false => Err("its index does not match its pictures".into()),
    }
}
