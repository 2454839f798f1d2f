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
    /// There was nothing to decide: labels are not wanted, or fewer than two have pictures.
    Undecided(&'static str),
    /// They cannot be classes, for this reason.
    Impossible(String),
    /// They do not look like classes, for this reason; whoever knows better may say so.
    Unlikely(String),
}

impl fmt::Display for FolderLabels {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        use FolderLabels::*;
        match self {
            Classes(n) => write!(f, "labels: the {n} sub-folders are taken for classes"),
            Told(n) => write!(f, "labels: {n} classes, as is told beside the pictures"),
            Undecided(why) => write!(f, "no labels{why}"),
            Impossible(why) | Unlikely(why) => write!(f, "no labels: {why}"),
        }
    }
}

/// More folders than this need three pictures each to be classes.
const FEW: usize = 20;

/// What is decided of the files found in a folder called `root`.
pub(super) fn decide(found: &Found, root: &str, choice: LabelChoice) -> FolderLabels {
    let (files, told) = (&found.candidates, &found.told);
    match choice {
        LabelChoice::None => return FolderLabels::Undecided(", as was asked for"),
        LabelChoice::Auto if told.len() == files.len() && !told.is_empty() => {
            return FolderLabels::Told(told.values().collect::<BTreeSet<_>>().len());
        }
        LabelChoice::Auto if !told.is_empty() => {
            let (told, pictures) = (told.len(), files.len());
            let only = format!("only {told} of {pictures} pictures have one beside them");
            return FolderLabels::Impossible(only);
        }
        LabelChoice::Auto | LabelChoice::Folders => {}
    }
    let folders: BTreeSet<&str> = files.iter().filter_map(|f| first_folder(f)).collect();
    if folders.len() < 2 {
        return FolderLabels::Undecided(": there are no sub-folders to tell apart");
    }
    let loose = files.iter().filter(|f| first_folder(f).is_none()).count();
    if loose > 0 {
        return FolderLabels::Impossible(format!("{loose} pictures lie beside the sub-folders"));
    }
    let against = match choice {
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
        return Some(FolderLabels::Impossible(format!("sub-folders are archives ({name})")));
    }
    let months = || most(&is_month).filter(|_| is_date(root)).map(|name| format!("{root}/{name}"));
    let unlikely = if let Some(name) = most(&is_date).or_else(months) {
        format!("sub-folders are named by dates ({name})")
    } else if let Some(name) = most(&is_cameras) {
        format!("sub-folders are a camera's ({name})")
    } else if let Some(name) = divided_again(files, folders.len()) {
        format!("sub-folders are divided again ({name})")
    } else if folders.len() > FEW && files.len() < 3 * folders.len() {
        let (folders, pictures) = (folders.len(), files.len());
        format!("{folders} sub-folders are too many classes for {pictures} pictures")
    } else {
        return None;
    };
    Some(FolderLabels::Unlikely(unlikely))
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
        let many: Vec<String> = (0..30).map(|i| format!("person {i}/1.jpg")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (root, names, why) in [
            (
                "x",
                &["2018/05/a.jpg", "2019/01/b.jpg"][..],
                ": sub-folders are named by dates (2018)",
            ),
            (
                "x",
                &["2019-05-12/a.jpg", "2019-05-13 Rome/b.jpg"],
                ": sub-folders are named by dates",
            ),
            ("x", &["20190512/a.jpg", "20200101/b.jpg"], ": sub-folders are named by dates"),
            ("2019", &["05/a.jpg", "06/b.jpg"], ": sub-folders are named by dates (2019/05)"),
            (
                "DCIM",
                &["100CANON/1.jpg", "101CANON/2.jpg"],
                ": sub-folders are a camera's (100CANON)",
            ),
            (
                "x",
                &["France/Paris/1.jpg", "Italy/Rome/1.jpg", "Italy/Milan/2.jpg"],
                ": sub-folders are divided again (France/Paris)",
            ),
            ("x", &["a/1.jpg", "a/2.jpg"], ": there are no sub-folders"),
            ("x", &["a/1.jpg", "b/2.jpg", "c.jpg"], ": 1 pictures lie beside"),
            ("x", &["a.tar/1.jpg", "b.tar/2.jpg"], ": sub-folders are archives (a.tar)"),
            ("x", &many, ": 30 sub-folders are too many classes for 30 pictures"),
        ] {
            let said = decided(root, names).to_string();
            assert!(said.starts_with(&format!("no labels{why}")), "{said}");
        }
    }

    #[test]
    fn who_says_so_is_heeded() {
        let mut found = found(&["2018/a.jpg", "2019/b.jpg"]);
        let folders = FolderLabels::Classes(2);
        assert_eq!(decide(&found, "x", LabelChoice::Folders), folders);
        let none = decide(&found, "x", LabelChoice::None);
        assert_eq!(none.to_string(), "no labels, as was asked for");
        found.told.insert("2018/a.jpg".into(), "cat".into());
        let some = decide(&found, "x", LabelChoice::Auto);
        assert!(some.to_string().contains("only 1 of 2 pictures"), "{some}");
        found.told.insert("2019/b.jpg".into(), "dog".into());
        assert_eq!(decide(&found, "x", LabelChoice::Auto), FolderLabels::Told(2));
        assert_eq!(decide(&found, "x", LabelChoice::Folders), folders);
    }
}
