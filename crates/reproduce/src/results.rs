//! What came of an experiment, with its evidence, and how it is kept: JSON for programs, Markdown
//! with plots for people.

use std::path::Path;

use anchorhood_report::{ReportError, Summary, pretext_svg};
use anchorhood_train::VERSION;
use anchorhood_train::evaluation::Spread;
use serde::Serialize;

use crate::record::{self, DataRecord, FinishedRun, Judged};
use crate::{Chosen, Entry, Experiment, Protocol, ReproduceError, Scale};

/// What came of one experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// What the user types.
    pub experiment: String,
    /// What it asks.
    pub title: String,
    /// Where it is in the paper.
    pub paper: String,
    /// How large it was run.
    pub scale: String,
    /// What is smaller than in the paper.
    pub smaller_than_the_paper: Vec<String>,
    /// What else has to be said.
    pub notes: Vec<String>,
    /// The version of the program that wrote this.
    pub version: String,
    /// Where the runs were trained.
    pub devices: Vec<String>,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// What all runs and judgements took, each run counted as if it had been trained for this
    /// alone.
    pub seconds: f64,
    /// What they were trained and judged on.
    pub data: Vec<DataRecord>,
    /// The table.
    pub cells: Vec<Cell>,
    /// Pictures of the attention figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<PictureRecord>,
    /// The runs.
    pub runs: Vec<FinishedRun>,
    /// What was judged after them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<JudgedRun>,
}

/// A run's features, judged once it was trained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedRun {
    /// The run.
    pub run: String,
    /// The protocol, as the file of the judgement is called.
    pub by: String,
    /// What came of it.
    #[serde(flatten)]
    pub judged: Judged,
}

/// One cell of the table. Figures are percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Its row.
    pub row: String,
    /// Its column.
    pub column: String,
    /// How it was judged.
    pub protocol: Option<String>,
    /// The number that a line is drawn over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The runs, one for each seed.
    pub runs: Vec<String>,
    /// Top-1 accuracy with each seed.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their standard deviation, where there are several.
    pub std: Option<f64>,
    /// Test pictures.
    pub pictures: Option<usize>,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// Ours less the paper's, where both are of the same data.
    pub difference: Option<f64>,
    /// Why there is none of ours.
    pub left_out: Option<String>,
}

/// A picture of the attention figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PictureRecord {
    /// Its number among the training pictures, class, and whether it is the failure.
    #[serde(flatten)]
    pub chosen: Chosen,
    /// Its strip, beside these results.
    pub file: String,
}

impl From<Chosen> for PictureRecord {
    fn from(chosen: Chosen) -> Self {
        PictureRecord { file: format!("picture-{}.png", chosen.number), chosen }
    }
}

impl Cell {
    pub(crate) fn of(entry: &Entry) -> Cell {
        Cell {
            row: entry.row.clone(),
            column: entry.column.into(),
            protocol: entry.ours.map(|(_, p)| p.describe()),
            x: entry.x,
            paper: entry.paper,
            ..Cell::default()
        }
    }

    /// Adds a seed's figure. On drawn shapes it is `comparable` with nothing in the paper.
    pub(crate) fn add(&mut self, run: &str, judged: &Judged, comparable: bool) {
        self.runs.push(run.into());
        self.values.push(100.0 * judged.top1);
        self.pictures = Some(judged.n);
        let spread = Spread::of(&self.values);
        self.mean = spread.map(|s| s.mean);
        self.std = spread.and_then(|s| s.std);
        let both = self.mean.zip(self.paper).filter(|_| comparable);
        self.difference = both.map(|(ours, theirs)| ours - theirs);
    }

    /// Ours as it is shown: mean ± standard deviation, or a dash.
    pub fn ours(&self) -> String {
        match (self.mean, self.std) {
            (Some(mean), Some(std)) => format!("{mean:.1} ± {std:.1}"),
            (Some(mean), None) => format!("{mean:.1}"),
            _ if self.left_out.is_some() => "not run".into(),
            _ => "–".into(),
        }
    }

    /// The paper's as it is shown.
    pub fn theirs(&self) -> String {
        self.paper.map_or("–".into(), |p| format!("{p:.1}"))
    }
}

/// A round, averaged over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundFigures {
    /// Which, from 0.
    pub round: usize,
    /// kNN top-1, percent.
    pub top1: f64,
    /// Consistent and inconsistent anchors; none in round 0.
    pub counts: Option<(f64, f64)>,
}

impl Results {
    pub(crate) fn of(experiment: &Experiment, scale: Scale, seeds: &[u64]) -> Results {
        let strings = |all: &[&str]| all.iter().map(|s| s.to_string()).collect();
        Results {
            experiment: experiment.name.into(),
            title: experiment.title.into(),
            paper: experiment.place.into(),
            scale: scale.name().into(),
            smaller_than_the_paper: strings(scale.smaller()),
            notes: strings(experiment.notes),
            version: VERSION.into(),
            seeds: seeds.to_vec(),
            ..Results::default()
        }
    }

