//! Which pictures are the same? Vectors and hashes propose, pixels decide.
//!
//! Every picture is [looked at](Look) once. Files and pixels that are equal are found by their checksums, all of them. Of the others,
//! those are proposed whose [perceptual hashes](perceptual_hash) are near, also of the mirrored picture, and the nearest by their
//! vectors and by their [colours](colours), which a crop keeps. What is proposed is [laid on each other](aligned), and counts where its detail
//! correlates. What belongs together is a group, with a suggestion which picture to [keep](keep).

mod aligned;
mod colours;
mod keep;
mod look;
mod perceptual_hash;
mod similar;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use anchorhood_data::{Picture, picture_bytes};
use anchorhood_engine::{Device, Scan};
use anchorhood_files::{Checksum, checksum};
use rayon::prelude::*;

use crate::CurateError;
use crate::each::each;
use crate::graph::Sets;
use aligned::{Aligned, Lies, Ready};
use colours::COLOURS;
use perceptual_hash::near_pairs;

pub use keep::{KeepRule, Reason, UnknownKeepRule};
pub use look::Look;
pub use similar::{Pair, groups, similar_pairs};

/// Larger files are not compared byte by byte.
const MOST_BYTES: u64 = 1 << 32;
/// Proposals that are judged before it is looked which of the next are settled by them.
const AT_A_TIME: usize = 1 << 14;

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
    /// As measured in docs/duplicates.md.
    fn default() -> Self {
        DuplicateOptions {
            above: 0.75,
            nearest: 20,
            keep: vec![KeepRule::Original],
        }
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

impl fmt::Display for CopyKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            CopyKind::SameFile => "same file",
            CopyKind::SamePixels => "same pixels",
            CopyKind::Resized => "resized",
            CopyKind::Recompressed => "recompressed",
            CopyKind::Mirrored => "mirrored",
            CopyKind::Crop => "crop",
            CopyKind::MirroredCrop => "mirrored crop",
            CopyKind::Uncropped => "uncropped",
            CopyKind::Rotated90 => "rotated 90°",
            CopyKind::Rotated180 => "rotated 180°",
            CopyKind::Rotated270 => "rotated 270°",
            CopyKind::MirroredRotated90 => "mirrored, rotated 90°",
            CopyKind::MirroredRotated180 => "mirrored, rotated 180°",
            CopyKind::MirroredRotated270 => "mirrored, rotated 270°",
            CopyKind::Bordered => "with a border",
            CopyKind::Retouched => "retouched",
        })
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
    /// Photographs of one scene that are no copies of each other, such as those of a burst; none of
    /// a burst is a copy of another of it.
    pub bursts: Vec<Vec<usize>>,
    /// Every picture's look, or why it cannot be read.
    pub looks: Vec<Result<Look, String>>,
    /// How many pairs were judged by their pixels.
    pub judged: usize,
}

/// The pictures to compare.
#[derive(Clone, Copy)]
pub struct Compared<'a> {
    /// Looks at a picture by its number, or says why it cannot be read; on several threads at a time.
    pub look: &'a (dyn Fn(usize) -> Result<Look, String> + Sync),
    /// Their vectors of unit length, one after the other.
    pub vectors: &'a [f32],
    /// Length of a vector.
    pub dim: usize,
    /// Pictures from this number on are others, which the first are compared with: pairs are of one and the other, and the
    /// kept one is among these. None: all are compared with all.
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

