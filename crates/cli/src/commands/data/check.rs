//! `anchorhood data check`.

use anchorhood::research::{CheckReport, Problem, SplitCount};
use anchorhood_data::check;
use serde_json::json;

use super::CheckArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let bar = Bar::new("reading", args.json);
    let report = check(&args.data, &|done, total| bar.at(done, total));
    drop(bar);
    let report = report?;
    match args.json {
        true => output::line(&object(&report).to_string())?,
        false => output::line(&text(&report, args.most))?,
    }
    match report.is_whole() {
        true => Ok(()),
        false => {
            Err(failed!("{}: this copy of {} is not whole", report.place.display(), report.set))
        }
    }
}

fn text(report: &CheckReport, most: usize) -> String {
    let mut lines = vec![format!("{}: {}", report.place.display(), report.set)];
    lines.extend(report.splits.iter().map(count));
    let problems = report.problems.iter().take(most);
    lines.extend(problems.map(|p| format!("  {}: {}", p.file, p.what)));
    if report.problems.len() > most {
        lines.push(format!("  … and {} more", grouped(report.problems.len() - most)));
    }
    if report.is_whole() {
        lines.push("  nothing is missing or broken".into());
    }
    let warnings = report.warnings.iter();
    lines.extend(warnings.map(|w| format!("  warning: {}: {}", w.file, w.what)));
    lines.join("\n")
}

fn count(split: &SplitCount) -> String {
    match split.expected {
        Some(expected) if expected != split.found => {
            format!("  {:5} {} of {} pictures", split.name, grouped(split.found), grouped(expected))
        }
        _ => format!("  {:5} {} pictures", split.name, grouped(split.found)),
    }
}

fn object(report: &CheckReport) -> serde_json::Value {
    let splits = report
        .splits
        .iter()
        .map(|s| json!({ "name": s.name, "found": s.found, "expected": s.expected }));
    let problems = report.problems.iter();
    let problem = |p: &Problem| json!({ "file": p.file, "what": p.what });
    let problems = problems.map(problem);
    json!({
        "set": report.set,
        "place": report.place,
        "whole": report.is_whole(),
        "splits": splits.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "warnings": report.warnings.iter().map(problem).collect::<Vec<_>>(),
    })
}
