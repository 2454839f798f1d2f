//! Are the sub-folders of a folder classes? Decided by looking at their names and at how many there
//! are.
//!
//! A folder of photographs is sorted by days, by cameras or by journeys as often as by what
//! pictures show, and a label that is none makes every figure about it meaningless. So sub-folders
//! are classes unless something speaks against it, and what was decided is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::files::archive;
use crate::files::scan::{Found, first_folder};

/// Whether sub-folders are taken for classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelChoice {
    /// Where they look like classes.
    #[default]
    Auto,
    /// They are.
    Folders,
    /// They are not.
    None,
}

/// What was decided about the sub-folders of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderLabels {
    /// They are classes: so many.
    Classes(usize),
    /// A list or files beside the pictures tell the classes: so many.
    Told(usize),
    /// They tell those of some pictures alone.
    ToldOfSome {
        /// How many.
        told: usize,
        /// All pictures.
        pictures: usize,
    },
    /// They are archives, such as this one.
    Archives(String),
    /// Labels are not wanted.
    NotWanted,
    /// There are fewer than two with pictures.
    TooFew,
    /// So many pictures lie beside them.
    LoosePictures(usize),
    /// Their names are dates, such as this one.
    Dates(String),
    /// Their names are a camera's, such as this one.
    Camera(String),
    /// They are sorted into folders again, such as this one.
    Nested(String),
    /// They are too many for so few pictures.
    TooMany {
        /// How many.
        folders: usize,
        /// Pictures in all of them.
        pictures: usize,
    },
}

impl fmt::Display for FolderLabels {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        use FolderLabels::*;
        match self {
            Classes(n) => write!(f, "labels: the {n} sub-folders are taken for classes"),
            Told(n) => write!(f, "labels: {n} classes, as is told beside the pictures"),
            ToldOfSome { told, pictures } => {
                write!(f, "no labels: only {told} of {pictures} pictures have one beside them")
            }
            Archives(name) => write!(f, "no labels: sub-folders are archives ({name})"),
            NotWanted => write!(f, "no labels, as was asked for"),
            TooFew => write!(f, "no labels: there are no sub-folders to tell apart"),
            LoosePictures(n) => write!(f, "no labels: {n} pictures lie beside the sub-folders"),
            Dates(name) => write!(f, "no labels: sub-folders are named by dates ({name})"),
            Camera(name) => write!(f, "no labels: sub-folders are a camera's ({name})"),
            Nested(name) => write!(f, "no labels: sub-folders are divided again ({name})"),
            TooMany { folders, pictures } => write!(
                f,
                "no labels: {folders} sub-folders are too many classes for {pictures} pictures"
            ),
        }
    }
}

/// More folders than this need three pictures each to be classes.
const FEW: usize = 20;

/// What is decided of the files found in a folder called `root`.
pub(super) fn decide(found: &Found, root: &str, choice: LabelChoice) -> FolderLabels {
    let (files, told) = (&found.candidates, &found.told);
    match choice {
        LabelChoice::None => return FolderLabels::NotWanted,
        LabelChoice::Auto if !told.is_empty() => {
            let classes: BTreeSet<&String> = told.values().collect();
            return match told.len() == files.len() {
                true => FolderLabels::Told(classes.len()),
                false => FolderLabels::ToldOfSome { told: told.len(), pictures: files.len() },
            };
        }
        LabelChoice::Auto | LabelChoice::Folders => {}
    }
    let folders: BTreeSet<&str> = files.iter().filter_map(|f| first_folder(f)).collect();
    let loose = files.iter().filter(|f| first_folder(f).is_none()).count();
    let against = match choice {
        _ if folders.len() < 2 => Some(FolderLabels::TooFew),
        _ if loose > 0 => Some(FolderLabels::LoosePictures(loose)),
        LabelChoice::Auto => against(files, &folders, root),
        LabelChoice::Folders | LabelChoice::None => None,
    };
    against.unwrap_or(FolderLabels::Classes(folders.len()))
}

/// What speaks against classes.
fn against(files: &[String], folders: &BTreeSet<&str>, root: &str) -> Option<FolderLabels> {
    let most = |is: &dyn Fn(&str) -> bool| {
        let of_kind = folders.iter().filter(|name| is(name)).count();
        let example = folders.iter().find(|name| is(name))?;
        (of_kind * 4 >= folders.len() * 3).then(|| example.to_string())
    };
    if let Some(name) = most(&|name| archive::is_archive(name.as_ref())) {
        return Some(FolderLabels::Archives(name));
    }
    if let Some(name) = most(&is_date) {
        return Some(FolderLabels::Dates(name));
    }
    if let Some(name) = most(&is_month).filter(|_| is_date(root)) {
        return Some(FolderLabels::Dates(format!("{root}/{name}")));
    }
    if let Some(name) = most(&is_cameras) {
        return Some(FolderLabels::Camera(name));
    }
    if let Some(name) = divided_again(files, folders.len()) {
        return Some(FolderLabels::Nested(name));
    }
    let (folders, pictures) = (folders.len(), files.len());
    (folders > FEW && pictures < 3 * folders).then_some(FolderLabels::TooMany { folders, pictures })
}

