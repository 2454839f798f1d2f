//! From a listing to a data set: everything decoded into memory where it fits, decoded on demand
//! where it does not.
//!
//! Both ways give the same pictures, labels, statistics and warnings. For the second, every file is
//! decoded once when the set is opened, to know what cannot be read and to measure, and thrown away
//! again. Published sets are spared that: they have as many pictures as was published wherever they
//! are, and a plain grey one stands for each file that cannot be read.
//!
//! Of several processes that open a set together each decodes its own part of the files for that,
//! and afterwards those that it is asked for, which it keeps where there is room.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::choose::Offer;
use super::survey::{Decoded, Survey};
use super::{GREY, Listing, OnDemand, Part, Picture, Skipped, picture_named};
use crate::crops::{Crops, fill, shape, slot_len};
use crate::fellows::Fellows;
use crate::folder::SIZE;
use crate::statistics::Sums;
use crate::store::Store;
use crate::{
    CropsFrom, DataError, Dataset, LoadOptions, Pictures, Progress, Split, memory, resize,
};

/// Reads what the options choose of a listing.
pub(crate) fn open(
    listing: Listing,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<Dataset, DataError> {
    open_within(listing, options, progress, memory::for_pictures())
}

/// Likewise, with at most `most` bytes of memory for pixels.
pub(crate) fn open_within(
    listing: Listing,
    options: &LoadOptions,
    progress: &Progress,
    most: u64,
) -> Result<Dataset, DataError> {
    if listing.train.files.is_empty() {
        return Err(listing.empty());
    }
    let default_size = listing.default_size();
    let (train, test) = chosen_parts(listing.train, listing.test, listing.holds_out, options);
    let total = train.files.len() + test.as_ref().map_or(0, |t| t.files.len());
    let asked = options.crops == CropsFrom::Picture || options.largest.is_some();
    let sides = match asked && listing.set.is_none() {
        true => sides_of_some(&train, &listing.root),
        false => vec![],
    };
    let fitting = options.largest.and_then(|most| fitting_size(&sides, most));
    let size = options.size.or(fitting).unwrap_or(default_size);
    let crops = options.crops == CropsFrom::Picture
        && sides.iter().any(|sides| shape(*sides, size).is_some());
    let slots = if crops { train.files.len() } else { 0 };
    let needed = (total * size * size * 3).saturating_add(slots.saturating_mul(slot_len(size)));
    let done = AtomicUsize::new(0);
    let reader = Reader {
        root: &listing.root,
        size,
        fits: needed as u64 <= most / options.fellows.as_ref().map_or(1, |f| f.count() as u64),
        fellows: options.fellows.as_deref(),
        crops,
        surveyed: listing.set.is_none(),
        step: &|| progress(done.fetch_add(1, Ordering::Relaxed) + 1, total),
    };
    let mut skipped = listing.unreadable;
    let (train, sums) = reader.read(train, &mut skipped)?;
    let judged = Reader { crops: false, ..reader };
    let test = test.map(|t| judged.read(t, &mut skipped)).transpose()?;
    let parts = std::iter::once(&train).chain(test.as_ref().map(|(t, _)| t));
    let mut lost = skipped.clone();
    lost.extend(parts.flat_map(|part| part.pictures.failures()));
    if lost.len() * 10 > total || train.pictures.is_empty() {
        let (root, first) = (&listing.root, lost.first());
        return Err(DataError::too_many_unreadable(root, lost.len(), total, first));
    }
    let known = listing.set.map(|set| (set.mean, set.std));
    let statistics = known.unwrap_or_else(|| sums.mean_and_std());
    let test = test.map(|(t, _)| t).filter(|t| !t.pictures.is_empty());
    let report = listing.report;
    Ok(Dataset { skipped, report, ..Dataset::of(listing.name, train, test, statistics) })
}

/// Pictures that are looked at to know how large they are.
const SAMPLE: usize = 16;

/// Rows and columns of some of the pictures that can be read.
fn sides_of_some(part: &Part, root: &Path) -> Vec<[u32; 2]> {
    let step = part.files.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<&String> = part.files.iter().step_by(step).collect();
    let sides = |file: &&String| {
        Picture::read_for(picture_named(root, file), SIZE, |p| Ok(p.height_and_width())).ok()
    };
    sample.par_iter().filter_map(sides).collect()
}

/// The largest of the sizes that networks are used to, up to `most`, that half of the pictures have
/// at least.
fn fitting_size(sides: &[[u32; 2]], most: usize) -> Option<usize> {
    let mut shorter: Vec<usize> = sides.iter().map(|[h, w]| *h.min(w) as usize).collect();
    shorter.sort_unstable();
    let median = *shorter.get(shorter.len() / 2)?;
    let sizes = [96, 64].into_iter();
    sizes.filter(|size| *size <= most).find(|size| *size <= median)
}

fn chosen_parts(
    train: Part,
    test: Option<Part>,
    holds_out: bool,
    options: &LoadOptions,
) -> (Part, Option<Part>) {
    let offer = Offer {
        train: train.files.len(),
        test: test.as_ref().map(|t| t.files.len()),
        holds_out: holds_out && train.labels.is_some(),
        shuffled: false,
    };
    let choice = offer.choose(options);
    let test = match (choice.test, test) {
        (Some(of), Some(test)) => Some(test.only(&of)),
        (Some(of), None) => Some(train.subset(&of)),
        (None, _) => None,
    };
    (train.only(&choice.train), test)
}

impl Part {
    /// Those at ascending `indices`. There may be millions: all of them are not copied.
    fn only(self, indices: &[usize]) -> Part {
        if indices.len() == self.files.len() { self } else { self.subset(indices) }
    }

    fn subset(&self, indices: &[usize]) -> Part {
        Part {
            files: indices.iter().map(|&i| self.files[i].clone()).collect(),
            labels: self.labels.as_ref().map(|labels| labels.subset(indices)),
        }
    }

    fn split(self, pictures: Pictures) -> Split {
        Split { pictures, labels: self.labels, names: self.files }
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    root: &'a Path,
    size: usize,
    /// Whether all pictures fit in memory.
    fits: bool,
    fellows: Option<&'a dyn Fellows>,
    /// Whether crops are cut from more than squares.
    crops: bool,
    /// Whether files that stay on disk are decoded once to judge them.
    /// What cannot be read is then left out; of a published set, it is seen as plain grey.
    surveyed: bool,
    step: &'a (dyn Fn() + Sync),
}

impl Reader<'_> {
    /// Reads every file of a part; those that fail are added to `skipped`.
    fn read(&self, part: Part, skipped: &mut Skipped) -> Result<(Split, Sums), DataError> {
        match self.fits && self.fellows.is_none() {
            true => self.at_once(part, skipped),
            false => self.on_demand(part, skipped),
        }
    }

    fn at_once(&self, part: Part, skipped: &mut Skipped) -> Result<(Split, Sums), DataError> {
        let one = self.size * self.size * 3;
        let slot = if self.crops { slot_len(self.size) } else { 0 };
        let mut pixels = resize::memory(part.files.len(), self.size)?;
        let mut slots = resize::room(part.files.len(), slot, self.size)?;
        // Where there are no slots, each is empty.
        let each: Vec<&mut [u8]> = match self.crops {
            true => slots.chunks_exact_mut(slot).collect(),
            false => part.files.iter().map(|_| &mut [][..]).collect(),
        };
        let decoded = pixels
            .par_chunks_exact_mut(one)
            .zip(each)
            .zip(&part.files)
            .map(|((out, slot), file)| self.one(&picture_named(self.root, file), out, slot))
            .collect();
        let survey = Survey::of_decoded(0, decoded);
        if !self.surveyed {
            // They are seen as grey, and named.
            let mut failures = vec![];
            for (place, why) in survey.failed {
                pixels[place * one..][..one].fill(GREY);
                failures.push((part.files[place].clone(), why));
            }
            let pictures = Pictures::with_failures(self.size, self.size, pixels, failures)?;
            let pictures = pictures.with_folder(self.root);
            return Ok((part.split(pictures), Sums::default()));
        }
        let readable = survey.readable(&part.files, skipped);
        keep_those(&readable, one, &mut pixels);
        keep_those(&readable, slot, &mut slots);
        let (part, sums) = (part.only(&readable), survey.sums);
        let pictures = Pictures::new(self.size, self.size, pixels)?;
        let crops = self.crops.then_some(Crops::Slots(slots));
        let pictures = pictures.with_crops(crops).with_folder(self.root);
        Ok((part.split(pictures), sums))
    }

    fn on_demand(&self, part: Part, skipped: &mut Skipped) -> Result<(Split, Sums), DataError> {
        let survey = match self.surveyed {
            true => Survey::of(&part.files, self.fellows, self.root, &|path| {
                self.one(path, &mut vec![0; self.size * self.size * 3], &mut [])
            })?,
            false => Survey::default(),
        };
        let readable = survey.readable(&part.files, skipped);
        let (part, sums) = (part.only(&readable), survey.sums);
        let files = part.files.clone();
        let files = OnDemand::new(self.root.into(), files, self.size, survey.checksums);
        let files = if self.fits { files.keeping() } else { files };
        let store = Arc::new(Store::Files(files));
        let pictures = Pictures::stored(self.size, self.size, part.files.len(), store);
        let crops = self.crops.then_some(Crops::OnDemand);
        let pictures = pictures.with_crops(crops).with_folder(self.root);
        Ok((part.split(pictures), sums))
    }

    /// The square of a file, and what crops are cut from, where there is a slot for it.
    fn one(&self, path: &Path, out: &mut [u8], slot: &mut [u8]) -> Decoded {
        let read = Picture::read_for(path, self.size, |picture| {
            picture.square(self.size, out)?;
            if slot.is_empty() { Ok(()) } else { fill(picture, self.size, slot) }
        });
        (self.step)();
        read.map(|()| (Sums::of(out), crc32fast::hash(out)))
    }
}

/// Moves the pieces of `one` byte together whose places these are.
fn keep_those(places: &[usize], one: usize, bytes: &mut Vec<u8>) {
    for (kept, i) in places.iter().enumerate() {
        bytes.copy_within(i * one..(i + 1) * one, kept * one);
    }
    bytes.truncate(places.len() * one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_half_of_the_pictures_have() {
        let sides = |all: &[u32]| Vec::from_iter(all.iter().map(|side| [side + 9, *side]));
        let photographs = sides(&[3000, 2000, 50, 4000, 96]);
        assert_eq!(fitting_size(&photographs, 96), Some(96));
        assert_eq!(fitting_size(&photographs, 64), Some(64));
        assert_eq!(fitting_size(&sides(&[64, 64, 80]), 96), Some(64));
        assert_eq!(fitting_size(&sides(&[32, 40, 3000]), 96), None);
        assert_eq!(fitting_size(&[], 96), None);
    }
}
