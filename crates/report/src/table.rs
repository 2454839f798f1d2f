//! A run as a table for the terminal: floors first, then a line a round.

use anchorhood_train::evaluation::Accuracy;
use maud::{Markup, html};

use crate::summary::floor_name;
use crate::{Summary, duration, grouped};

impl Summary {
    /// The table, without a newline at its end; accuracy columns only where there are labels.
    pub fn table(&self) -> String {
        aligned(&self.rows(false))
    }

    /// Its rows, the header first, as a terminal shows them or as a page does.
    pub(crate) fn rows(&self, page: bool) -> Vec<Vec<String>> {
        // A page may part its longest words.
        let [anchors, consistent, time] = match page {
            true => ["an\u{ad}chors", "con\u{ad}sist\u{ad}ent", "time"],
            false => ["anchors", "consistent", "seconds"],
        };
        let count = |n: usize| if page { grouped(n) } else { n.to_string() };
        let labels = self.has_accuracy();
        let header: &[&str] = match labels {
            true => &["", "kNN top-1", "top-5", anchors, consistent, "loss", time],
            false => &["", anchors, "loss", time],
        };
        let mut rows = vec![header.iter().map(|s| s.to_string()).collect()];
        let judged_only = |name: String, of: &Accuracy| {
            let mut row = vec![name];
            row.extend(accuracy_cells(Some(of)));
            row.resize(header.len(), "–".into());
            row
        };
        for floor in &self.floors {
            let name = floor_name(floor.subject).unwrap_or_default();
            rows.push(judged_only(name.into(), &floor.accuracy));
        }
        for r in &self.rounds {
            let mut row = vec![format!("round {}", r.round)];
            if labels {
                row.extend(accuracy_cells(r.accuracy.as_ref()));
            }
            row.push(or_dash(r.anchors.map(count)));
            if labels {
                let share = r.consistency.and_then(|c| c.share());
                row.push(or_dash(share.map(percent)));
            }
            row.push(or_dash(r.loss.map(|l| format!("{l:.4}"))));
            row.push(if page { duration(r.seconds) } else { format!("{:.1}", r.seconds) });
            rows.push(row);
        }
        if let Some((size, of)) = self.as_used.as_ref().filter(|_| !page) {
            rows.push(judged_only(format!("model {size}×{size}"), of));
        }
        rows
    }
}

fn accuracy_cells(accuracy: Option<&Accuracy>) -> [String; 2] {
    [
        or_dash(accuracy.map(|a| percent(a.top1))),
        or_dash(accuracy.and_then(|a| a.top5).map(percent)),
    ]
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

pub(crate) fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "–".into())
}

/// Rows of a table, the first of them its header: the first column left, the others right, a rule
/// under the header.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows[0].len();
    let wide = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(i, (cell, w))| match i {
            0 => format!("{cell:<w$}"),
            _ => format!("{cell:>w$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1));
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.insert(1, rule);
    lines.join("\n")
}

/// The same as Markdown, each row with a newline at its end.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.insert(1, format!("|---|{}\n", "---:|".repeat(rows[0].len() - 1)));
    lines.concat()
}

/// The same for a page.
pub(crate) fn html(rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll.card {
            table {
                tr { @for cell in &rows[0] { th { (cell) } } }
                @for row in &rows[1..] {
                    tr { @for cell in row { td { (cell) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Summary;
    use crate::summary::tests::example;

    #[test]
    fn with_labels() {
        let expected = "            kNN top-1  top-5  anchors  consistent    loss  seconds
──────────────────────────────────────────────────────────────────
raw pixels      20.0%  60.0%        –           –       –        –
untrained       25.0%  62.5%        –           –       –        –
round 0         50.0%  75.0%        –           –  6.0000     21.5
round 1         70.0%  85.0%     1000       60.0%  4.0000     22.5";
        assert_eq!(Summary::of(&example(true)).table(), expected);
    }

    #[test]
    fn without_labels() {
        let expected = "         anchors    loss  seconds
─────────────────────────────────
round 0        –  6.0000     20.5
round 1     1000  4.0000     21.5";
        assert_eq!(Summary::of(&example(false)).table(), expected);
    }
}
