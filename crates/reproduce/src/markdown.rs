//! Results as Markdown: the table with the paper's figures beside ours, then what has to be said,
//! then the evidence.

use std::fmt::Write;

use anchorhood_report::markdown;
use anchorhood_train::PretextShare;

use crate::experiment::distinct;
use crate::results::RoundFigures;
use crate::{Cell, FinishedRun, Results};

impl Results {
    /// The whole document.
    pub fn markdown(&self, plots: &[&str]) -> String {
        let mut text = format!(
            "# {}: {}\n\nScale: {}. Top-1 accuracy in percent{}.\n\n",
            self.paper,
            self.title,
            self.scale,
            match self.seeds.len() {
                1 => String::new(),
                n => format!(", mean ± standard deviation over {n} seeds"),
            }
        );
        text.push_str(&self.table());
        text.push_str(&self.rounds_table());
        for plot in plots {
            let _ = writeln!(text, "\n![{}]({plot})", plot.trim_end_matches(".svg"));
        }
        text.push_str(&self.runs_table());
        for picture in &self.pictures {
            let kind = if picture.chosen.failure { ", a failure" } else { "" };
            let (class, file) = (&picture.chosen.class, &picture.file);
            let _ = writeln!(text, "\n![{class}{kind}]({file})");
        }
        let mut list = |title: &str, items: Vec<String>| {
            if items.is_empty() {
                return;
            }
            let _ = write!(text, "\n{title}\n\n");
            for item in items {
                let _ = writeln!(text, "- {item}");
            }
        };
        list("Smaller than the paper:", self.smaller_than_the_paper.clone());
        list("Not run:", self.reasons().iter().map(|r| r.to_string()).collect());
        list("Notes:", self.notes.clone());
        list("Evidence:", self.evidence());
        text
    }

    /// Rows and columns, each column ours and the paper's.
    pub fn table(&self) -> String {
        let columns = distinct(self.cells.iter().map(|c| c.column.as_str()));
        let both = |c: &&str| [format!("{c}, {}", self.ours()), format!("{c}, paper")];
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(columns.iter().flat_map(both));
        for row in distinct(self.cells.iter().map(|c| c.row.as_str())) {
            let mut cells = vec![row.to_string()];
            for column in &columns {
                let is = |c: &&Cell| c.row == row && c.column == *column;
                let found = self.cells.iter().find(is);
                cells.extend(found.map_or_else(Default::default, |c| [c.ours(), c.theirs()]));
            }
            rows.push(cells);
        }
        markdown(&rows)
    }

    /// Rounds, where one run has several: neighbourhood quality beside accuracy.
    fn rounds_table(&self) -> String {
        let rounds = self.rounds();
        if self.cells.len() > 1 || rounds.len() < 2 {
            return String::new();
        }
        let header =
            ["round", "anchors", "consistent", "inconsistent", "share consistent", "kNN top-1"];
        let row = |r: &RoundFigures| {
            let counts = match r.counts {
                Some((yes, no)) => {
                    let share = 100.0 * yes / (yes + no).max(1.0);
                    [(yes + no, 0), (yes, 0), (no, 0), (share, 1)].map(|(n, d)| format!("{n:.d$}"))
                }
                None => [(); 4].map(|()| "–".into()),
            };
            [&[r.round.to_string()][..], &counts, &[format!("{:.1}", r.top1)]].concat()
        };
        let header = vec![header.map(String::from).to_vec()];
        let rows: Vec<_> = header.into_iter().chain(rounds.iter().map(row)).collect();
        format!("\n{}", markdown(&rows))
    }

    /// What each run took, and how well it did its own task in the end.
    fn runs_table(&self) -> String {
        let trained = self.runs.iter().filter(|run| run.seconds > 0.0);
        let row = |run: &FinishedRun| {
            vec![run.name.clone(), format!("{:.1}", run.seconds / 60.0), task(run)]
        };
        let header = vec![["run", "minutes", "its own task, %"].map(String::from).to_vec()];
        let rows: Vec<_> = header.into_iter().chain(trained.map(row)).collect();
        match rows.len() {
            1 => String::new(),
            _ => format!("\n{}", markdown(&rows)),
        }
    }

    /// What the figures stand on.
    pub fn evidence(&self) -> Vec<String> {
        let seeds: Vec<String> = self.seeds.iter().map(|s| s.to_string()).collect();
        let mut all = vec![format!(
            "version {}; {}; seed{} {}; {:.0} s of training and judging, each run counted as if \
             trained for this alone",
            self.version,
            if self.devices.is_empty() { "no run".into() } else { self.devices.join(" and ") },
            if seeds.len() == 1 { "" } else { "s" },
            seeds.join(", "),
            self.seconds
        )];
        for d in &self.data {
            all.push(format!(
                "{}: {} pictures of {}×{} to train on, {} to test on, {} classes, {}",
                d.name, d.train, d.size, d.size, d.test, d.classes, d.fingerprint
            ));
        }
        all
    }
}

/// The figures of a run's task after its last epoch, with what guessing would reach.
fn task(run: &FinishedRun) -> String {
    let Some(last) = run.pretext.last() else {
        return "–".into();
    };
    let figure = |f: &PretextShare| {
        let chance = f.chance.map(|chance| format!(" (by guessing {:.1})", 100.0 * chance));
        format!("{} {:.1}{}", f.name, 100.0 * f.share, chance.unwrap_or_default())
    };
    last.figures.iter().map(figure).collect::<Vec<_>>().join(", ")
}
