//! Which images are the same? Vectors and hashes propose, pixels decide.
//!
//! Every image is [looked at](Look) once. Files and pixels that are equal are found by their
//! checksums, all of them. Of the others, those are [proposed](propose) whose [perceptual
//! hashes](perceptual_hash) are near, in any of eight orientations, and the nearest by their
//! vectors and by their [colours](colours), which a crop keeps. What is proposed is [laid on each
//! other](aligned), and where its detail correlates both files are [read whole](close): two
//! photographs of one scene are told from copies there, and an original from what was made of it.
//! Of what hangs together one image is [kept](keep), and those are its copies that match it
//! themselves.

mod aligned;
mod close;
mod colours;
mod frequencies;
mod groups;
mod keep;
mod look;
mod orientation;
mod perceptual_hash;
mod propose;
mod similar;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use anchorhood_data::{Picture, picture_bytes};
use anchorhood_engine::Device;
use anchorhood_storage::{Checksum, checksum};
use rayon::prelude::*;

use crate::SearchError;
use crate::curate::each::each;
use crate::curate::graph::Sets;
use groups::{Groups, Judged, Match};
use propose::Proposals;

pub use keep::{KeepRule, Reason, UnknownKeepRule};
pub use look::Look;
pub use similar::{Pair, similar_pairs};

/// Larger files are not compared byte by byte.
const MOST_BYTES: u64 = 1 << 32;

/// What counts as the same.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateOptions {
    /// Least correlation of the detail of two pictures that are one.
    pub above: f32,
    /// How many of each picture's nearest by vectors, and how many by colours, are proposed.
    pub nearest: usize,
    /// Rules that choose which copy is kept, each where those before it leave several.
    pub keep: Vec<KeepRule>,
}

impl Default for DuplicateOptions {
    /// As measured in docs/lab/duplicates-thresholds.md.
    fn default() -> Self {
        DuplicateOptions { above: 0.75, nearest: 20, keep: vec![KeepRule::Original] }
    }
}

/// In which way a picture is a copy of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyKind {
    /// Every byte of the file is the same.
    SameFile,
    /// Every pixel is the same, the file is not.
    SamePixels,
    /// The same in another size.
    Resized,
    /// The same in as many pixels, of which some are other: compressed again, or changed a little.
    Recompressed,
    /// Left for right.
    Mirrored,
    /// A part of the other.
    Crop,
    /// A part of the other, left for right.
    MirroredCrop,
    /// The other is a part of it.
    Uncropped,
    /// Turned by 90 degrees clockwise, in any size.
    Rotated90,
    /// Turned by 180 degrees.
    Rotated180,
    /// Turned by 270 degrees clockwise.
    Rotated270,
    /// Left for right, then turned by 90 degrees clockwise.
    MirroredRotated90,
    /// Left for right, then turned by 180 degrees: top for bottom.
    MirroredRotated180,
    /// Left for right, then turned by 270 degrees clockwise.
    MirroredRotated270,
    /// The same with a border around it.
    Bordered,
    /// The same, of which a small part was changed: a watermark, a caption.
    Retouched,
}

impl CopyKind {
    /// What they are called, in this order.
    pub const NAMES: [&str; CopyKind::Retouched as usize + 1] = [
        "same file",
        "same pixels",
        "resized",
        "recompressed",
        "mirrored",
        "crop",
        "mirrored crop",
        "uncropped",
        "rotated 90°",
        "rotated 180°",
        "rotated 270°",
        "mirrored, rotated 90°",
        "mirrored, rotated 180°",
        "mirrored, rotated 270°",
        "with a border",
        "retouched",
    ];
}

impl fmt::Display for CopyKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(CopyKind::NAMES[*self as usize])
    }
}

/// A picture that is not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplicate {
    /// Which.
    pub picture: usize,
    /// In which way.
    pub kind: CopyKind,
    /// Correlation of the detail: 1 where all pixels are the same.
    pub score: f32,
}

/// Pictures that are one.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateGroup {
    /// The one to keep.
    pub keep: usize,
    /// Why this one: what it has before the others, most important first.
    pub why: Vec<Reason>,
    /// The others.
    pub others: Vec<Duplicate>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Duplicates {
    /// Groups, the largest first.
    pub groups: Vec<DuplicateGroup>,
    /// Photographs of one scene that are no copies of each other, such as those of a burst. Of
    /// copies the kept one is among them.
    pub bursts: Vec<Vec<usize>>,
    /// Every picture's look, or why it cannot be read.
    pub looks: Vec<Result<Look, String>>,
    /// How many pairs were judged by their pixels.
    pub judged: usize,
}

