//! Which of several copies to keep: the whole picture before a crop of it, then the larger, the sharper, the older, the first by name.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use super::Look;

/// Copies of a picture are never just as sharp, and compressed ones have edges of their own (1.14 × as sharp was seen): this much more
/// counts.
const SHARPER: f32 = 1.2;

/// A rule that chooses which of several copies is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepRule {
    /// The image that the others were made from, as far as files and pixels tell.
    Original,
    /// The image that was taken or written first.
    Oldest,
    /// The image that was taken or written last.
    Newest,
    /// The image with the most pixels.
    Largest,
    /// The image with the fewest pixels.
    Smallest,
    /// The image whose folder was named first.
    FirstFolder,
    /// The image whose name is first in the alphabet.
    FirstName,
}

impl KeepRule {
    /// All rules.
    pub const ALL: [KeepRule; 7] = [
        KeepRule::Original,
        KeepRule::Oldest,
        KeepRule::Newest,
        KeepRule::Largest,
        KeepRule::Smallest,
        KeepRule::FirstFolder,
        KeepRule::FirstName,
    ];

    fn name(self) -> &'static str {
        match self {
            KeepRule::Original => "original",
            KeepRule::Oldest => "oldest",
            KeepRule::Newest => "newest",
            KeepRule::Largest => "largest",
            KeepRule::Smallest => "smallest",
            KeepRule::FirstFolder => "first-folder",
            KeepRule::FirstName => "first-name",
        }
    }
}

impl fmt::Display for KeepRule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is the name of no [`KeepRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule for which copy is kept: {all}", all = KeepRule::ALL.map(KeepRule::name).join(", "))]
pub struct UnknownKeepRule(pub String);

impl FromStr for KeepRule {
    type Err = UnknownKeepRule;

    fn from_str(name: &str) -> Result<Self, UnknownKeepRule> {
        let rule = KeepRule::ALL.into_iter().find(|rule| rule.name() == name);
        rule.ok_or_else(|| UnknownKeepRule(name.into()))
    }
}

/// What a picture has before its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is not a part of another.
    Whole,
    /// It has more pixels.
    Larger,
    /// Its edges are sharper.
    Sharper,
    /// Its file is older.
    Older,
    /// Nothing but its place in the alphabet.
    FirstByName,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reason::Whole => "the whole picture",
            Reason::Larger => "larger",
            Reason::Sharper => "sharper",
            Reason::Older => "older",
            Reason::FirstByName => "first by name",
        })
    }
}

/// The one of some pictures to keep, and what decided. There is at least one picture.
pub(super) fn choose(
    pictures: &[usize],
    looks: &[Result<Look, String>],
    is_crop: impl Fn(usize) -> bool,
) -> (usize, Vec<Reason>) {
    let mut left: Vec<(usize, Option<&Look>)> = pictures
        .iter()
        .map(|i| (*i, looks[*i].as_ref().ok()))
        .collect();
    let mut why = vec![];
    let mut narrow = |reason: Reason, stays: &dyn Fn(usize, Option<&Look>) -> bool| {
        let stay = |(i, look): &&(usize, Option<&Look>)| stays(*i, *look);
        let staying: Vec<_> = left.iter().filter(stay).copied().collect();
        if !staying.is_empty() && staying.len() < left.len() {
            left = staying;
            why.push(reason);
        }
        left.clone()
    };
    let left = narrow(Reason::Whole, &|i, _| !is_crop(i));
    let area = |look: Option<&Look>| look.map_or(0, Look::area);
    let largest = left.iter().map(|(_, look)| area(*look)).max();
    let left = narrow(Reason::Larger, &|_, look| Some(area(look)) == largest);
    let sharpness = |look: Option<&Look>| look.map_or(0.0, |l| l.sharpness);
    let sharpest = left
        .iter()
        .map(|(_, look)| sharpness(*look))
        .fold(0.0, f32::max);
    let left = narrow(Reason::Sharper, &|_, look| {
        sharpness(look) * SHARPER >= sharpest
    });
    let written = |look: Option<&Look>| -> Option<SystemTime> { look?.written };
    let oldest = left.iter().filter_map(|(_, look)| written(*look)).min();
    let left = narrow(Reason::Older, &|_, look| {
        oldest.is_some() && written(look) == oldest
    });
    let first = left[0].0;
    narrow(Reason::FirstByName, &|i, _| i == first);
    (first, why)
}
