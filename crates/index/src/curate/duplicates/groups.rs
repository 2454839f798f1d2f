//! What belongs together: one image that is kept, and the copies that match it themselves.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use rayon::prelude::*;

use super::aligned::{Aligned, Ready, align};
use super::close::{self, Side, Traces};
use super::keep::{self, KeepRule, Reason};
use super::orientation::{Orientation, Part};
use super::propose::is_other;
use super::{Compared, CopyKind, Duplicate, DuplicateGroup, DuplicateOptions, Equal, Look};
use crate::curate::graph::Sets;

/// Photographs that were taken within so many milliseconds by one camera are of one burst.
const BURST: i64 = 3_000;
/// Images that are compared with the best so far before it is looked which of them is better.
const AT_A_TIME: usize = 16;
/// Copies of which reasons are asked for.
const MOST_REASONS: usize = 50;
/// An image is a part of another where it lacks so much of its area.
const PART: f32 = 0.97;

/// What was found of a pair that looks the same: the lower number is the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Match {
    Copy(Aligned, Traces),
    /// Alike in few pixels, and not the same in more; or taken one after the other.
    Burst,
}

impl Match {
    pub fn is_copy(&self) -> bool {
        matches!(self, Match::Copy(..))
    }
}

/// What was judged.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub matches: Vec<((usize, usize), Match)>,
    /// How many pairs.
    pub count: usize,
}

/// A look that is ready to be compared: all of it, and what lies within a flat border.
struct Views {
    whole: Ready,
    inside: Option<(Part, Ready)>,
}

impl Views {
    fn new(look: &Look, orientation: Orientation) -> Views {
        let ready = |luma| match orientation {
            Orientation::UPRIGHT => Ready::new(luma),
            _ => Ready::new(&orientation.of(luma)),
        };
        let inside = look.inside.as_ref();
        Views {
            whole: ready(&look.view.luma),
            inside: inside.map(|(part, view)| (*part, ready(&view.luma))),
        }
    }

    fn inside_or_whole(&self) -> (Part, &Ready) {
        match &self.inside {
            Some((part, ready)) => (*part, ready),
            None => (Part::WHOLE, &self.whole),
        }
    }
}

/// Those of some pairs with the same first that look the same.
pub(super) fn matches_of(
    pairs: &[(u32, u32)],
    looks: &[Result<Look, String>],
    above: f32,
) -> Vec<((usize, usize), Match)> {
    let look = |i: u32| looks[i as usize].as_ref().ok();
    let Some(first) = pairs.first().and_then(|(a, _)| look(*a)) else {
        return vec![];
    };
    let upright = Views::new(first, Orientation::UPRIGHT);
    let mirrored = Views::new(first, Orientation::MIRRORED);
    let matched = |(a, b): &(u32, u32)| {
        let found = matched(first, [&upright, &mirrored], look(*b)?, above)?;
        Some(((*a as usize, *b as usize), found))
    };
    pairs.iter().filter_map(matched).collect()
}

/// `upright` and `mirrored` are of the first.
fn matched(
    first: &Look,
    [upright, mirrored]: [&Views; 2],
    second: &Look,
    above: f32,
) -> Option<Match> {
    let other = Views::new(second, Orientation::UPRIGHT);
    let apart = taken_apart(first, second);
    let mut alike = false;
    let mut traces = None;
    // Then within flat borders, which are no part of what is compared.
    let inside = upright.inside.is_some() || other.inside.is_some();
    let found = [false, true].into_iter().filter(|within| inside || !within).find_map(|within| {
        let views = |views| match within {
            true => Views::inside_or_whole(views),
            false => (Part::WHOLE, &views.whole),
        };
        let ((part, a), (_, turned)) = (views(upright), views(mirrored));
        let (other_part, b) = views(&other);
        let mut whole = None;
        let mut accepts = |aligned: &Aligned| {
            let on_first = aligned.orientation.of_part(part).within(aligned.on_first);
            let on_second = other_part.within(aligned.on_second);
            let aligned = Aligned { on_first, on_second, ..*aligned };
            alike |= !aligned.retouched;
            traces = if apart { None } else { close::compare(first, second, &aligned) };
            whole = traces.map(|_| aligned);
            traces.is_some() || apart
        };
        align(a, turned, b, above, &mut accepts)?;
        whole
    });
    match (found, traces) {
        (Some(aligned), Some(traces)) => Some(Match::Copy(aligned, traces)),
        _ => alike.then_some(Match::Burst),
    }
}