/// The pictures to compare.
#[derive(Clone, Copy)]
pub struct Compared<'a> {
    /// Looks at a picture by its number, or says why it cannot be read; on several threads at a
    /// time.
    pub look: &'a (dyn Fn(usize) -> Result<Look, String> + Sync),
    /// Their vectors of unit length, one after the other.
    pub vectors: &'a [f32],
    /// Length of a vector.
    pub dim: usize,
    /// Pictures from this number on are others, which the first are compared with: pairs are of one
    /// and the other, and the kept one is among these. None: all are compared with all.
    pub against_from: Option<usize>,
    /// Place of an image's folder in the order in which the user named folders.
    pub folder_rank: &'a (dyn Fn(usize) -> usize + Sync),
    /// Whether somebody said that these two are no copies of each other.
    pub not_copies: &'a (dyn Fn(usize, usize) -> bool + Sync),
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateStage {
    /// Pictures are read.
    Reading,
    /// Vectors are compared.
    Proposing,
    /// Pixels are compared.
    Judging,
}

/// Finds the pictures that are the same. `progress` is told of each stage how much of it is done,
/// of how much.
pub fn find_duplicates(
    device: &Device,
    compared: &Compared,
    options: &DuplicateOptions,
    progress: &(dyn Fn(DuplicateStage, usize, usize) + Sync),
) -> Result<Duplicates, SearchError> {
    let n = compared.vectors.len() / compared.dim.max(1);
    let reading = |done| progress(DuplicateStage::Reading, done, n);
    let looks = each(n, &reading, compared.look);
    let equal = Equal::find(&looks);
    let proposing = |done| progress(DuplicateStage::Proposing, done, n);
    let proposals = Proposals::new(device, compared, &looks, &equal, options, &proposing)?;
    let judging = |done| progress(DuplicateStage::Judging, done, n);
    let judged = judge(proposals, &looks, options.above, &judging);
    let groups = Groups::new(compared, options, &looks, &equal, judged);
    let (groups, bursts, judged) = groups.found();
    Ok(Duplicates { groups, bursts, looks, judged })
}

/// Pictures whose pixels are all the same.
struct Equal {
    /// For each picture the first that has the same pixels: itself, where there is none before it.
    first: Vec<usize>,
    /// Of those that share their pixels and have a file, its checksum.
    files: HashMap<usize, Checksum>,
}

impl Equal {
    fn find(looks: &[Result<Look, String>]) -> Equal {
        let mut alike: BTreeMap<Checksum, Vec<usize>> = BTreeMap::new();
        for (i, look) in looks.iter().enumerate() {
            if let Ok(look) = look {
                alike.entry(look.pixels).or_default().push(i);
            }
        }
        let alike: Vec<usize> = alike.into_values().filter(|a| a.len() > 1).flatten().collect();
        let sums = alike.par_iter().filter_map(|i| Some((*i, exact(looks[*i].as_ref().ok()?)?)));
        let mut sums: Vec<_> = sums.collect();
        sums.sort_unstable_by_key(|(i, _)| *i);
        let mut equal = Equal { first: (0..looks.len()).collect(), files: HashMap::new() };
        let mut seen: HashMap<Checksum, usize> = HashMap::new();
        for (i, (pixels, file)) in sums {
            equal.first[i] = *seen.entry(pixels).or_insert(i);
            equal.files.extend(file.map(|file| (i, file)));
        }
        equal
    }

    fn kind(&self, a: usize, b: usize) -> CopyKind {
        match (self.files.get(&a), self.files.get(&b)) {
            (Some(a), Some(b)) if a == b => CopyKind::SameFile,
            _ => CopyKind::SamePixels,
        }
    }
}

/// Checksums of all pixels, and of the file where there is one.
fn exact(look: &Look) -> Option<(Checksum, Option<Checksum>)> {
    // What is at hand was looked at whole.
    let Some(path) = &look.path else { return Some((look.pixels, None)) };
    let pixels = if look.whole { look.pixels } else { Picture::read(path).ok()?.checksum() };
    Some((pixels, Some(checksum(&picture_bytes(path, MOST_BYTES).ok()?))))
}

/// Judges what is proposed, as long as it is not settled by what was found before.
fn judge(
    mut proposals: Proposals,
    looks: &[Result<Look, String>],
    above: f32,
    progress: &(dyn Fn(usize) + Sync),
) -> Judged {
    let mut copies = Sets::new(looks.len());
    let mut bursts = Sets::new(looks.len());
    let mut judged = Judged::default();
    loop {
        let batch = proposals.batch(|a, b| copies.are_joined(a, b));
        let Some(pairs) = batch else { break };
        judged.count += pairs.len();
        let of_one: Vec<&[(u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        let found = of_one.par_iter();
        let found = found.flat_map_iter(|pairs| groups::matches_of(pairs, looks, above));
        let found: Vec<((usize, usize), Match)> = found.collect();
        for ((a, b), found) in found {
            let sets = if found.is_copy() { &mut copies } else { &mut bursts };
            // Of a burst it is enough to know what hangs together.
            if found.is_copy() || !sets.are_joined(a, b) {
                judged.matches.push(((a, b), found));
            }
            sets.join(a, b);
        }
        progress(proposals.done());
    }
    judged
}

#[cfg(test)]
mod tests;
