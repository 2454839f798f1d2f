//! What was found in a folder beside pictures, and what was decided about its sub-folders, in
//! words.

use anchorhood::data::{FolderLabels, FolderReport, PassedOver};

/// The words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What may be missed.
    pub warnings: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
}

/// The words for a report.
pub fn told(report: &FolderReport) -> Told {
    let (shows, others): (Vec<&PassedOver>, _) =
        report.passed_over.iter().partition(|kind| kind.why.is_some());
    Told {
        warnings: shows.into_iter().map(PassedOver::to_string).collect(),
        notes: [no_pictures(&others), report.labels.as_ref().and_then(labels)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// Endings that are named; more only make the line longer.
const NAMED: usize = 5;

fn no_pictures(kinds: &[&PassedOver]) -> Option<String> {
    let files: usize = kinds.iter().map(|kind| kind.files).sum();
    let ending = |kind: &&PassedOver| match kind.ending.as_str() {
        "" => format!("{} without an ending", kind.files),
        ending => format!("{} {ending}", kind.files),
    };
    let named: Vec<String> = kinds.iter().take(NAMED).map(ending).collect();
    let more = if kinds.len() > NAMED { ", …" } else { "" };
    (files > 0).then(|| format!("files that are no pictures: {}{more}", named.join(", ")))
}

/// Where there was something to decide.
fn labels(decided: &FolderLabels) -> Option<String> {
    use FolderLabels::*;
    match decided {
        NotWanted | TooFew => None,
        Told(_) | Classes(_) => Some(format!("{decided} (not with --labels none)")),
        ToldOfSome { .. } | Archives(_) | LoosePictures(_) => Some(decided.to_string()),
        Dates(_) | Camera(_) | Nested(_) | TooMany { .. } => {
            Some(format!("{decided}; --labels folders makes them classes"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_something_is_warned_of_and_the_rest_noted() {
        let kind = |ending: &str, files, why| PassedOver { ending: ending.into(), files, why };
        let report = FolderReport {
            labels: Some(FolderLabels::Dates("2019".into())),
            passed_over: vec![
                kind(".heic", 312, Some("so it is")),
                kind(".txt", 2, None),
                kind("", 1, None),
            ],
        };
        let told = told(&report);
        assert_eq!(told.warnings, ["312 .heic skipped: so it is"]);
        assert_eq!(
            told.notes,
            [
                "files that are no pictures: 2 .txt, 1 without an ending",
                "no labels: sub-folders are named by dates (2019); --labels folders makes them \
                 classes"
            ]
        );
        assert_eq!(super::told(&FolderReport::default()), Told::default());
    }
}
