//! A data set of one's own, from pictures that are in memory or that the program makes.
//!
//! Training needs pictures alone. Labels, names and pictures to test on can be added; what does not
//! fit together is refused here rather than met as a panic hours later.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use crate::files::choose::Offer;
use crate::store::{Made, Store};
use crate::{
    DataError, Dataset, FolderReport, Labels, LoadOptions, Picture, Pictures, Split, Squaring,
    resize, statistics,
};

impl Pictures {
    /// Pictures of any sizes, each by its central square, resized to `size`×`size`, or as
    /// [`Squaring`] says.
    ///
    /// ```
    /// use anchorhood_data::{Picture, Pictures};
    ///
    /// let wide = Picture::from_rgb(40, 30, vec![200; 40 * 30 * 3])?;
    /// let high = Picture::from_rgb(30, 50, vec![100; 30 * 50 * 3])?;
    /// let pictures = Pictures::squares(32, &[wide, high])?;
    /// assert_eq!((pictures.len(), pictures.height(), pictures.width()), (2, 32, 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn squares(by: impl Into<Squaring>, pictures: &[Picture]) -> Result<Self, DataError> {
        let by = by.into();
        let size = by.size;
        check_size(size, size)?;
        let mut pixels = resize::memory(pictures.len(), size)?;
        let all = pixels.par_chunks_exact_mut(size * size * 3);
        all.zip(pictures)
            .try_for_each(|(out, picture)| picture.square_by(by, out))
            .map_err(|why| DataError::Usage(format!("a picture cannot be resized: {why}")))?;
        Pictures::new(size, size, pixels)
    }

    /// `len` pictures that `make` fills in, each whenever it is asked for and from any thread:
    /// frames of a film, rows of a database, more than memory holds. `make` is given a picture's
    /// number and its `height`×`width`×3 bytes, and must fill in the same ones every time, or a run
    /// does not resume to the same bits.
    pub fn from_fn(
        height: usize,
        width: usize,
        len: usize,
        make: impl Fn(usize, &mut [u8]) + Send + Sync + 'static,
    ) -> Result<Self, DataError> {
        check_size(height, width)?;
        if u32::try_from(len).is_err() {
            return Err(DataError::Usage(format!("{len} pictures are more than 2³² − 1")));
        }
        let store = Store::Made(Made::new(len, Box::new(make)));
        Ok(Pictures::stored(height, width, len, Arc::new(store)))
    }

    /// The same pictures at `size`×`size`: the central square of each, resized, or as [`Squaring`]
    /// says.
    pub fn resized(&self, by: impl Into<Squaring>) -> Result<Self, DataError> {
        let by = by.into();
        check_size(by.size, by.size)?;
        Ok(resize::split(self.clone().into(), by)?.pictures)
    }
}

impl Labels {
    /// A class name for each picture. Classes are numbered in the order of their names.
    ///
    /// ```
    /// let labels = anchorhood_data::Labels::from_names(["dog", "cat", "dog"]);
    /// assert_eq!(labels.classes(), ["cat", "dog"]);
    /// assert_eq!(labels.values(), [1, 0, 1]);
    /// ```
    pub fn from_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<N> = names.into_iter().collect();
        let classes: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
        let classes: Vec<String> = classes.into_iter().map(str::to_owned).collect();
        let number = |name: &N| classes.binary_search_by(|c| c.as_str().cmp(name.as_ref()));
        let values = names.iter().map(|n| number(n).expect("collected above") as u32);
        Labels::new(values.collect(), classes.clone())
    }

    /// Numbers both anew by the names of either, where their classes differ.
    pub(crate) fn number_alike(ours: &mut Option<Labels>, theirs: &mut Option<Labels>) {
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && ours.classes() != theirs.classes()
        {
            let all: BTreeSet<&String> = ours.classes().iter().chain(theirs.classes()).collect();
            let all: Vec<String> = all.into_iter().cloned().collect();
            (*ours, *theirs) = (ours.renumbered(&all), theirs.renumbered(&all));
        }
    }

    /// The same labels numbered by other classes, which must hold all of these.
    fn renumbered(&self, classes: &[String]) -> Self {
        let place = |name: &String| classes.iter().position(|c| c == name);
        let places: Vec<Option<usize>> = self.classes().iter().map(place).collect();
        let number = |v: &u32| places[*v as usize].expect("a union holds every class") as u32;
        Labels::new(self.values().iter().map(number).collect(), classes.into())
    }
}

impl From<Pictures> for Split {
    fn from(pictures: Pictures) -> Self {
        Split { pictures, labels: None, names: vec![] }
    }
}

