//! Pictures, and what is known of them.
//!
//! `Pictures` never carries labels: training takes `Pictures`, only evaluation takes `Labels`.
//! Where the bytes are, in memory, in a mapped file or still in picture files, is the business of
//! [`Store`] and changes no result.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::crops::{self, Crops};
use crate::store::{ChecksumOf, Store};
use crate::{DataError, FolderReport};

/// Pictures of one size, RGB u8, NHWC. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pictures {
    height: usize,
    width: usize,
    len: usize,
    store: Arc<Store>,
    /// The first of the store's pictures that is one of these, where they lie side by side …
    start: usize,
    /// … and all of them, where they do not.
    chosen: Option<Arc<Vec<u32>>>,
    /// All of them side by side, made when first asked for.
    gathered: Arc<OnceLock<Vec<u8>>>,
    /// What crops are cut from, where it is more than the pictures.
    crops: Option<Arc<Crops>>,
    /// The folder of the files they were read from.
    folder: Option<Arc<Path>>,
}

impl Pictures {
    /// Pictures from their bytes, one after the other, each `height`×`width`×3.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Result<Self, DataError> {
        Pictures::with_failures(height, width, pixels, vec![])
    }

    /// The same, of which some stand for files that could not be read: their names, each with the
    /// reason.
    pub(crate) fn with_failures(
        height: usize,
        width: usize,
        pixels: Vec<u8>,
        failures: Vec<(String, String)>,
    ) -> Result<Self, DataError> {
        let one = height.saturating_mul(width).saturating_mul(3);
        if one == 0 || !pixels.len().is_multiple_of(one) {
            let bytes = pixels.len();
            let why = format!("{bytes} bytes do not make whole pictures of {height}×{width}×3");
            return Err(DataError::Usage(why));
        }
        let len = pixels.len() / one;
        Ok(Self::stored(height, width, len, Arc::new(Store::Memory(pixels, failures))))
    }

    /// The first `len` pictures of a store that has at least so many, of that size.
    pub(crate) fn stored(height: usize, width: usize, len: usize, store: Arc<Store>) -> Self {
        Pictures {
            height,
            width,
            len,
            store,
            start: 0,
            chosen: None,
            gathered: Arc::default(),
            crops: None,
            folder: None,
        }
    }

    /// Read from files under this folder.
    pub(crate) fn with_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// What the names of the files are relative to, where each picture was read from a file of its
    /// own or of an archive.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// With what crops are cut from, for every picture of the store. They are squares.
    pub(crate) fn with_crops(mut self, crops: Option<Crops>) -> Self {
        self.crops = crops.map(Arc::new);
        self
    }

    /// How many pictures.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows of each picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns of each picture.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of one picture.
    pub fn picture_len(&self) -> usize {
        self.height * self.width * 3
    }

    /// Whether crops are cut from more than the pictures: an item, what a crop is cut from, is then
    /// a slot that begins with its rows and columns, u32 each; otherwise it is the picture.
    pub fn items_are_slots(&self) -> bool {
        self.crops.is_some()
    }

    /// Bytes of an item.
    pub fn item_len(&self) -> usize {
        match self.crops {
            Some(_) => crops::slot_len(self.height),
            None => self.picture_len(),
        }
    }

    /// The bytes of item `i`: where they lie, or decoded into `scratch`. Panics if there is no such
    /// item.
    pub fn item_in<'a>(&'a self, i: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let one = self.item_len();
        match self.crops.as_deref() {
            None => self.picture_in(i, scratch),
            Some(Crops::Slots(slots)) => &slots[self.place(i) * one..][..one],
            Some(Crops::OnDemand) => {
                scratch.resize(one, 0);
                self.store.fill_slot(self.place(i), scratch);
                scratch
            }
        }
    }

    /// Rows, columns and pixels of an item.
    pub(crate) fn seen_of<'a>(&self, item: &'a [u8]) -> ([usize; 2], &'a [u8]) {
        match self.crops {
            Some(_) => crops::parse(item),
            None => ([self.height, self.width], item),
        }
    }

    /// Whether every picture's bytes are there already, in memory or in a mapped file. Otherwise
    /// each is decoded from its file whenever it is asked for.
    pub fn is_resident(&self) -> bool {
        self.store.is_resident()
    }

    /// The bytes of picture `i`, HWC. Panics if there is no such picture.
    ///
    /// A picture that has to be decoded stays in memory from then on: to go through many, use
    /// [`Pictures::picture_in`].
    pub fn picture(&self, i: usize) -> &[u8] {
        self.store.keep(self.place(i), self.picture_len())
    }

    /// The bytes of picture `i`, HWC: where they lie, or decoded into `scratch`. Panics if there is
    /// no such picture.
    pub fn picture_in<'a>(&'a self, i: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.store.get(self.place(i), self.picture_len(), scratch)
    }

    /// All bytes, picture after picture. Pictures that do not lie so already are gathered in
    /// memory: ask [`Pictures::is_resident`] first where there may be more than memory holds.
    pub fn raw(&self) -> &[u8] {
        let one = self.picture_len();
        let lying = match self.chosen {
            None => self.store.range(self.start, self.len, one),
            Some(_) => None,
        };
        lying.unwrap_or_else(|| {
            self.gathered.get_or_init(|| {
                let mut pixels = vec![0; self.len * one];
                self.copy_to(&mut pixels);
                pixels
            })
        })
    }

    /// A checksum of each picture (CRC-32), to know it again by; and of what it is, which is the
    /// same for all. Pixels are decoded for none.
    pub fn checksums(&self) -> (ChecksumOf, Vec<u32>) {
        let one = self.picture_len();
        let each = (0..self.len).into_par_iter();
        let each: Vec<(ChecksumOf, u32)> = each
            .map_init(Vec::new, |scratch, i| self.store.checksum(self.place(i), one, scratch))
            .collect();
        let of = each.first().map_or(ChecksumOf::Pixels, |(of, _)| *of);
        (of, each.into_iter().map(|(_, sum)| sum).collect())
    }

    /// The colour of all pixels of all pictures, where it is the same; of other pictures only the
    /// first ones are looked at.
    pub fn one_colour(&self) -> Option<[u8; 3]> {
        let mut scratch = vec![];
        let mut colour = None;
        for i in 0..self.len {
            for pixel in self.picture_in(i, &mut scratch).chunks_exact(3) {
                if *colour.get_or_insert([pixel[0], pixel[1], pixel[2]]) != *pixel {
                    return None;
                }
            }
        }
        colour
    }

    fn copy_to(&self, pixels: &mut [u8]) {
        pixels.par_chunks_exact_mut(self.picture_len()).enumerate().for_each_init(
            Vec::new,
            |scratch, (i, out)| {
                out.copy_from_slice(self.picture_in(i, scratch));
            },
        );
    }

    /// The first `n` pictures (all, if there are fewer), sharing memory with these.
    pub fn take(&self, n: usize) -> Self {
        Pictures { len: self.len.min(n), gathered: Arc::default(), ..self.clone() }
    }

    /// The pictures at `indices`, in that order, sharing memory with these. Panics if there is no
    /// such picture.
    pub fn subset(&self, indices: &[usize]) -> Self {
        let places: Vec<u32> = indices.iter().map(|&i| self.place(i) as u32).collect();
        let together = places.windows(2).all(|pair| pair[1] == pair[0] + 1);
        Pictures {
            len: indices.len(),
            start: places.first().map_or(0, |&first| first as usize),
            chosen: (!together).then(|| Arc::new(places)),
            gathered: Arc::default(),
            ..self.clone()
        }
    }

    /// Files that could not be read, as far as that is known by now, each with the reason; a plain
    /// grey picture stands for them.
    pub fn failures(&self) -> Vec<(String, String)> {
        self.store.failures().into_owned()
    }

    /// Where in the store picture `i` is.
    fn place(&self, i: usize) -> usize {
        assert!(i < self.len, "picture {i} of {}", self.len);
        match &self.chosen {
            Some(chosen) => chosen[i] as usize,
            None => self.start + i,
        }
    }
}

