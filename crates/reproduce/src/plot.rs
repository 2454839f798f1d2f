//! Results as charts (SVG): bars beside the paper's, a line over a number, neighbourhoods over the
//! rounds; and kNN over the seconds of methods that are compared.

use anchorhood_report::ReportError;
use anchorhood_report::chart::{Axis, BLUE, Chart, GREY, LINES, ORANGE, PALE, RGBColor, Side};

use crate::results::RoundFigures;
use crate::{Cell, Experiment, Plot, Results, Standings};

const SIZE: (u32, u32) = (720, 340);
const SECONDS: (u32, u32) = (760, 400);
/// Of [`SECONDS`], what lies above and below the chart.
const AROUND: u32 = 8 + 8 + 44;
/// Pixels between two names.
const LINE: i32 = 15;

/// The plots of an experiment, each as SVG.
pub fn plots(results: &Results, experiment: &Experiment) -> Result<Vec<String>, ReportError> {
    let mut all = vec![];
    match experiment.plot {
        Plot::Bars => {
            for column in experiment.columns() {
                let of = |c: &&Cell| c.column == column && (c.mean.or(c.paper)).is_some();
                let cells: Vec<&Cell> = results.cells.iter().filter(of).collect();
                if !cells.is_empty() {
                    let size = (720, 70 + 34 * cells.len() as u32);
                    all.push(bars(column, results.ours(), &cells).svg_on_white(size)?);
                }
            }
        }
        Plot::Line(x) => {
            if results.cells.iter().any(|c| c.mean.is_some()) {
                all.push(line(x, results.ours(), &results.cells).svg_on_white(SIZE)?);
            }
        }
        Plot::Quality | Plot::Attention => {
            let rounds = results.rounds();
            if rounds.iter().any(|r| r.counts.is_some()) {
                all.push(quality(&rounds).svg_on_white(SIZE)?);
            }
        }
    }
    Ok(all)
}

/// One row a cell, ours above the paper's.
fn bars(title: &str, ours: &str, cells: &[&Cell]) -> Chart {
    let y = Axis { labels: 0, ..Axis::new(cells.len() as f64..0.0, "") };
    let mut chart = Chart::new(Axis::new(0.0..100.0, ""), y);
    chart.caption = format!("{title}: {ours} (blue), and the paper's (grey), %");
    (chart.names_left, chart.names_right) = (Some(250), 40);
    for (i, cell) in cells.iter().enumerate() {
        let top = i as f64;
        for (value, from, colour) in [(cell.mean, 0.12, BLUE), (cell.paper, 0.5, PALE)] {
            let Some(value) = value else { continue };
            chart.bar([(0.0, top + from), (value, top + from + 0.36)], colour);
            chart.text(format!("{value:.1}"), (value, top + from + 0.18), Side::Right(0), GREY);
        }
        if let (Some(mean), Some(std)) = (cell.mean, cell.std) {
            chart.line([(mean - std, top + 0.3), (mean + std, top + 0.3)], GREY);
        }
        chart.text(cell.row.clone(), (0.0, top + 0.5), Side::Left, GREY);
    }
    chart
}

/// Accuracy over a number; the paper's points are grey.
fn line(x: &str, name: &str, cells: &[Cell]) -> Chart {
    let points = |value: fn(&Cell) -> Option<f64>| -> Vec<(f64, f64)> {
        cells.iter().filter_map(|c| c.x.zip(value(c))).collect()
    };
    let (ours, paper) = (points(|c| c.mean), points(|c| c.paper));
    let all = || ours.iter().chain(&paper);
    let y = percents(all().map(|p| p.1), 0.15);
    let right = all().map(|p| p.0).fold(1.0, f64::max);
    let mut chart = Chart::new(Axis::whole(0.0..right * 1.05, x, 10), y);
    chart.caption = format!("kNN top-1, %: {name} (blue), and the paper's (grey)");
    chart.curve(ours.clone(), BLUE);
    paper.iter().for_each(|p| chart.dot(*p, PALE));
    for cell in cells {
        if let (Some(x), Some(mean), Some(std)) = (cell.x, cell.mean, cell.std) {
            chart.line([(x, mean - std), (x, mean + std)], BLUE);
        }
    }
    chart
}

