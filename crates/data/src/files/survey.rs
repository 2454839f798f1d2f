//! What is known of picture files once each was decoded, by this process or by several, each of
//! which looks at its own part.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::{Skipped, picture_named};
use crate::DataError;
use crate::fellows::Fellows;
use crate::statistics::Sums;

/// What was seen of some files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Survey {
    pub(super) sums: Sums,
    /// CRC-32 of the pixels of those that can be read.
    pub(super) checksums: Vec<u32>,
    /// The others, by their place, and why.
    pub(super) failed: Vec<(usize, String)>,
}

/// What came of a file: what is to be summed, and the CRC-32 of its pixels.
pub(super) type Decoded = Result<(Sums, u32), String>;
type Decode<'a> = &'a (dyn Fn(&Path) -> Decoded + Sync);
/// As it travels: sums, checksums, failures.
type Told = ([u64; 7], Vec<u32>, Vec<(usize, String)>);

impl Survey {
    /// Of files of which each is decoded by `one`; of several processes, by one of them.
    pub(super) fn of(
        files: &[String],
        fellows: Option<&dyn Fellows>,
        root: &Path,
        one: Decode,
    ) -> Result<Survey, DataError> {
        let Some(fellows) = fellows else {
            return Ok(Survey::of_some(files, 0..files.len(), root, one));
        };
        let own = Survey::of_some(files, fellows.part(files.len()), root, one);
        let failed = |why: String| {
            let lost = "the processes that open these pictures together lost each other";
            DataError::Failed(format!("{lost}: {why}"))
        };
        let told = serde_json::to_vec(&own.told()).map_err(|e| failed(e.to_string()))?;
        let mut all = Survey::default();
        for bytes in fellows.share(told).map_err(failed)? {
            let told = serde_json::from_slice(&bytes);
            all.add(told.map_err(|e| failed(e.to_string()))?);
        }
        Ok(all)
    }

    fn of_some(files: &[String], places: Range<usize>, root: &Path, one: Decode) -> Survey {
        let files = files[places.clone()].par_iter();
        let seen = files.map(|file| one(&picture_named(root, file))).collect();
        Survey::of_decoded(places.start, seen)
    }

    /// Of files that were decoded, the first of which has this place.
    pub(super) fn of_decoded(first: usize, seen: Vec<Decoded>) -> Survey {
        let mut survey = Survey::default();
        for (place, seen) in (first..).zip(seen) {
            match seen {
                Ok((sums, checksum)) => {
                    survey.sums = survey.sums + sums;
                    survey.checksums.push(checksum);
                }
                Err(why) => survey.failed.push((place, why)),
            }
        }
        survey
    }

    fn told(self) -> Told {
        let Sums { pixels, sum: [a, b, c], squares: [d, e, f] } = self.sums;
        ([pixels, a, b, c, d, e, f], self.checksums, self.failed)
    }

    fn add(&mut self, ([pixels, a, b, c, d, e, f], checksums, failed): Told) {
        self.sums = self.sums + Sums { pixels, sum: [a, b, c], squares: [d, e, f] };
        self.checksums.extend(checksums);
        self.failed.extend(failed);
    }

    /// The places of the files that can be read; the others are named.
    pub(super) fn readable(&self, files: &[String], skipped: &mut Skipped) -> Vec<usize> {
        let mut failed = self.failed.iter().peekable();
        let mut places = Vec::with_capacity(files.len());
        for (place, file) in files.iter().enumerate() {
            match failed.next_if(|(at, _)| *at == place) {
                Some((_, why)) => skipped.push((file.clone(), why.clone())),
                None => places.push(place),
            }
        }
        places
    }
}
