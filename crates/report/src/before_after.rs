//! What did fine-tuning change? The model before and after, raw pixels beside them, in one table:
//! for the terminal and for the page.

use anchorhood_train::{Evaluated, LabelFreeEvaluated, Subject};

use crate::Summary;
use crate::table::{aligned, or_dash, percent};

impl Summary {
    /// The table for a terminal, without a newline at its end; none of a run that began from
    /// nothing.
    pub fn before_and_after(&self) -> Option<String> {
        self.before_and_after_rows().map(|rows| aligned(&rows))
    }

    pub(crate) fn before_and_after_rows(&self) -> Option<Vec<Vec<String>>> {
        let before = |e: &LabelFreeEvaluated| e.subject == Subject::Before;
        let after = self.model().filter(|_| self.label_free.iter().any(before))?;
        let subjects = [Subject::RawPixels, Subject::Before, after.subject];
        let names = ["raw pixels", "before", "after"];
        let labels = self.has_accuracy();
        let mut rows = vec![header(labels)];
        for (name, subject) in names.into_iter().zip(subjects) {
            let mut row = vec![name.to_string()];
            if labels {
                row.push(or_dash(self.top1_of(subject).map(percent)));
            }
            let mut judged = self.label_free.iter().filter(|e| e.subject == subject);
            row.extend(cells(judged.next_back()));
            rows.push(row);
        }
        Some(rows)
    }

    /// kNN accuracy of a floor, of the model before, or of the trained network; where that epoch
    /// was not judged, of the last that was.
    pub(crate) fn top1_of(&self, subject: Subject) -> Option<f64> {
        let of = |e: &&Evaluated| e.subject == subject;
        if crate::summary::floor_name(subject).is_some() {
            return self.floors.iter().find(of).map(|e| e.accuracy.top1);
        }
        let judged = self.evaluations.iter().rfind(of);
        judged.or(self.evaluations.last()).map(|e| e.accuracy.top1)
    }
}

fn header(labels: bool) -> Vec<String> {
    let knn = labels.then_some("kNN top-1");
    let rest = ["without labels", "found", "shared", "effective rank"];
    let all = [""].into_iter().chain(knn).chain(rest);
    all.map(String::from).collect()
}

fn cells(e: Option<&LabelFreeEvaluated>) -> [String; 4] {
    [
        or_dash(e.map(|e| percent(e.figures.score))),
        or_dash(e.map(|e| percent(e.figures.found))),
        or_dash(e.map(|e| percent(e.figures.agreement))),
        or_dash(e.map(|e| format!("{:.1}", e.figures.effective_rank))),
    ]
}

#[cfg(test)]
mod tests {
    use crate::Summary;
    use crate::summary::tests::{example, fine_tuned};

    #[test]
    fn before_and_after_in_one_table() {
        let expected = "            kNN top-1  without labels  found  shared  effective rank
────────────────────────────────────────────────────────────────────
raw pixels      20.0%           10.0%  10.0%   10.0%            20.0
before          25.0%           12.5%  12.5%   12.5%            20.0
after           70.0%           35.0%  35.0%   35.0%            20.0";
        let summary = Summary::of(&fine_tuned(true));
        assert_eq!(summary.before_and_after().unwrap(), expected);
        let page = crate::table::html(&summary.before_and_after_rows().unwrap()).into_string();
        assert!(page.contains("<td>before</td><td>25.0%</td><td>12.5%</td>"));
        let blind = Summary::of(&fine_tuned(false)).before_and_after().unwrap();
        assert!(!blind.contains("kNN") && blind.contains("after"), "{blind}");
    }

    #[test]
    fn a_run_from_nothing_has_no_such_table() {
        assert_eq!(Summary::of(&example(true)).before_and_after(), None);
    }
}