/// Class numbers of pictures, for evaluation only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    values: Vec<u32>,
    classes: Vec<String>,
}

impl Labels {
    /// A class number per picture, and the name of each class. Every number must have a name.
    pub fn new(values: Vec<u32>, classes: Vec<String>) -> Self {
        debug_assert!(values.iter().all(|&v| (v as usize) < classes.len()));
        Labels { values, classes }
    }

    /// The class number of picture `i`.
    pub fn get(&self, i: usize) -> u32 {
        self.values[i]
    }

    /// The class of picture `i`, by its name.
    pub fn class(&self, i: usize) -> &str {
        &self.classes[self.get(i) as usize]
    }

    /// How many pictures have a label: all of their split.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Names of the classes, by number.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// All class numbers.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// The labels of the pictures at `indices`, in that order.
    pub fn subset(&self, indices: &[usize]) -> Self {
        Labels {
            values: indices.iter().map(|&i| self.values[i]).collect(),
            classes: self.classes.clone(),
        }
    }
}

/// One part of a data set, with its labels when it has them.
#[derive(Clone, Debug)]
pub struct Split {
    /// The pictures.
    pub pictures: Pictures,
    /// Their classes, for evaluation only.
    pub labels: Option<Labels>,
    /// Their files, relative to the folder; empty where pictures have no files.
    pub names: Vec<String>,
}

