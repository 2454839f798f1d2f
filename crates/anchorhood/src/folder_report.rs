//! What was found in a folder beside pictures, and what was decided about its sub-folders, in
//! words.

use anchorhood_data::{FolderLabels, FolderReport, PassedOver};
use anchorhood_train::Event;

/// The words for a report: warnings of what may be missed, then notes of what is good to know.
pub fn folder_events(report: &FolderReport) -> Vec<Event> {
    let (shows, others): (Vec<&PassedOver>, _) =
        report.passed_over.iter().partition(|kind| kind.why.is_some());
    let warnings = shows.into_iter().map(|kind| Event::warning(kind.to_string()));
    let notes = [no_pictures(&others), report.labels.as_ref().and_then(labels)];
    warnings.chain(notes.into_iter().flatten().map(Event::note)).collect()
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
        Undecided(_) => None,
        Told(_) | Classes(_) => Some(format!("{decided} (not with --labels none)")),
        Impossible(_) => Some(decided.to_string()),
        Unlikely(_) => Some(format!("{decided}; --labels folders makes them classes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_something_is_warned_of_and_the_rest_noted() {
        let kind = |ending: &str, files, why| PassedOver { ending: ending.into(), files, why };
        let report = FolderReport {
            labels: Some(FolderLabels::Unlikely("sub-folders are named by dates (2019)".into())),
            passed_over: vec![
                kind(".heic", 312, Some("so it is")),
                kind(".txt", 2, None),
                kind("", 1, None),
            ],
        };
        assert_eq!(
            folder_events(&report),
            [
                Event::warning("312 .heic skipped: so it is"),
                Event::note("files that are no pictures: 2 .txt, 1 without an ending"),
                Event::note(
                    "no labels: sub-folders are named by dates (2019); --labels folders makes them \
                     classes"
                ),
            ]
        );
        assert_eq!(folder_events(&FolderReport::default()), []);
    }
}