impl Split {
    /// With a class for each picture, to judge features by; training never sees them.
    pub fn labelled(self, labels: Labels) -> Result<Self, DataError> {
        let pictures = self.pictures.len();
        if labels.len() != pictures {
            let count = labels.len();
            return Err(DataError::Usage(format!(
                "{count} labels for {pictures} pictures; give one for each"
            )));
        }
        let classes = labels.classes().len();
        if let Some(v) = labels.values().iter().find(|v| **v as usize >= classes) {
            return Err(DataError::Usage(format!("label {v} has no name among {classes} classes")));
        }
        Ok(Split { labels: Some(labels), ..self })
    }

    /// With a name for each picture, to find it again by.
    pub fn named(self, names: Vec<String>) -> Result<Self, DataError> {
        let (count, pictures) = (names.len(), self.pictures.len());
        if count != pictures {
            return Err(DataError::Usage(format!(
                "{count} names for {pictures} pictures; give one for each"
            )));
        }
        Ok(Split { names, ..self })
    }
}

impl Dataset {
    /// Pictures to train on, with or without labels. Mean and deviation are measured, so all of
    /// them are looked at once.
    ///
    /// ```
    /// use anchorhood_data::{Dataset, Labels, Pictures, Split};
    ///
    /// let pictures = Pictures::from_fn(32, 32, 100, |i, pixels| pixels.fill(i as u8))?;
    /// let labels = Labels::from_names((0..100).map(|i| if i < 50 { "dark" } else { "bright" }));
    /// let train = Split::from(pictures.take(90)).labelled(labels.subset(&Vec::from_iter(0..90)))?;
    /// let last = Vec::from_iter(90..100);
    /// let test = Split::from(pictures.subset(&last)).labelled(labels.subset(&last))?;
    /// let data = Dataset::new("greys", train).with_test(test)?;
    /// assert_eq!(data.mean[0], 44.5 / 255.0);
    /// # Ok::<(), anchorhood_data::DataError>(())
    /// ```
    pub fn new(name: impl Into<String>, train: impl Into<Split>) -> Self {
        let train = train.into();
        let statistics = statistics::measure(&train.pictures);
        Dataset::of(name, train, None, statistics)
    }

    /// Two parts with known mean and deviation; every picture could be read.
    pub(crate) fn of(
        name: impl Into<String>,
        train: Split,
        test: Option<Split>,
        (mean, std): ([f32; 3], [f32; 3]),
    ) -> Self {
        let (skipped, report) = (vec![], FolderReport::default());
        Dataset { name: name.into(), train, test, mean, std, skipped, report }
    }

    /// With pictures to test on, of the same size. Where the two parts number their classes
    /// differently, both are numbered anew by the names of either.
    pub fn with_test(mut self, test: impl Into<Split>) -> Result<Self, DataError> {
        let mut test = test.into();
        let size = |split: &Split| (split.pictures.height(), split.pictures.width());
        let ((h, w), (th, tw)) = (size(&self.train), size(&test));
        if (h, w) != (th, tw) {
            return Err(DataError::Usage(format!(
                "the pictures to test on are {th}×{tw}, those to train on {h}×{w}; resize one of \
                 them"
            )));
        }
        Labels::number_alike(&mut self.train.labels, &mut test.labels);
        self.test = Some(test);
        Ok(self)
    }

    /// Pictures of one's own with what options ask of any set: a share of labelled ones held out
    /// where there are none to test on, limits, a size, a part to validate on. Mean and deviation
    /// are those of what remains to train on.
    pub fn with_options(self, options: &LoadOptions) -> Result<Self, DataError> {
        let data = self.select(options, false)?;
        let (mean, std) = statistics::measure(&data.train.pictures);
        let data = Dataset { mean, std, ..data };
        match options.validation {
            Some(pictures) => data.validated_on(pictures, options.seed),
            None => Ok(data),
        }
    }

    /// The pictures that options choose, at the size that they ask for. Where the set is `shuffled`
    /// already, a limit takes the first ones, and nothing is held out.
    pub(crate) fn select(self, options: &LoadOptions, shuffled: bool) -> Result<Self, DataError> {
        let offer = Offer {
            train: self.train.pictures.len(),
            test: self.test.as_ref().map(|test| test.pictures.len()),
            holds_out: !shuffled && self.train.labels.is_some(),
            shuffled,
        };
        let choice = offer.choose(options);
        let at_size = |split: Split| match options.size {
            Some(size) => resize::split(split, size.into()),
            None => Ok(split),
        };
        let tested_from = if choice.held_out { Some(&self.train) } else { self.test.as_ref() };
        let test = tested_from.zip(choice.test).map(|(of, test)| at_size(of.subset(&test)));
        let (train, test) = (at_size(self.train.subset(&choice.train))?, test.transpose()?);
        Ok(Dataset { train, test, ..self })
    }
}