impl Split {
    /// The pictures at `indices`, with their labels and names.
    pub fn subset(&self, indices: &[usize]) -> Self {
        Split {
            pictures: self.pictures.subset(indices),
            labels: self.labels.as_ref().map(|l| l.subset(indices)),
            names: match self.names.is_empty() {
                true => Vec::new(),
                false => indices.iter().map(|&i| self.names[i].clone()).collect(),
            },
        }
    }
}

/// Pictures to train on, pictures to test on, and what a network needs to know of both.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What to call it.
    pub name: String,
    /// The pictures to train on.
    pub train: Split,
    /// The pictures to evaluate on, where there are any.
    pub test: Option<Split>,
    /// Mean of each channel of the training pictures, of values in [0, 1].
    pub mean: [f32; 3],
    /// Standard deviation of each channel, likewise.
    pub std: [f32; 3],
    /// Files that could not be read, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// What else was found in its folder, and decided about it.
    pub report: FolderReport,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pictures() {
        assert!(Pictures::new(2, 2, vec![0; 24]).is_ok_and(|p| p.len() == 2));
        for (h, w, n) in [(2, 2, 23), (0, 2, 0), (usize::MAX, 2, 12)] {
            assert!(matches!(Pictures::new(h, w, vec![0; n]), Err(DataError::Usage(_))));
        }
    }

    #[test]
    fn take_and_subset_share() {
        let p = Pictures::new(1, 1, (0..12).collect()).unwrap();
        assert_eq!(p.take(2).raw(), &[0, 1, 2, 3, 4, 5]);
        assert_eq!(p.take(9).len(), 4);
        assert_eq!(p.subset(&[3, 0]).raw(), &[9, 10, 11, 0, 1, 2]);
        assert_eq!(p.take(2).picture(1), &[3, 4, 5]);
        let again = p.subset(&[3, 0, 2]).subset(&[2, 0]);
        assert_eq!(again.raw(), &[6, 7, 8, 9, 10, 11]);
        assert_eq!(again.take(1).raw(), &[6, 7, 8]);
        assert_eq!(again.picture_in(1, &mut Vec::new()), &[9, 10, 11]);
        assert!(Arc::ptr_eq(&p.store, &again.store), "nothing is copied");
        let together = p.subset(&[1, 2, 3]).subset(&[1, 2]);
        assert_eq!(together.raw(), &p.raw()[6..]);
        assert_eq!(together.raw().as_ptr(), p.picture(2).as_ptr());
        assert!(p.subset(&[]).raw().is_empty());
    }

    #[test]
    fn checksums_are_the_pictures_own() {
        let p = Pictures::new(1, 1, vec![1, 2, 3, 4, 5, 6, 1, 2, 3]).unwrap();
        let (of, sums) = p.checksums();
        assert_eq!((of, sums.len()), (ChecksumOf::Pixels, 3));
        assert!(sums[0] == sums[2] && sums[0] != sums[1]);
        assert_eq!(p.subset(&[1, 0]).checksums().1, [sums[1], sums[0]]);
        let made = Pictures::from_fn(1, 1, 2, |i, out| out.fill(i as u8)).unwrap();
        assert_eq!(made.checksums().1, [[0; 3], [1; 3]].map(|p| crc32fast::hash(&p)));
    }

    #[test]
    fn one_colour_is_told_from_two() {
        let colour = |bytes: &[u8]| Pictures::new(1, 2, bytes.into()).unwrap().one_colour();
        assert_eq!(colour(&[7; 12]), Some([7; 3]));
        assert_eq!(colour(&[1, 2, 3, 1, 2, 3]), Some([1, 2, 3]));
        assert_eq!(colour(&[1, 2, 3, 1, 2, 4]), None);
        assert_eq!(colour(&[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8]), None);
        assert_eq!(colour(&[]), None);
    }
}