/// Whether one camera took both, one after the other.
fn taken_apart(a: &Look, b: &Look) -> bool {
    let (a, b) = (&a.metadata, &b.metadata);
    let (Some(at), Some(then)) = (a.taken, b.taken) else {
        return false;
    };
    // Whoever rewrites a time may drop what is less than a second.
    let exact = |time: i64| time % 1000 != 0;
    let differ = at / 1000 != then / 1000 || (exact(at) && exact(then) && at != then);
    a.camera.is_some() && a.camera == b.camera && differ && (at - then).abs() <= BURST
}

/// All that is found, as groups.
pub(super) struct Groups<'a> {
    compared: &'a Compared<'a>,
    options: &'a DuplicateOptions,
    looks: &'a [Result<Look, String>],
    equal: &'a Equal,
    /// By the first images of equal pixels, the lower number first; none where they do not match.
    known: RefCell<HashMap<(usize, usize), Option<Match>>>,
    judged: Cell<usize>,
}

impl<'a> Groups<'a> {
    pub fn new(
        compared: &'a Compared<'a>,
        options: &'a DuplicateOptions,
        looks: &'a [Result<Look, String>],
        equal: &'a Equal,
        judged: Judged,
    ) -> Self {
        let mut known = HashMap::new();
        for ((a, b), found) in judged.matches {
            // Where two sides are compared, the images that spoke may not be the first of their
            // pixels.
            let (first, second) = (equal.first[a], equal.first[b]);
            let found = if first < second { found } else { found.swapped() };
            known.insert((first.min(second), first.max(second)), Some(found));
        }
        Groups {
            compared,
            options,
            looks,
            equal,
            known: RefCell::new(known),
            judged: Cell::new(judged.count),
        }
    }

    /// Groups, the largest first; bursts, in order; and how many pairs were judged in all.
    pub fn found(self) -> (Vec<DuplicateGroup>, Vec<Vec<usize>>, usize) {
        let n = self.looks.len();
        let mut sets = Sets::new(n);
        (0..n).for_each(|i| sets.join(i, self.equal.first[i]));
        for ((a, b), found) in self.known.borrow().iter() {
            if found.is_some_and(|found| found.is_copy()) {
                sets.join(*a, *b);
            }
        }
        let mut groups: Vec<DuplicateGroup> = vec![];
        for members in sets.groups(2) {
            self.divide(members, &mut groups);
        }
        groups.sort_by_key(|group| (std::cmp::Reverse(group.others.len()), group.keep));
        let bursts = self.bursts(&groups);
        (groups, bursts, self.judged.get())
    }

    /// Of images that hang together: one that is kept with all that match it, then of the others
    /// likewise.
    fn divide(&self, mut left: Vec<usize>, groups: &mut Vec<DuplicateGroup>) {
        let from = self.compared.against_from;
        let may_stay = |i: &usize| from.is_none() || is_other(from, *i);
        let may_go = |i: &usize| from.is_none() || !is_other(from, *i);
        while left.len() > 1 && left.iter().any(may_go) {
            let candidates: Vec<usize> = left.iter().copied().filter(may_stay).collect();
            if candidates.is_empty() {
                return;
            }
            let (keep, by_rules) = self.choose(&candidates);
            left.retain(|i| *i != keep);
            let refused = |i: usize| self.is_refused(keep, i);
            let open = left.iter().copied().filter(|i| may_go(i) && !refused(*i));
            self.judge(keep, open);
            let others = left.iter().copied().filter(may_go);
            let others: Vec<Duplicate> = others.filter_map(|i| self.duplicate(keep, i)).collect();
            if others.is_empty() {
                continue;
            }
            let gone: HashSet<usize> = others.iter().map(|other| other.picture).collect();
            left.retain(|i| !gone.contains(i));
            let why = self.why(keep, &others, by_rules);
            groups.push(DuplicateGroup { keep, why, others });
        }
    }