fn check_size(height: usize, width: usize) -> Result<(), DataError> {
    if (1..=4096).contains(&height) && (1..=4096).contains(&width) {
        return Ok(());
    }
    Err(DataError::Usage(format!(
        "pictures of {height}×{width} are not between 1 and 4096 pixels a side"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(len: usize) -> Pictures {
        Pictures::from_fn(2, 1, len, |i, pixels| pixels.fill(i as u8)).unwrap()
    }

    #[test]
    fn made_pictures_are_as_those_in_memory() {
        let made = counted(5);
        assert!(!made.is_resident());
        let bytes = (0..5).flat_map(|i| [i; 6]).collect();
        let held = Pictures::new(2, 1, bytes).unwrap();
        assert_eq!(made.raw(), held.raw());
        assert_eq!(made.picture(3), held.picture(3));
        let some = made.subset(&[4, 1]);
        assert_eq!(some.raw(), held.subset(&[4, 1]).raw());
        assert_eq!(some.picture_in(1, &mut vec![]), [1; 6]);
        assert_eq!(statistics::measure(&made), statistics::measure(&held));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let said = |e: DataError| e.to_string();
        let split = || Split::from(counted(3));
        let labels = split().labelled(Labels::from_names(["a"]));
        assert!(said(labels.unwrap_err()).contains("1 labels for 3 pictures"));
        assert!(said(split().named(vec![]).unwrap_err()).contains("0 names for 3"));
        let data = Dataset::new("mine", counted(3));
        let other = Pictures::new(1, 2, vec![0; 6]).unwrap();
        assert!(said(data.with_test(other).unwrap_err()).contains("1×2"));
        for (h, w) in [(0, 2), (2, 5000)] {
            assert!(Pictures::from_fn(h, w, 1, |_, _| {}).is_err());
        }
        assert!(Pictures::squares(0, &[]).is_err());
        assert!(Picture::from_rgb(2, 2, vec![0; 11]).is_err());
    }

    #[test]
    fn both_parts_number_classes_alike() {
        let train = Split::from(counted(2)).labelled(Labels::from_names(["b", "c"]));
        let test = Split::from(counted(2)).labelled(Labels::from_names(["a", "c"]));
        let data = Dataset::new("mine", train.unwrap());
        let data = data.with_test(test.unwrap()).unwrap();
        let (train, test) = (data.train.labels.unwrap(), data.test.unwrap().labels.unwrap());
        assert_eq!(train.classes(), ["a", "b", "c"]);
        assert_eq!(train.classes(), test.classes());
        assert_eq!((train.values(), test.values()), (&[1, 2][..], &[0, 2][..]));
    }

    #[test]
    fn options_hold_out_limit_and_resize() {
        let labels = Labels::from_names((0..50).map(|i| ["even", "odd"][i % 2]));
        let split = Split::from(counted(50)).labelled(labels).unwrap();
        let data = |options| Dataset::new("mine", split.clone()).with_options(&options);
        let options =
            LoadOptions { held_out: 0.2, size: Some(3), limit: Some(30), ..LoadOptions::default() };
        let held_out = data(options.clone()).unwrap();
        let test = held_out.test.unwrap();
        let counts = (held_out.train.pictures.len(), test.pictures.len());
        assert_eq!(counts, (30, 10));
        assert_eq!(test.pictures.height(), 3);
        let validated = data(LoadOptions { validation: Some(5), limit: None, ..options });
        assert_eq!(validated.unwrap().test.unwrap().pictures.len(), 5);
        let bare = Dataset::new("mine", counted(50)).with_options(&LoadOptions::default());
        assert!(bare.unwrap().test.is_none(), "nothing to judge by");
    }

    #[test]
    fn squares_are_cut_as_files_are() {
        // Left half black, right half white: the centre has both.
        let row = [[0; 3], [0; 3], [255; 3], [255; 3]].concat();
        let picture = Picture::from_rgb(4, 2, row.repeat(2)).unwrap();
        let square = Pictures::squares(2, &[picture]).unwrap();
        assert_eq!(square.raw(), [[0; 3], [255; 3]].concat().repeat(2));
        let small = Pictures::new(4, 4, vec![7; 96]).unwrap().resized(2).unwrap();
        assert_eq!(small.raw(), [7; 24]);
    }
}