/// Consistent and inconsistent neighbourhoods over the rounds.
fn quality(rounds: &[RoundFigures]) -> Chart {
    let of = |which: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let counted = rounds.iter().filter_map(|r| r.counts.map(|c| (r.round, which(c))));
        counted.map(|(r, n)| (r as f64, n)).collect()
    };
    let (yes, no) = (of(|c| c.0), of(|c| c.1));
    let most = yes.iter().chain(&no).map(|p| p.1).fold(1.0, f64::max);
    let last = rounds.iter().map(|r| r.round).max().unwrap_or(1);
    let x = Axis::whole(0.8..last as f64 + 0.2, "round", last);
    let mut chart = Chart::new(x, Axis::new(0.0..most * 1.08, ""));
    chart.caption = "Neighbourhoods: consistent (blue) and inconsistent (orange)".into();
    chart.curve(yes, BLUE);
    chart.curve(no, ORANGE);
    chart
}

/// kNN over the seconds each run has taken, a line a run, with its method's name at the end of the
/// first.
pub(crate) fn seconds(standings: &Standings) -> Result<String, ReportError> {
    let percent = |share: f64| 100.0 * share;
    let raw_pixels = standings.raw_pixels().map(percent);
    let points = || standings.runs.iter().flat_map(|run| &run.curve);
    let last = points().map(|p| p.0).fold(1.0, f64::max);
    let y = percents(points().map(|p| percent(p.1)).chain(raw_pixels), 0.08);
    let x = Axis { decimals: Some(usize::from(last < 10.0)), ..Axis::new(0.0..last, "seconds") };
    let mut chart = Chart::new(x, Axis { name: "kNN top-1, %".into(), ..y });
    chart.names_right = 120;
    let mut names: Vec<(String, f64, RGBColor)> = vec![];
    if let Some(value) = raw_pixels {
        chart.level(value);
        names.push((format!("raw pixels {value:.1}"), value, GREY));
    }
    for (method, colour) in standings.methods.iter().zip(LINES.into_iter().cycle()) {
        let own = standings.runs.iter().filter(|run| run.method == method.method);
        for (number, run) in own.enumerate() {
            let points = run.curve.iter().map(|(second, share)| (*second, percent(*share)));
            let points: Vec<(f64, f64)> = points.collect();
            if let (Some((_, value)), 0) = (points.last(), number) {
                names.push((
                    format!("{} {:.1}", method.method, percent(method.top1)),
                    *value,
                    colour,
                ));
            }
            chart.curve(points, colour);
        }
    }
    let (low, range) = (chart.y.range.start, chart.y.range.end - chart.y.range.start);
    let height = f64::from(SECONDS.1 - AROUND);
    let down = |value: f64| (height * (1.0 - (value - low) / range)).round() as i32;
    let wanted: Vec<i32> = names.iter().map(|(_, value, _)| down(*value)).collect();
    for ((name, value, colour), at) in names.into_iter().zip(apart(&wanted)) {
        chart.text(name, (last, value), Side::Right(at - down(value)), colour);
    }
    chart.svg_on_white(SECONDS)
}

/// An axis with some room around values within 0 and 100.
fn percents(values: impl Iterator<Item = f64>, room: f64) -> Axis {
    let (low, high) = values.fold((100.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 100.0) };
    let room = ((high - low) * room).max(1.0);
    Axis::new((low - room).max(0.0)..(high + room).min(100.0), "")
}

/// Heights at which names do not lie on each other, in the order of the heights where they would
/// like to be.
fn apart(wanted: &[i32]) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|i| wanted[*i]);
    let (mut at, mut free) = (wanted.to_vec(), i32::MIN);
    for i in &order {
        at[*i] = wanted[*i].max(free);
        free = at[*i] + LINE;
    }
    // What was pushed beyond the last wanted height moves up again, and what is in its way with it.
    let lowest = wanted.iter().max().map_or(0, |most| most + LINE);
    let mut free = lowest;
    for i in order.iter().rev() {
        at[*i] = at[*i].min(free);
        free = at[*i] - LINE;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_on_each_other() {
        assert_eq!(apart(&[100, 300]), [100, 300]);
        for wanted in [vec![100, 101, 102], vec![50, 300, 300, 301], vec![]] {
            let mut at = apart(&wanted);
            at.sort_unstable();
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= LINE), "{at:?}");
        }
    }
}
