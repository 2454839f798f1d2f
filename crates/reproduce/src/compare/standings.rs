//! What came of a comparison: a line for each method, the best first, and every run that it is made
//! of.

use std::fmt;
use std::path::Path;

use anchorhood_report::{Summary, accuracy_over_seconds, aligned, duration, grouped, markdown};
use anchorhood_train::evaluation::Spread;
use anchorhood_train::{Accuracy, Event, RunConfig, Subject};
use serde::Serialize;

use super::Allowance;
use crate::experiment::distinct;
use crate::{ReproduceError, plot, record};

/// A run of a method, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contestant {
    /// The run's name, and that of its folder.
    pub run: String,
    /// The method.
    pub method: String,
    /// Decides every random draw.
    pub seed: u64,
    /// The program's version.
    pub version: String,
    /// The device, in words.
    pub device: String,
    /// The data set.
    pub data: String,
    /// Pictures it was trained on.
    pub pictures: usize,
    /// The network, in words.
    pub network: String,
    /// Epochs, over all rounds.
    pub epochs: usize,
    /// Views of every picture, forwards and backwards.
    pub view_epochs: usize,
    /// How long it trained and was judged, all parts of the run together.
    pub seconds: f64,
    /// kNN after the last epoch.
    pub last: Accuracy,
    /// kNN of raw pixels.
    pub raw_pixels: Accuracy,
    /// kNN of the network as it was drawn, at the layer that is judged.
    pub untrained: Accuracy,
    /// Whether it was judged on training pictures held out.
    pub validation: bool,
    /// Seconds, and kNN's share then.
    pub curve: Vec<(f64, f64)>,
}

impl Contestant {
    /// From what a run told, if it has ended and was judged.
    pub(super) fn of(run: &str, config: &RunConfig, events: &[Event]) -> Option<Contestant> {
        let summary = Summary::of(events);
        let (started, ended) = (summary.started?, summary.ended?);
        let floor = |of| Some(summary.floors.iter().find(|f| f.subject == of)?.accuracy);
        Some(Contestant {
            run: run.into(),
            method: config.method.name.to_string(),
            seed: config.seed,
            version: started.version,
            device: started.device,
            data: started.data,
            pictures: started.pictures,
            network: started.network,
            epochs: (config.training.rounds + 1) * config.training.epochs,
            view_epochs: config.view_epochs(),
            seconds: ended.seconds,
            last: ended.last?,
            raw_pixels: floor(Subject::RawPixels)?,
            untrained: floor(Subject::Untrained)?,
            validation: started.validation,
            curve: accuracy_over_seconds(events),
        })
    }
}

/// A method over all its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodLine {
    /// The method.
    pub method: String,
    /// Its epochs, over all rounds; the mean over the seeds, as are the other figures.
    pub epochs: f64,
    /// Its view-epochs.
    pub view_epochs: f64,
    /// Its seconds.
    pub seconds: f64,
    /// kNN after the last epoch, a share.
    pub top1: f64,
    /// Standard deviation over the seeds, where there are several.
    pub std: Option<f64>,
    /// By how much that is more than raw pixels'.
    pub over_raw_pixels: f64,
    /// By how much it is more than the untrained network's.
    pub over_untrained: f64,
}

/// Methods beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standings {
    /// What each was given.
    pub allowance: Allowance,
    /// The methods, the best first.
    pub methods: Vec<MethodLine>,
    /// The runs, in the order they were asked for.
    pub runs: Vec<Contestant>,
}

impl Standings {
    pub(super) fn of(allowance: Allowance, runs: Vec<Contestant>) -> Standings {
        let names = distinct(runs.iter().map(|run| run.method.as_str()));
        let line = |method: &&str| MethodLine::of(method, &runs);
        let mut methods: Vec<MethodLine> = names.iter().filter_map(line).collect();
        methods.sort_by(|a, b| b.top1.total_cmp(&a.top1));
        Standings { allowance, methods, runs }
    }

    /// The table for a terminal.
    pub fn table(&self) -> String {
        aligned(&self.rows())
    }

    /// The whole document.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Methods compared, {} for each\n\n", self.allowance);
        text.push_str(&markdown(&self.rows()));
        text.push_str("\n![kNN over seconds](comparison.svg)\n\n");
        for line in self.evidence() {
            text.push_str(&format!("- {line}\n"));
        }
        text
    }

    /// The header, a row for each method, and raw pixels last.
    fn rows(&self) -> Vec<Vec<String>> {
        let header = [
            "method",
            "epochs",
            "view-epochs",
            "seconds",
            "kNN top-1",
            "over raw pixels",
            "over untrained",
        ];
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(self.methods.iter().map(MethodLine::row));
        if let Some(raw) = self.raw_pixels() {
            let mut row = vec!["raw pixels".to_string()];
            row.resize(header.len(), "–".into());
            row[4] = format!("{:.1}%", 100.0 * raw);
            rows.push(row);
        }
        rows
    }

    /// The share that raw pixels reach, over all seeds.
    pub(crate) fn raw_pixels(&self) -> Option<f64> {
        mean(self.runs.iter().map(|run| run.raw_pixels.top1))
    }

    /// What the figures stand on.
    fn evidence(&self) -> Vec<String> {
        let said = |run: &Contestant| {
            format!(
                "{}: {} pictures, {}; kNN with k = {}, τ = {} on {} {} pictures; version {}; {}",
                run.data,
                grouped(run.pictures),
                run.network,
                run.last.k,
                run.last.temperature,
                grouped(run.last.n),
                if run.validation { "validation" } else { "test" },
                run.version,
                run.device
            )
        };
        let all: Vec<String> = self.runs.iter().map(said).collect();
        let mut all: Vec<String> =
            distinct(all.iter().map(String::as_str)).into_iter().map(String::from).collect();
        let took = self.runs.iter().map(|run| run.seconds).sum();
        all.push(format!(
            "{} runs, {} in all; kNN is that of the last epoch, on features recomputed at the \
             layer that each method embeds",
            self.runs.len(),
            duration(took)
        ));
        all
    }

    /// Writes comparison.json, .md and .svg into a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<(), ReproduceError> {
        let file = |ending: &str| folder.join(format!("comparison.{ending}"));
        record::write(&file("json"), self)?;
        record::write_bytes(&file("md"), self.markdown().as_bytes())?;
        record::write_bytes(&file("svg"), plot::seconds(self)?.as_bytes())
    }
}

