//! Which of several copies is kept, and why.
//!
//! The original is the image that the others were made from. First counts what pixels tell surely:
//! the whole image before a part of it, an image before the same with a border, more detail before
//! less, whatever the number of pixels. Then what a camera wrote; then what pixels tell less
//! surely: colours, a text laid over the image, clipped tones, compression; then times and names.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::Look;
use super::close::{Side, Traces};

/// A rule that chooses which of several copies is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// What they are called, in this order.
    const NAMES: [&str; KeepRule::ALL.len()] =
        ["original", "oldest", "newest", "largest", "smallest", "first-folder", "first-name"];

    fn name(self) -> &'static str {
        KeepRule::NAMES[self as usize]
    }
}

impl fmt::Display for KeepRule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is the name of no [`KeepRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule for which copy is kept: {all}", all = KeepRule::NAMES.join(", "))]
pub struct UnknownKeepRule(pub String);

impl FromStr for KeepRule {
    type Err = UnknownKeepRule;

    fn from_str(name: &str) -> Result<Self, UnknownKeepRule> {
        let rule = KeepRule::ALL.into_iter().find(|rule| rule.name() == name);
        rule.ok_or_else(|| UnknownKeepRule(name.into()))
    }
}

/// What the kept image has before its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is of those that the first images are compared with, of which none is moved.
    SecondFolder,
    /// A rule of the user's chose it.
    Rule(KeepRule),
    /// It is not a part of another.
    Whole,
    /// It has no border.
    NoBorder,
    /// The other has more pixels and no more detail.
    NotEnlarged,
    /// It has more pixels, and detail in them.
    Larger,
    /// A camera's metadata.
    Camera,
    /// No other program has written to it, or earlier.
    NotEdited,
    /// It has colours.
    Coloured,
    /// None of its tones are clipped, no part is covered.
    NotClipped,
    /// No text or mark lies over it.
    Unmarked,
    /// It is not compressed again, or less.
    LessCompressed,
    /// It was taken earlier, or its file is older.
    Older,
    /// Its name is not that of a copy.
    Name,
    /// Nothing but its place in the alphabet.
    FirstByName,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reason::SecondFolder => "in the second folder",
            Reason::Rule(rule) => rule.name(),
            Reason::Whole => "the whole image",
            Reason::NoBorder => "no border",
            Reason::NotEnlarged => "not enlarged",
            Reason::Larger => "larger",
            Reason::Camera => "camera metadata",
            Reason::NotEdited => "not edited",
            Reason::Coloured => "in colour",
            Reason::Unmarked => "no text over it",
            Reason::NotClipped => "nothing clipped or covered",
            Reason::LessCompressed => "less compressed",
            Reason::Older => "older",
            Reason::Name => "not named a copy",
            Reason::FirstByName => "first by name",
        })
    }
}

/// Those of some images that a rule leaves; all where it does not tell them apart.
pub(super) fn narrowed(
    rule: KeepRule,
    images: &[usize],
    looks: &[Result<Look, String>],
    folder_rank: &dyn Fn(usize) -> usize,
) -> Vec<usize> {
    let look = |i: usize| looks[i].as_ref().ok();
    // Smaller is better.
    let oldest = |i: usize| look(i).and_then(time_of).unwrap_or(i64::MAX);
    let newest = |i: usize| look(i).and_then(time_of).map_or(i64::MAX, |time| -time);
    let area = |i: usize| look(i).map_or(0, Look::area) as i64;
    let value = |i: usize| match rule {
        KeepRule::Original => 0,
        KeepRule::Oldest => oldest(i),
        KeepRule::Newest => newest(i),
        KeepRule::Largest => -area(i),
        KeepRule::Smallest => area(i),
        KeepRule::FirstFolder => folder_rank(i) as i64,
        KeepRule::FirstName => i as i64,
    };
    let best = images.iter().map(|i| value(*i)).min();
    images.iter().copied().filter(|i| Some(value(*i)) == best).collect()
}

/// Milliseconds since 1970 when an image was taken, or else its file written.
fn time_of(look: &Look) -> Option<i64> {
    let written = || {
        let since = look.written?.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    };
    look.metadata.taken.or_else(written)
}

/// Which of two copies is the original: it is less than the other; and why. `traces` are of the
/// first and the second; none where all their pixels are the same.
pub(super) fn compare(
    [i, j]: [usize; 2],
    looks: [&Look; 2],
    traces: Option<&Traces>,
) -> (Ordering, Reason) {
    let none = Traces::default();
    let t = traces.unwrap_or(&none);
    // The side that has it comes first, or last.
    let first = |side: Option<Side>| match side {
        Some(Side::First) => Ordering::Less,
        Some(Side::Second) => Ordering::Greater,
        None => Ordering::Equal,
    };
    let last = |side: Option<Side>| first(side.map(Side::other));
    let steps: [&dyn Fn() -> (Ordering, Reason); 14] = [
        &|| (last(t.bordered), Reason::NoBorder),
        &|| (first(t.whole), Reason::Whole),
        &|| (last(t.enlarged), Reason::NotEnlarged),
        &|| (first(t.larger), Reason::Larger),
        &|| (last(t.derived).then(lossless(looks, traces)), Reason::LessCompressed),
        &|| (by(looks, |look| look.metadata.camera.is_none()), Reason::Camera),
        &|| (edited(looks), Reason::NotEdited),
        &|| (last(t.grey), Reason::Coloured),
        &|| (last(t.clipped), Reason::NotClipped),
        &|| (last(t.marked), Reason::Unmarked),
        &|| (last(t.recompressed), Reason::LessCompressed),
        &|| (older(looks), Reason::Older),
        &|| (last(t.coarser), Reason::LessCompressed),
        &|| (by(looks, is_named_copy), Reason::Name),
    ];
    let told = steps.iter().map(|step| step()).find(|(order, _)| order.is_ne());
    told.unwrap_or((i.cmp(&j), Reason::FirstByName))
}

fn by<T: Ord>(looks: [&Look; 2], value: impl Fn(&Look) -> T) -> Ordering {
    value(looks[0]).cmp(&value(looks[1]))
}

fn where_both_say<T: Ord>(looks: [&Look; 2], value: impl Fn(&Look) -> Option<T>) -> Ordering {
    match looks.map(value) {
        [Some(a), Some(b)] => a.cmp(&b),
        _ => Ordering::Equal,
    }
}

/// A file that loses nothing and has just the pixels of one that does was made from it.
fn lossless(looks: [&Look; 2], traces: Option<&Traces>) -> Ordering {
    match (traces, looks.map(|look| look.metadata.lossy)) {
        (None, [Some(true), Some(false)]) => Ordering::Less,
        (None, [Some(false), Some(true)]) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// By what a program says that wrote to the file after the camera did.
fn edited(looks: [&Look; 2]) -> Ordering {
    let by_editor = |look: &Look| look.metadata.software.as_deref().is_some_and(is_editor);
    let named = |look: &Look| look.metadata.software.is_some();
    // The size that the camera wrote is not the image's.
    let cut = |look: &Look| look.metadata.pixels.is_some() && !look.has_size_of_camera();
    let times = where_both_say(looks, |look| look.metadata.changed);
    let both_cameras = looks.iter().all(|look| look.metadata.camera.is_some());
    by(looks, by_editor).then(by(looks, cut)).then(match both_cameras {
        true => times.then(by(looks, named)),
        false => Ordering::Equal,
    })
}

/// Programs that people change images with; cameras name their own software in the same place.
fn is_editor(software: &str) -> bool {
    const EDITORS: &str = "photoshop, lightroom, gimp, snapseed, picasa, paint, imagemagick, \
        darktable, rawtherapee, affinity, pixelmator, canva, acdsee, capture one, photos, luminar, \
        irfanview, xnview, digikam, photoscape, instagram, vsco, picsart, facetune";
    let software = software.to_lowercase();
    EDITORS.split(", ").any(|editor| software.contains(editor))
}

/// When it was taken, where both say so; else when the file was written.
fn older(looks: [&Look; 2]) -> Ordering {
    let taken = where_both_say(looks, |look| look.metadata.taken);
    taken.then(where_both_say(looks, |look| look.written))
}

/// "holiday (1).jpg", "copy of holiday.jpg", "holiday - copy.jpg", "holiday edited.jpg".
fn is_named_copy(look: &Look) -> bool {
    let stem = look.path.as_ref().and_then(|path| path.file_stem());
    let Some(stem) = stem else { return false };
    let stem = stem.to_string_lossy().to_lowercase();
    let words = ["copy", "kopie", "copie", "copia", "edited", "duplicate"];
    let named = stem.split(|c: char| !c.is_alphabetic()).any(|word| words.contains(&word));
    let inside = stem.rsplit_once('(').and_then(|(_, number)| number.strip_suffix(')'));
    let numbered = inside.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    named || numbered
}

#[cfg(test)]
mod tests {
    use anchorhood_data::Picture;

    use super::*;

    fn look(change: impl Fn(&mut Look)) -> Look {
        let mut look = Look::of(&Picture::from_rgb(6, 4, vec![7; 72]).unwrap()).unwrap();
        change(&mut look);
        look
    }

    fn by_camera(change: impl Fn(&mut Look)) -> Look {
        look(|look| {
            look.metadata.camera = Some("Canon EOS 90D".into());
            look.metadata.pixels = Some([6, 4]);
            change(look);
        })
    }

    fn written_by(software: &str) -> Look {
        by_camera(|look| look.metadata.software = Some(software.into()))
    }

    fn named(name: &str) -> Look {
        look(|look| look.path = Some(name.into()))
    }

    /// Of equal pixels; the original first, and the other way round.
    #[test]
    fn metadata_and_names_tell_the_original() {
        let camera = || by_camera(|_| ());
        let changed = |when| by_camera(|look| look.metadata.changed = Some(when));
        let taken = |when| look(|look| look.metadata.taken = Some(when));
        for (original, copy, reason) in [
            (camera(), look(|_| ()), Reason::Camera),
            (camera(), written_by("GIMP 2.10.36"), Reason::NotEdited),
            (written_by("Firmware 1.1.2"), written_by("Adobe Photoshop 25.0"), Reason::NotEdited),
            // The camera wrote other pixels than there are; either way up they are its own.
            (camera(), by_camera(|l| l.metadata.pixels = Some([60, 40])), Reason::NotEdited),
            (by_camera(|l| l.metadata.pixels = Some([4, 6])), look(|_| ()), Reason::Camera),
            (changed(1), changed(2), Reason::NotEdited),
            (camera(), written_by("some program"), Reason::NotEdited),
            (taken(1), taken(2), Reason::Older),
            (named("b.png"), named("a (1).png"), Reason::Name),
        ] {
            assert_eq!(compare([1, 0], [&original, &copy], None), (Ordering::Less, reason));
            assert_eq!(compare([0, 1], [&copy, &original], None), (Ordering::Greater, reason));
        }
        // A camera counts before a time, and a time before a name.
        let early = look(|look| look.metadata.taken = Some(0));
        assert_eq!(compare([0, 1], [&camera(), &early], None).1, Reason::Camera);
        let none = compare([0, 1], [&camera(), &camera()], None);
        assert_eq!(none, (Ordering::Less, Reason::FirstByName));
    }

    #[test]
    fn names_of_copies() {
        for name in [
            "holiday (1).jpg",
            "copy of holiday.jpg",
            "holiday - Copy.jpg",
            "holiday-edited.jpg",
            "Kopie von Urlaub.jpg",
        ] {
            assert!(is_named_copy(&named(name)), "{name}");
        }
        for name in ["holiday.jpg", "holiday 1.jpg", "copyright.jpg", "(a).jpg", "().jpg", "1.jpg"]
        {
            assert!(!is_named_copy(&named(name)), "{name}");
        }
    }

    #[test]
    fn names_of_editors() {
        for name in
            ["Adobe Photoshop 25.0 (Windows)", "GIMP 2.10", "Adobe Lightroom 7.1", "Snapseed"]
        {
            assert!(is_editor(name), "{name}");
        }
        for name in ["Ver.1.00", "HDR+ 1.0.585804376", "17.1.2", "Digital Camera X-T30 Ver2.00"] {
            assert!(!is_editor(name), "{name}");
        }
    }
}