/// Finds the pictures that are the same. `progress` is told of each stage how much of it is done, of how much.
pub fn find_duplicates(
    device: &Device,
    compared: &Compared,
    options: &DuplicateOptions,
    progress: &(dyn Fn(DuplicateStage, usize, usize) + Sync),
) -> Result<Duplicates, CurateError> {
    let n = compared.vectors.len() / compared.dim.max(1);
    let reading = |done| progress(DuplicateStage::Reading, done, n);
    let looks = each(n, &reading, compared.look);
    let equal = Equal::find(&looks);
    let proposing = |done| progress(DuplicateStage::Proposing, done, n);
    let proposed = propose(device, compared, &looks, &equal, options, &proposing)?;
    let judging = |done| progress(DuplicateStage::Judging, done, proposed.len());
    let (copies, judged) = judge(
        &proposed,
        &looks,
        compared.against_from,
        options.above,
        &judging,
    );
    let groups = grouped(compared.against_from, &looks, &equal, &copies);
    Ok(Duplicates {
        groups,
        bursts: vec![],
        looks,
        judged,
    })
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
        let alike: Vec<usize> = alike
            .into_values()
            .filter(|a| a.len() > 1)
            .flatten()
            .collect();
        let sums = alike
            .par_iter()
            .map(|i| (*i, exact(looks[*i].as_ref().ok())));
        let sums: Vec<(usize, Option<Exact>)> = sums.collect();
        let mut equal = Equal {
            first: (0..looks.len()).collect(),
            files: HashMap::new(),
        };
        let mut seen: HashMap<Checksum, usize> = HashMap::new();
        let mut sums: Vec<_> = sums
            .into_iter()
            .filter_map(|(i, sums)| Some((i, sums?)))
            .collect();
        sums.sort_unstable_by_key(|(i, _)| *i);
        for (i, Exact { pixels, file }) in sums {
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
struct Exact {
    pixels: Checksum,
    file: Option<Checksum>,
}

fn exact(look: Option<&Look>) -> Option<Exact> {
    let look = look?;
    let of_file = |path: &Path| {
        let pixels = match look.whole {
            true => look.pixels,
            false => Picture::read(path).ok()?.checksum(),
        };
        let file = Some(checksum(&picture_bytes(path, MOST_BYTES).ok()?));
        Some(Exact { pixels, file })
    };
    match &look.path {
        Some(path) => of_file(path),
        // What is at hand was looked at whole.
        None => Some(Exact {
            pixels: look.pixels,
            file: None,
        }),
    }
}

/// Pairs that may be the same, each once and in order, the lower number first: near by their hashes, by their vectors or by their
/// colours.
fn propose(
    device: &Device,
    compared: &Compared,
    looks: &[Result<Look, String>],
    equal: &Equal,
    options: &DuplicateOptions,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<(u32, u32)>, CurateError> {
    let from = compared.against_from;
    // Of those with the same pixels one speaks for all of them; where two sides are compared, one of each side.
    let mut spoken = HashSet::new();
    let speaks = |i: &usize| spoken.insert((equal.first[*i], is_other(from, *i)));
    let readable = (0..looks.len()).filter(|i| looks[*i].as_ref().is_ok_and(|l| !l.flat));
    let open: Vec<usize> = readable.filter(speaks).collect();
    let wanted = |a: u32, b: u32| {
        let (a, b) = (a as usize, b as usize);
        let sides = from.is_none() || is_other(from, a) != is_other(from, b);
        sides && equal.first[a] != equal.first[b]
    };
    let mut pairs = BTreeSet::new();
    let mut all: Vec<(u32, u32)> = vec![];
    let mut add = |a: u32, b: u32| {
        let pair = (a.min(b), a.max(b));
        if wanted(a, b) && pairs.insert(pair) {
            all.push(pair);
        }
    };
    let hashes = |mirrored: bool| {
        let hash = |i: &usize| {
            let look = looks[*i].as_ref().ok()?;
            let hash = if mirrored {
                look.mirrored_hash
            } else {
                look.hash
            };
            Some((*i as u32, hash))
        };
        open.iter().filter_map(hash).collect::<Vec<_>>()
    };
    let plain = hashes(false);
    near_pairs(&plain, &plain)
        .into_iter()
        .for_each(|(a, b)| add(a, b));
    near_pairs(&hashes(true), &plain)
        .into_iter()
        .for_each(|(a, b)| add(a, b));
    let (others, first): (Vec<usize>, Vec<usize>) = open.iter().partition(|i| is_other(from, **i));
    let sides = match from {
        None => vec![(&first, &first)],
        Some(_) => vec![(&first, &others), (&others, &first)],
    };
    let vector = |i: usize| &compared.vectors[i * compared.dim..][..compared.dim];
    let colours = |i: usize| looks[i].as_ref().map_or(&[][..], |look| &look.colours);
    for (queries, keys) in sides {
        let by_vector = nearest(
            device,
            compared.dim,
            vector,
            queries,
            keys,
            options,
            progress,
        )?;
        let by_colours = nearest(device, COLOURS, colours, queries, keys, options, progress)?;
        let near = by_vector.into_iter().chain(by_colours);
        near.for_each(|(a, b)| add(a, b));
    }
    // By their first, so that what is made ready of it is made once.
    all.sort_unstable();
    Ok(all)
}

fn is_other(against_from: Option<usize>, i: usize) -> bool {
    against_from.is_some_and(|from| i >= from)
}

/// The nearest keys of each query, by rows of `dim` values.
fn nearest<'a>(
    device: &Device,
    dim: usize,
    row: impl Fn(usize) -> &'a [f32],
    queries: &[usize],
    keys: &[usize],
    options: &DuplicateOptions,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<(u32, u32)>, CurateError> {
    let rows = |of: &[usize]| -> Vec<f32> { of.iter().flat_map(|i| row(*i)).copied().collect() };
    // One more, where each finds itself.
    let k = (options.nearest + 1).min(keys.len());
    if queries.is_empty() || k == 0 {
        return Ok(vec![]);
    }
    let scan = Scan {
        dim,
        entropy_temperature: None,
        k,
        same: false,
    };
    let (asked, kept) = (device.upload(&rows(queries))?, device.upload(&rows(keys))?);
    let found = device.scan(&asked, &kept, &scan, progress)?.neighbours;
    let mut pairs = vec![];
    for (at, query) in queries.iter().enumerate() {
        let near = found.of(at).iter().map(|key| keys[*key as usize]);
        let near = near.filter(|key| key != query);
        pairs.extend(near.map(|key| (*query as u32, key as u32)));
    }
    Ok(pairs)
}

/// A pair that is the same: the second is a copy of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Copied {
    of: usize,
    copy: usize,
    kind: CopyKind,
    score: f32,
}

/// Judges what was proposed, as long as it is not settled by what was found before; and how many it judged.
fn judge(
    proposed: &[(u32, u32)],
    looks: &[Result<Look, String>],
    against_from: Option<usize>,
    above: f32,
    progress: &(dyn Fn(usize) + Sync),
) -> (Vec<Copied>, usize) {
    let mut sets = Sets::new(looks.len());
    let (mut found, mut judged) = (vec![], 0);
    for (part, pairs) in proposed.chunks(AT_A_TIME).enumerate() {
        let open = |&&(a, b): &&(u32, u32)| !sets.are_joined(a as usize, b as usize);
        let open: Vec<(u32, u32)> = pairs.iter().filter(open).copied().collect();
        judged += open.len();
        let of_one: Vec<&[(u32, u32)]> = open.chunk_by(|a, b| a.0 == b.0).collect();
        let copies = of_one.par_iter();
        let copies = copies.flat_map_iter(|pairs| copies_of(pairs, looks, above));
        let copies: Vec<Copied> = copies.collect();
        // Across two sides every pair is told, since each is news.
        if against_from.is_none() {
            copies.iter().for_each(|c| sets.join(c.of, c.copy));
        }
        found.extend(copies);
        progress((part * AT_A_TIME + pairs.len()).min(proposed.len()));
    }
    (found, judged)
}

/// Those of some pairs with the same first that are the same.
fn copies_of(pairs: &[(u32, u32)], looks: &[Result<Look, String>], above: f32) -> Vec<Copied> {
    let look = |i: u32| looks[i as usize].as_ref().ok();
    let Some(first) = pairs.first().and_then(|(a, _)| look(*a)) else {
        return vec![];
    };
    let (upright, mirrored) = (Ready::new(&first.luma), Ready::new(&first.luma.mirrored()));
    let copied = |(a, b): &(u32, u32)| {
        let second = look(*b)?;
        let found = aligned::align(&upright, &mirrored, &Ready::new(&second.luma), above)?;
        let same_size = first.height_and_width == second.height_and_width;
        Some(Copied::new(*a as usize, *b as usize, found, same_size))
    };
    pairs.iter().filter_map(copied).collect()
}

impl Copied {
    fn new(a: usize, b: usize, found: Aligned, same_size: bool) -> Copied {
        let kind = match (found.lies, found.mirrored) {
            (Lies::Whole, true) => CopyKind::Mirrored,
            (Lies::Whole, false) if same_size => CopyKind::Recompressed,
            (Lies::Whole, false) => CopyKind::Resized,
            (Lies::Within | Lies::Around, false) => CopyKind::Crop,
            (Lies::Within | Lies::Around, true) => CopyKind::MirroredCrop,
        };
        let (of, copy) = match found.lies {
            Lies::Whole | Lies::Within => (a, b),
            Lies::Around => (b, a),
        };
        Copied {
            of,
            copy,
            kind,
            score: found.score,
        }
    }
}

/// Joins what is the same, and says of each group what is to be kept.
fn grouped(
    against_from: Option<usize>,
    looks: &[Result<Look, String>],
    equal: &Equal,
    copies: &[Copied],
) -> Vec<DuplicateGroup> {
    let mut sets = Sets::new(looks.len());
    (0..looks.len()).for_each(|i| sets.join(i, equal.first[i]));
    copies.iter().for_each(|c| sets.join(c.of, c.copy));
    let mut ties: HashMap<usize, Vec<Copied>> = HashMap::new();
    for copy in copies {
        // Whoever has the same pixels has the same ties.
        let of = Copied {
            of: equal.first[copy.of],
            copy: equal.first[copy.copy],
            ..*copy
        };
        ties.entry(of.of).or_default().push(of);
        ties.entry(of.copy).or_default().push(of);
    }
    let crops = copies.iter().filter(|c| is_crop(c.kind));
    let cropped: HashSet<usize> = crops.map(|c| equal.first[c.copy]).collect();
    let group = |members: Vec<usize>| {
        let may_stay = |i: &&usize| against_from.is_none() || is_other(against_from, **i);
        let kept: Vec<usize> = members.iter().filter(may_stay).copied().collect();
        let may_go = |i: &usize| against_from.is_none() || !is_other(against_from, *i);
        if kept.is_empty() || !members.iter().any(may_go) {
            return None; // all on one side
        }
        let (keep, why) = keep::choose(&kept, looks, |i| cropped.contains(&equal.first[i]));
        let mut others = tree(keep, &members, equal, &ties);
        others.retain(|other| may_go(&other.picture));
        Some(DuplicateGroup { keep, why, others })
    };
    sets.groups(2).into_iter().filter_map(group).collect()
}

fn is_crop(kind: CopyKind) -> bool {
    matches!(kind, CopyKind::Crop | CopyKind::MirroredCrop)
}

/// Every other member as a copy of the kept one, or of one that is reached from it.
fn tree(
    keep: usize,
    members: &[usize],
    equal: &Equal,
    ties: &HashMap<usize, Vec<Copied>>,
) -> Vec<Duplicate> {
    let mut left: BTreeSet<usize> = members.iter().copied().filter(|i| *i != keep).collect();
    let mut reached = vec![];
    let mut next = std::collections::VecDeque::from([keep]);
    while let Some(of) = next.pop_front() {
        let mut found: Vec<Duplicate> = vec![];
        for picture in &left {
            let (a, b) = (equal.first[of], equal.first[*picture]);
            let tie = ties
                .get(&a)
                .and_then(|t| t.iter().find(|c| c.of == b || c.copy == b));
            let (kind, score) = match tie {
                _ if a == b => (equal.kind(of, *picture), 1.0),
                Some(c) if is_crop(c.kind) && c.of == b => (CopyKind::Uncropped, c.score),
                Some(c) => (c.kind, c.score),
                None => continue,
            };
            found.push(Duplicate {
                picture: *picture,
                kind,
                score,
            });
        }
        for duplicate in found {
            left.remove(&duplicate.picture);
            next.push_back(duplicate.picture);
            reached.push(duplicate);
        }
    }
    reached
}

#[cfg(test)]
mod tests;