impl MethodLine {
    fn of(method: &str, runs: &[Contestant]) -> Option<MethodLine> {
        let own = || runs.iter().filter(move |run| run.method == method);
        let spread = Spread::of(&own().map(|run| run.last.top1).collect::<Vec<_>>())?;
        let over = |floor: fn(&Contestant) -> f64| mean(own().map(|r| r.last.top1 - floor(r)));
        Some(MethodLine {
            method: method.into(),
            epochs: mean(own().map(|run| run.epochs as f64))?,
            view_epochs: mean(own().map(|run| run.view_epochs as f64))?,
            seconds: mean(own().map(|run| run.seconds))?,
            top1: spread.mean,
            std: spread.std,
            over_raw_pixels: over(|run| run.raw_pixels.top1)?,
            over_untrained: over(|run| run.untrained.top1)?,
        })
    }

    fn row(&self) -> Vec<String> {
        let deviation = self.std.map(|std| format!(" ± {:.1}", 100.0 * std));
        vec![
            self.method.clone(),
            format!("{:.0}", self.epochs),
            format!("{:.0}", self.view_epochs),
            format!("{:.1}", self.seconds),
            format!("{:.1}%{}", 100.0 * self.top1, deviation.unwrap_or_default()),
            format!("{:+.1}", 100.0 * self.over_raw_pixels),
            format!("{:+.1}", 100.0 * self.over_untrained),
        ]
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(&values.collect::<Vec<_>>()).map(|spread| spread.mean)
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Allowance::Minutes(1.0) => write!(f, "1 minute"),
            Allowance::Minutes(minutes) => write!(f, "{minutes} minutes"),
            Allowance::ViewEpochs(1) => write!(f, "1 view-epoch"),
            Allowance::ViewEpochs(views) => write!(f, "{views} view-epochs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accuracy(top1: f64) -> Accuracy {
        Accuracy { top1, top5: None, n: 1000, k: 200, temperature: 0.07 }
    }

    fn run(method: &str, seed: u64, top1: f64) -> Contestant {
        Contestant {
            run: format!("{method}-{seed}"),
            method: method.into(),
            seed,
            version: "0".into(),
            device: "a device".into(),
            data: "<shapes>".into(),
            pictures: 5000,
            network: "resnet18 width 4".into(),
            epochs: 10,
            view_epochs: 20,
            seconds: 61.0,
            last: accuracy(top1),
            raw_pixels: accuracy(0.2),
            untrained: accuracy(0.1),
            validation: false,
            curve: vec![(1.0, 0.1), (60.0, top1)],
        }
    }

    #[test]
    fn the_best_is_first_and_seeds_are_averaged() {
        let runs =
            vec![run("and", 0, 0.5), run("byol", 0, 0.6), run("and", 1, 0.9), run("byol", 1, 0.6)];
        let standings = Standings::of(Allowance::Minutes(1.0), runs);
        let expected = "\
method      epochs  view-epochs  seconds     kNN top-1  over raw pixels  over untrained
───────────────────────────────────────────────────────────────────────────────────────
and             10           20     61.0  70.0% ± 28.3            +50.0           +60.0
byol            10           20     61.0   60.0% ± 0.0            +40.0           +50.0
raw pixels       –            –        –         20.0%                –               –";
        assert_eq!(standings.table(), expected);
        let text = standings.markdown();
        assert!(text.contains("# Methods compared, 1 minute for each"));
        assert!(text.contains("| byol | 10 | 20 | 61.0 | 60.0% ± 0.0 | +40.0 | +50.0 |"));
        assert!(text.contains("4 runs, 4 min 04 s in all"));
        let svg = plot::seconds(&standings).unwrap();
        for (name, lines) in
            [("and 70.0", 1), ("byol 60.0", 1), ("raw pixels 20.0", 1), ("<circle", 8)]
        {
            assert_eq!(svg.matches(name).count(), lines, "{name}: one for all seeds");
        }
    }

    #[test]
    fn one_seed_has_no_deviation() {
        let standings = Standings::of(Allowance::ViewEpochs(7), vec![run("and", 0, 0.5)]);
        assert_eq!(standings.methods[0].std, None);
        assert!(standings.table().contains("50.0%  ") && !standings.table().contains('±'));
        let none = Standings::of(Allowance::ViewEpochs(7), vec![]);
        assert_eq!(none.methods, []);
        plot::seconds(&none).unwrap();
    }
}
