//! What the runs of an experiment took, and how well each did its own pretext task in the end.

use anchorhood_report::{Summary, pretext_svg};
use anchorhood_train::{Event, PretextShare};

use crate::record::FinishedRun;
use crate::{ReproduceError, Results};

/// What a row says: the run's name, its minutes, and its task.
pub(crate) const COLUMNS: [&str; 3] = ["run", "minutes", "its own task, %"];

impl Results {
    /// A row for each run that was trained.
    pub(crate) fn runs_table(&self) -> Vec<[String; 3]> {
        let trained = self.runs.iter().filter(|run| run.seconds > 0.0);
        let row = |run: &FinishedRun| {
            let minutes = format!("{:.1}", run.seconds / 60.0);
            [run.name.clone(), minutes, task(run)]
        };
        trained.map(row).collect()
    }

    /// The tasks over the epochs, of the runs that have one.
    pub(crate) fn tasks_svg(&self) -> Result<Option<String>, ReproduceError> {
        let told = self.runs.iter().filter(|run| !run.pretext.is_empty());
        let summary = |run: &FinishedRun| {
            let events = run.pretext.iter().cloned().map(Event::Pretext);
            Summary::of(&events.collect::<Vec<_>>())
        };
        let runs: Vec<_> = told.map(|run| (run.name.as_str(), summary(run))).collect();
        match runs.is_empty() {
            true => Ok(None),
            false => Ok(Some(pretext_svg(&runs)?)),
        }
    }
}

/// The figures of a run's task after its last epoch, with what guessing would reach.
fn task(run: &FinishedRun) -> String {
    let Some(last) = run.pretext.last() else {
        return "–".into();
    };
    let figure = |f: &PretextShare| {
        let chance = f
            .chance
            .map_or(String::new(), |chance| format!(" (by guessing {:.1})", 100.0 * chance));
        format!("{} {:.1}{chance}", f.name, 100.0 * f.share)
    };
    let figures: Vec<String> = last.figures.iter().map(figure).collect();
    figures.join(", ")
}