/// A year, alone or with what follows it: `2019`, `2019-05`, `20190512`, `2019_05_12 Italy`.
fn is_date(name: &str) -> bool {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let number = |range: std::ops::Range<usize>| name[range].parse::<u32>().unwrap_or(0);
    let year = || (1900..2100).contains(&number(0..4));
    let month = || (1..=12).contains(&number(4..6));
    match digits {
        4 => year(),
        6 => year() && month(),
        8 => year() && month() && (1..=31).contains(&number(6..8)),
        _ => false,
    }
}

/// `5`, `05`, `05 May`.
fn is_month(name: &str) -> bool {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && (1..=12).contains(&name[..digits].parse().unwrap_or(0_u32))
}

/// As cameras number their folders: `100CANON`, `101APPLE`, `102_PANA`.
fn is_cameras(name: &str) -> bool {
    let (digits, rest) = name.split_at_checked(3).unwrap_or((name, ""));
    let capital = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    digits.bytes().all(|b| b.is_ascii_digit())
        && !digits.starts_with('0')
        && rest.len() == 5
        && rest.bytes().all(capital)
        && rest.bytes().any(|b| b.is_ascii_uppercase())
}

/// An example of a folder in a sub-folder, where most pictures lie in folders that no more than
/// half of the sub-folders have: `n01/images` and `n02/images` are two classes, `Italy/Rome` and
/// `France/Paris` are places.
fn divided_again(files: &[String], folders: usize) -> Option<String> {
    let inner = |file: &String| {
        let mut parts = file.split('/');
        let (first, second, third) = (parts.next()?, parts.next()?, parts.next());
        third.map(|_| (first.to_string(), second.to_string()))
    };
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (first, second) in files.iter().filter_map(inner) {
        seen.entry(second).or_default().insert(first);
    }
    let own = |(_, second): &(String, String)| seen[second].len() * 2 <= folders;
    let divided = files.iter().filter_map(inner).filter(own).count();
    let example = files.iter().filter_map(inner).find(own)?;
    (divided * 2 > files.len()).then(|| format!("{}/{}", example.0, example.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Found {
        Found { candidates: names.iter().map(|n| n.to_string()).collect(), ..Found::default() }
    }

    fn decided(root: &str, names: &[&str]) -> FolderLabels {
        decide(&found(names), root, LabelChoice::Auto)
    }

    #[test]
    fn what_looks_like_classes() {
        for names in [
            &["cat/1.jpg", "dog/1.jpg"][..],
            &["0/a.jpg", "1/b.jpg", "9/c.jpg"],
            &["01/a.jpg", "02/b.jpg"],
            &["n01440764/images/a.jpg", "n01443537/images/b.jpg"],
            &["001.Albatross/1.jpg", "002.Bunting/1.jpg"],
            &["cat/1.jpg", "dog/1.jpg", "2019/1.jpg"],
            &["0000045/1.jpg", "0000099/1.jpg"],
        ] {
            let folders = names.len();
            assert_eq!(decided("pictures", names), FolderLabels::Classes(folders));
        }
    }

    #[test]
    fn what_does_not() {
        let dates = [
            &["2018/05/a.jpg", "2019/01/b.jpg"][..],
            &["2019-05-12/a.jpg", "2019-05-13 Rome/b.jpg"],
            &["20190512/a.jpg", "20200101/b.jpg"],
        ];
        for names in dates {
            let said = decided("pictures", names);
            assert!(matches!(said, FolderLabels::Dates(_)), "{said}");
        }
        let months = ["05/a.jpg", "06/b.jpg"];
        assert_eq!(
            decided("2019", &months).to_string(),
            "no labels: sub-folders are named by dates (2019/05)"
        );
        let camera = decided("DCIM", &["100CANON/1.jpg", "101CANON/2.jpg"]);
        assert_eq!(camera, FolderLabels::Camera("100CANON".into()));
        let places = ["France/Paris/1.jpg", "Italy/Rome/1.jpg", "Italy/Milan/2.jpg"];
        assert_eq!(decided("x", &places), FolderLabels::Nested("France/Paris".into()));
        assert_eq!(decided("x", &["a/1.jpg", "a/2.jpg"]), FolderLabels::TooFew);
        assert_eq!(decided("x", &["a/1.jpg", "b/2.jpg", "c.jpg"]), FolderLabels::LoosePictures(1));
        let shards = ["a.tar/1.jpg", "b.tar/2.jpg"];
        assert_eq!(decided("x", &shards), FolderLabels::Archives("a.tar".into()));
        let many: Vec<String> = (0..30).map(|i| format!("person {i}/1.jpg")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (folders, pictures) = (30, 30);
        assert_eq!(decided("x", &many), FolderLabels::TooMany { folders, pictures });
    }

    #[test]
    fn who_says_so_is_heeded() {
        let mut found = found(&["2018/a.jpg", "2019/b.jpg"]);
        let folders = FolderLabels::Classes(2);
        assert_eq!(decide(&found, "x", LabelChoice::Folders), folders);
        let none = FolderLabels::NotWanted;
        assert_eq!(decide(&found, "x", LabelChoice::None), none);
        found.told.insert("2018/a.jpg".into(), "cat".into());
        let (told, pictures) = (1, 2);
        let some = FolderLabels::ToldOfSome { told, pictures };
        assert_eq!(decide(&found, "x", LabelChoice::Auto), some);
        found.told.insert("2019/b.jpg".into(), "dog".into());
        assert_eq!(decide(&found, "x", LabelChoice::Auto), FolderLabels::Told(2));
        assert_eq!(decide(&found, "x", LabelChoice::Folders), folders);
    }
}
