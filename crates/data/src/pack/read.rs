//! Opening a packed set: the index is read and checked, the pictures are mapped and stay where they are.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use rayon::prelude::*;

use super::format::{self, HEADER, Index, MAGIC, PIXELS_START, PartIndex, VERSION};
use crate::files::choose::Offer;
use crate::sets::{SetFacts, facts_of};
use crate::statistics::Sums;
use crate::store::Store;
use crate::{DataError, Dataset, Labels, LoadOptions, Pictures, Split};

/// An opened pack.
pub(crate) struct Pack {
    path: PathBuf,
    pub index: Index,
    store: Arc<Store>,
    pictures: usize,
}

/// The data set in a pack, as the options choose it.
pub(crate) fn open(path: &Path, options: &LoadOptions) -> Result<Dataset, DataError> {
    Pack::open(path)?.dataset(options)
}

impl Pack {
    /// Maps the file at `path` and checks its index and its length.
    pub fn open(path: &Path) -> Result<Pack, DataError> {
        let bad = |reason: String| DataError::BadPack {
            path: path.into(),
            reason,
        };
        let io = |e| DataError::io(path, e);
        let mut file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut header = [0; HEADER];
        if file.read_exact(&mut header).is_err() || header[..8] != MAGIC {
            return Err(bad("this is not a packed set".into()));
        }
        let number =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        if word(8) != VERSION {
            return Err(bad(format!(
                "packed in layout {}, and this program reads layout {VERSION}",
                word(8)
            )));
        }
        let (start, bytes) = (number(16), number(24));
        if start < PIXELS_START || start.checked_add(bytes) != Some(length) {
            return Err(bad("the file is cut or damaged".into()));
        }
        let mut index = Vec::new();
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        file.by_ref()
            .take(bytes)
            .read_to_end(&mut index)
            .map_err(io)?;
        if format::checksum(&header, &index) != word(12) {
            return Err(bad("its index is damaged (its checksum is another)".into()));
        }
        let index = Index::decode(&index);
        let index = index.ok_or_else(|| bad("its index makes no sense".into()))?;
        let pictures = index.parts.iter().map(PartIndex::readable).sum::<usize>();
        let one = (index.size * index.size * 3) as u64;
        if (pictures as u64).checked_mul(one) != Some(start - PIXELS_START) {
            return Err(bad("its index does not match its pictures".into()));
        }
        // SAFETY: the map is only read. Another program that shortens or rewrites the file meanwhile could end this one
        // or change pixels, as with any mapped file; packs are written aside and renamed, never changed in place.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        if (map.len() as u64) < start {
            return Err(bad("the file is cut or damaged".into()));
        }
        Ok(Pack {
            path: path.into(),
            index,
            store: Arc::new(Store::Map {
                map,
                start: PIXELS_START as usize,
            }),
            pictures,
        })
    }

    /// What is officially true of the set.
    pub fn facts(&self) -> Option<&'static SetFacts> {
        facts_of(&self.index.set)
    }

    /// All pictures of the pack, those of the first part first.
    fn pictures(&self) -> Pictures {
        let size = self.index.size;
        Pictures::stored(size, size, self.pictures, Arc::clone(&self.store))
    }

    /// The data set, as the options choose it.
    pub fn dataset(&self, options: &LoadOptions) -> Result<Dataset, DataError> {
        let size = self.index.size;
        if let Some(asked) = options.size.filter(|&asked| asked != size) {
            return Err(DataError::BadOption {
                option: "size",
                why: format!(
                    "{} holds pictures of {size}×{size}, not {asked}×{asked}; leave the size out, or pack again with --size {asked}",
                    self.path.display()
                ),
            });
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
        let test = choice
            .test
            .map(|of| self.split(test_part, &of, &mut skipped).0);
        let (mean, std) = match self.facts() {
            Some(facts) => (facts.mean, facts.std),
            None => sums.mean_and_std(),
        };
        Ok(Dataset {
            name: self.index.name.clone(),
            train,
            test: test.filter(|t| !t.pictures.is_empty()),
            mean,
            std,
            skipped,
        })
    }

    /// The entries `of` a part; those without pixels are added to `skipped`.
    fn split(
        &self,
        part: usize,
        of: &[usize],
        skipped: &mut Vec<(String, String)>,
    ) -> (Split, Sums) {
        let before: usize = self.index.parts[..part]
            .iter()
            .map(PartIndex::readable)
            .sum();
        let part = &self.index.parts[part];
        let mut slots = part.entries.iter().scan(before, |next, entry| {
            let slot = *next;
            *next += usize::from(entry.pixels.is_ok());
            Some(slot)
        });
        let (mut places, mut values, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sums, mut at) = (Sums::default(), 0);
        for &i in of {
            let slot = slots
                .nth(i - at)
                .expect("chosen numbers ascend within the part");
            at = i + 1;
            let entry = &part.entries[i];
            match &entry.pixels {
                Ok((_, one)) => {
                    sums = sums + *one;
                    places.push(slot);
                    values.push(entry.class);
                    names.extend(Some(entry.name.clone()).filter(|n| !n.is_empty()));
                }
                Err(why) => skipped.push((entry.name.clone(), why.clone())),
            }
        }
        let split = Split {
            pictures: self.pictures().subset(&places),
            labels: part
                .classes
                .clone()
                .map(|classes| Labels::new(values, classes)),
            names,
        };
        (split, sums)
    }

    /// Names of pictures whose pixels are not what was packed.
    pub fn damaged(&self, step: &(dyn Fn() + Sync)) -> Vec<String> {
        let pictures = self.pictures();
        let entries = self.index.parts.iter().flat_map(|part| &part.entries);
        let entries = entries.filter_map(|e| e.pixels.as_ref().ok().map(|p| (&e.name, p.0)));
        let entries: Vec<(&String, u32)> = entries.collect();
        let broken = entries
            .par_iter()
            .enumerate()
            .filter_map(|(i, (name, crc))| {
                step();
                let same = crc32fast::hash(pictures.picture(i)) == *crc;
                let name = match name.is_empty() {
                    true => format!("picture {i}"),
                    false => name.to_string(),
                };
                (!same).then_some(name)
            });
        broken.collect()
    }
}