    /// Adds a run and how it did by a protocol.
    pub(crate) fn add(&mut self, run: &FinishedRun, protocol: Protocol, judged: &Judged) {
        self.seconds += judged.seconds;
        if !run.is_judged_by_itself(protocol) {
            self.judged.push(JudgedRun {
                run: run.name.clone(),
                by: protocol.name(),
                judged: judged.clone(),
            });
        }
        self.add_run(run);
    }

    fn add_run(&mut self, run: &FinishedRun) {
        if self.runs.iter().any(|r| r.name == run.name) {
            return;
        }
        self.seconds += run.seconds;
        if !self.devices.contains(&run.device) {
            self.devices.push(run.device.clone());
        }
        if !self.data.contains(&run.data) {
            self.data.push(run.data.clone());
        }
        self.runs.push(run.clone());
    }

    /// Rounds of the first cell's runs, averaged over the seeds.
    pub fn rounds(&self) -> Vec<RoundFigures> {
        let names = self.cells.first().map_or(&[][..], |c| &c.runs);
        let runs = self.runs.iter().filter(|r| names.contains(&r.name));
        let all: Vec<_> = runs.flat_map(|r| &r.rounds).collect();
        let last = all.iter().map(|r| r.round).max();
        let rounds = last.map_or(0..0, |last| 0..last + 1);
        let mean = |values: Vec<f64>| Spread::of(&values).map(|s| s.mean);
        let figures = rounds.filter_map(|round| {
            let here = || all.iter().filter(move |r| r.round == round);
            let consistent = here().filter_map(|r| r.consistent.map(|n| n as f64));
            let inconsistent = here().filter_map(|r| r.inconsistent.map(|n| n as f64));
            Some(RoundFigures {
                round,
                top1: 100.0 * mean(here().filter_map(|r| r.top1).collect())?,
                counts: mean(consistent.collect()).zip(mean(inconsistent.collect())),
            })
        });
        figures.collect()
    }

    /// What the column of our figures is called.
    pub(crate) fn ours(&self) -> &'static str {
        if self.scale == Scale::Smoke.name() { "ours, on shapes" } else { "ours" }
    }

    /// Why cells were left out, each reason once.
    pub fn reasons(&self) -> Vec<&str> {
        let reasons = self.cells.iter().filter_map(|c| c.left_out.as_deref());
        crate::experiment::distinct(reasons)
    }

    /// The tasks over the epochs, of the runs that have one.
    fn tasks_svg(&self) -> Result<Option<String>, ReportError> {
        let told = self.runs.iter().filter(|run| !run.pretext.is_empty());
        let summary =
            |run: &FinishedRun| Summary { pretext: run.pretext.clone(), ..Summary::default() };
        let runs: Vec<_> = told.map(|run| (run.name.as_str(), summary(run))).collect();
        (!runs.is_empty()).then(|| pretext_svg(&runs)).transpose()
    }

    /// Writes results.json, results.md and the plots that it shows (plot-N.svg, and tasks.svg where
    /// runs have a pretext task) into a folder; the strips of pictures must lie there.
    pub fn write(&self, experiment: &Experiment, folder: &Path) -> Result<(), ReproduceError> {
        let plots = crate::plot::plots(self, experiment)?.into_iter();
        let plots = (1..).zip(plots).map(|(n, svg)| (format!("plot-{n}.svg"), svg));
        let tasks = self.tasks_svg()?.map(|svg| ("tasks.svg".into(), svg));
        let plots: Vec<(String, String)> = plots.chain(tasks).collect();
        for (name, svg) in &plots {
            record::write_bytes(&folder.join(name), svg.as_bytes())?;
        }
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        record::write(&folder.join("results.json"), self)?;
        record::write_bytes(&folder.join("results.md"), self.markdown(&names).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn differences_are_of_the_same_data_alone() {
        let entry = &find("table5").unwrap()[0].entries[0];
        let judged = |top1| Judged { top1, n: 10, ..Judged::default() };
        let mut cell = Cell::of(entry);
        assert_eq!((cell.ours(), cell.theirs()), ("–".into(), "85.7".into()));
        cell.add("a", &judged(0.80), true);
        cell.add("b", &judged(0.82), true);
        assert_eq!(cell.ours(), "81.0 ± 1.4");
        assert!((cell.difference.unwrap() + 4.7).abs() < 1e-9);
        cell.add("c", &judged(0.10), false);
        assert_eq!(cell.difference, None);
        cell = Cell::of(entry);
        cell.left_out = Some("no data".into());
        assert_eq!(cell.ours(), "not run");
    }
}