    /// The image to keep, and the rules that left no other.
    fn choose(&self, candidates: &[usize]) -> (usize, Vec<Reason>) {
        let mut left = candidates.to_vec();
        let mut why = vec![];
        for rule in &self.options.keep {
            if *rule == KeepRule::Original {
                break; // tells all apart
            }
            let some = keep::narrowed(*rule, &left, self.looks, self.compared.folder_rank);
            if some.len() < left.len() {
                left = some;
                why.push(Reason::Rule(*rule));
            }
        }
        let mut best = left[0];
        // Twice, since who beats whom may go round in a circle.
        for _ in 0..2 {
            for some in left.chunks(AT_A_TIME) {
                self.judge(best, some.iter().copied());
                for i in some {
                    if *i != best && self.order(*i, best).0 == Ordering::Less {
                        best = *i;
                    }
                }
            }
        }
        (best, why)
    }

    fn why(&self, keep: usize, others: &[Duplicate], by_rules: Vec<Reason>) -> Vec<Reason> {
        if self.compared.against_from.is_some() {
            return std::iter::once(Reason::SecondFolder).chain(by_rules).collect();
        }
        if !by_rules.is_empty() {
            return by_rules;
        }
        let reasons = others.iter().take(MOST_REASONS).map(|other| self.order(keep, other.picture));
        let reasons = reasons.filter(|(order, _)| *order == Ordering::Less).map(|(_, why)| why);
        reasons.collect::<BTreeSet<Reason>>().into_iter().collect()
    }

    /// Less where the first is rather the original.
    fn order(&self, i: usize, j: usize) -> (Ordering, Reason) {
        let (Ok(a), Ok(b)) = (&self.looks[i], &self.looks[j]) else {
            return (i.cmp(&j), Reason::FirstByName);
        };
        if self.equal.first[i] == self.equal.first[j] {
            return keep::compare([i, j], [a, b], None);
        }
        match self.matched(i, j) {
            Some(Match::Copy(_, traces)) => keep::compare([i, j], [a, b], Some(&traces)),
            // No copies of each other: whoever has more to show.
            _ => (b.area().cmp(&a.area()).then(i.cmp(&j)), Reason::Larger),
        }
    }

    /// What is known of two images with other pixels, the first of which lies first; judged now,
    /// where nothing is.
    fn matched(&self, i: usize, j: usize) -> Option<Match> {
        self.judge(i, std::iter::once(j));
        let (a, b) = (self.equal.first[i], self.equal.first[j]);
        let found = self.known.borrow().get(&(a.min(b), a.max(b))).copied()?;
        found.map(|found| if a < b { found } else { found.swapped() })
    }

    /// Judges an image and others, all at once, where nothing is known of them yet.
    fn judge(&self, image: usize, others: impl Iterator<Item = usize>) {
        let first = self.equal.first[image];
        let pair = |other: usize| {
            let other = self.equal.first[other];
            (first.min(other), first.max(other))
        };
        let mut known = self.known.borrow_mut();
        let new = |pair: &(usize, usize)| pair.0 != pair.1 && !known.contains_key(pair);
        let pairs: BTreeSet<(usize, usize)> = others.map(pair).filter(new).collect();
        let (looks, above) = (self.looks, self.options.above);
        let matched = |pair: (usize, usize)| {
            let found = matches_of(&[(pair.0 as u32, pair.1 as u32)], looks, above).pop();
            (pair, found.map(|(_, found)| found))
        };
        let found: Vec<_> = pairs.into_par_iter().map(matched).collect();
        self.judged.set(self.judged.get() + found.len());
        known.extend(found);
    }

