//! Results as Markdown: the table with the paper's figures beside ours, then what has to be said,
//! then the evidence.

use std::fmt::Write;

use crate::Results;
use crate::experiment::distinct;
use crate::runs_table::COLUMNS;

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
        text.push_str(&self.runs_markdown());
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
        let rows = distinct(self.cells.iter().map(|c| c.row.as_str()));
        let mut text = String::from("| |");
        for column in &columns {
            let _ = write!(text, " {column}, {} | {column}, paper |", self.ours());
        }
        text.push_str("\n|---|");
        text.push_str(&"---:|---:|".repeat(columns.len()));
        text.push('\n');
        for row in rows {
            let _ = write!(text, "| {row} |");
            for column in &columns {
                let is = |c: &&crate::Cell| c.row == row && c.column == *column;
                match self.cells.iter().find(is) {
                    Some(cell) => {
                        let _ = write!(text, " {} | {} |", cell.ours(), cell.theirs());
                    }
                    None => text.push_str(" | |"),
                }
            }
            text.push('\n');
        }
        text
    }

    /// Rounds, where one run has several: neighbourhood quality beside accuracy.
    fn rounds_table(&self) -> String {
        let rounds = self.rounds();
        if self.cells.len() > 1 || rounds.len() < 2 {
            return String::new();
        }
        let mut text = String::from(
            "\n| round | anchors | consistent | inconsistent | share consistent | kNN top-1 |\n|---|---:|---:|---:|---:|---:|\n",
        );
        for r in rounds {
            let counts = match r.counts {
                Some((yes, no)) => format!(
                    "{:.0} | {yes:.0} | {no:.0} | {:.1}",
                    yes + no,
                    100.0 * yes / (yes + no).max(1.0)
                ),
                None => "– | – | – | –".into(),
            };
            let _ = writeln!(text, "| {} | {counts} | {:.1} |", r.round, r.top1);
        }
        text
    }

    /// What each run took, and how well it did its own task.
    fn runs_markdown(&self) -> String {
        let rows = self.runs_table();
        if rows.is_empty() {
            return String::new();
        }
        let mut text = format!("\n| {} |\n|---|---:|---|\n", COLUMNS.join(" | "));
        for row in rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }

    /// What the figures stand on.
    pub fn evidence(&self) -> Vec<String> {
        let seeds: Vec<String> = self.seeds.iter().map(|s| s.to_string()).collect();
        let mut all = vec![format!(
            "version {}; {}; seed{} {}; {:.0} s of training and judging, each run counted as if trained for this alone",
            self.version,
            match self.devices.is_empty() {
                true => "no run".into(),
                false => self.devices.join(" and "),
            },
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