    /// Whether a person said that two images are no copies.
    fn is_refused(&self, i: usize, j: usize) -> bool {
        (self.compared.not_copies)(i, j) || (self.compared.not_copies)(j, i)
    }

    /// An image as a copy of the kept one, if it matches that.
    fn duplicate(&self, keep: usize, picture: usize) -> Option<Duplicate> {
        if self.is_refused(keep, picture) {
            return None;
        }
        if self.equal.first[keep] == self.equal.first[picture] {
            let kind = self.equal.kind(keep, picture);
            return Some(Duplicate { picture, kind, score: 1.0 });
        }
        let Some(Match::Copy(aligned, traces)) = self.matched(keep, picture) else {
            return None;
        };
        let sizes =
            [keep, picture].map(|i| self.looks[i].as_ref().ok().map(|l| l.height_and_width));
        let kind = kind_of(&aligned, &traces, sizes[0] == sizes[1]);
        Some(Duplicate { picture, kind, score: aligned.score })
    }

    /// Photographs of one scene; of copies the kept one.
    fn bursts(&self, groups: &[DuplicateGroup]) -> Vec<Vec<usize>> {
        let mut kept: Vec<usize> = (0..self.looks.len()).collect();
        for group in groups {
            group.others.iter().for_each(|other| kept[other.picture] = group.keep);
        }
        let mut sets = Sets::new(self.looks.len());
        for ((a, b), found) in self.known.borrow().iter() {
            if matches!(found, Some(Match::Burst)) {
                sets.join(kept[*a], kept[*b]);
            }
        }
        sets.groups(2)
    }
}

impl Match {
    /// With the second as the first.
    fn swapped(self) -> Match {
        match self {
            Match::Burst => Match::Burst,
            Match::Copy(aligned, traces) => Match::Copy(aligned.swapped(), traces.swapped()),
        }
    }
}

impl Aligned {
    fn swapped(self) -> Aligned {
        let orientation = self.orientation.inverse();
        Aligned {
            orientation,
            on_first: orientation.of_part(self.on_second),
            on_second: orientation.of_part(self.on_first),
            ..self
        }
    }
}

impl Traces {
    fn swapped(self) -> Traces {
        let other = |side: Option<Side>| side.map(Side::other);
        Traces {
            bordered: other(self.bordered),
            whole: other(self.whole),
            enlarged: other(self.enlarged),
            larger: other(self.larger),
            grey: other(self.grey),
            marked: other(self.marked),
            clipped: other(self.clipped),
            derived: other(self.derived),
            recompressed: other(self.recompressed),
            coarser: other(self.coarser),
        }
    }
}

/// In which way the second is a copy of the first.
fn kind_of(aligned: &Aligned, traces: &Traces, same_size: bool) -> CopyKind {
    let upright = aligned.orientation == Orientation::UPRIGHT;
    let is_part = |part: Part| part.area() < PART;
    let changed = [traces.marked, traces.clipped].contains(&Some(Side::Second));
    match () {
        () if traces.bordered == Some(Side::Second) => CopyKind::Bordered,
        () if is_part(aligned.on_first) && upright => CopyKind::Crop,
        () if is_part(aligned.on_first) => CopyKind::MirroredCrop,
        () if is_part(aligned.on_second) => CopyKind::Uncropped,
        () if !upright => aligned.orientation.kind().unwrap_or(CopyKind::Mirrored),
        () if aligned.retouched || changed => CopyKind::Retouched,
        () if same_size => CopyKind::Recompressed,
        () => CopyKind::Resized,
    }
}
