//! The charts of a run, one idea each: over its epochs, over its rounds, over its pictures.

use std::path::Path;

use anchorhood_storage::AtomicFile;
use anchorhood_train::discovery::Neighbourhoods;
use anchorhood_train::{EpochEnded, Subject};
use plotters::prelude::{IntoFont, WHITE};
use rayon::prelude::*;

use crate::chart::{
    Axis, BLUE, Chart, Drawn, FAINT, GREEN, GREY, ORANGE, PALE, RGBColor, Side, VIOLET, svg,
};
use crate::metrics::MOST_EPOCHS;
use crate::summary::floor_name;
use crate::{ReportError, RoundNeighbourhoods, Summary};

/// A chart of a page.
const SIZE: (u32, u32) = (450, 240);
/// A run in one picture.
const ALL: (u32, u32) = (760, 520);
/// One of several beside each other.
const PANEL: (u32, u32) = (430, 250);
/// Bars of a histogram.
const BARS: usize = 48;
/// Colours of figures that share a chart, in turn.
const FIGURES: [RGBColor; 5] = [BLUE, ORANGE, GREEN, VIOLET, GREY];

/// Writes `curve.svg`.
pub fn write_curve(summary: &Summary, path: &Path) -> Result<(), ReportError> {
    AtomicFile::write(path, curve_svg(summary)?.as_bytes()).map_err(ReportError::io(path))
}

/// kNN accuracy over the epochs with its floors, and the loss under it. Without labels it is the
/// loss alone.
pub fn curve_svg(summary: &Summary) -> Result<String, ReportError> {
    let title = match &summary.started {
        Some(s) => {
            format!("{}: {} pictures, {}, seed {}", s.data, s.pictures, s.network, s.seed)
        }
        None => "A run".into(),
    };
    svg(ALL, |root| {
        root.fill(&WHITE)?;
        let root = root.titled(&title, ("sans-serif", 17))?;
        if !summary.has_accuracy() {
            return loss(summary).draw(&root);
        }
        let (top, bottom) = root.split_vertically(300);
        accuracy(summary).draw(&top)?;
        loss(summary).draw(&bottom)
    })
}

/// What several runs are taught by, over their epochs: their pretext tasks, two beside each other.
pub fn pretext_svg(runs: &[(&str, Summary)]) -> Result<String, ReportError> {
    let rows = runs.len().div_ceil(2).max(1);
    svg((2 * PANEL.0, rows as u32 * PANEL.1), |root| -> Drawn {
        root.fill(&WHITE)?;
        for ((name, summary), panel) in runs.iter().zip(root.split_evenly((rows, 2))) {
            pretext(summary).draw(&panel.titled(name, ("sans-serif", 15).into_font())?)?;
        }
        Ok(())
    })
}

/// How the entropies of a round lie, and which of them the curriculum chose.
pub(crate) fn entropy_svg(found: &Neighbourhoods) -> Result<String, ReportError> {
    entropy(found).svg(SIZE)
}

/// The curves of a run, each with the name of its file and what it shows, in words: loss, accuracy
/// where there are labels, what is told without them, learning rate, anchors and their consistency.
pub(crate) fn charts(
    summary: &Summary,
) -> Result<Vec<(&'static str, &'static str, String)>, ReportError> {
    let drawn = drawings(summary).into_iter();
    drawn.map(|(file, title, chart)| Ok((file, title, chart.svg(SIZE)?))).collect()
}

/// Writes every chart of a run into a folder, as SVG.
pub(crate) fn write_charts(
    folder: &Path,
    summary: &Summary,
    rounds: &[RoundNeighbourhoods],
) -> Result<(), ReportError> {
    let curves = drawings(summary).into_iter().map(|(file, _, chart)| (file.to_owned(), chart));
    let entropies = rounds.iter().map(|r| (format!("entropy-{}", r.round), entropy(&r.found)));
    let all: Vec<(String, Chart)> = curves.chain(entropies).collect();
    all.par_iter().try_for_each(|(name, chart)| {
        let path = folder.join(format!("{name}.svg"));
        AtomicFile::write(&path, chart.svg(SIZE)?.as_bytes()).map_err(ReportError::io(&path))
    })
}

fn drawings(summary: &Summary) -> Vec<(&'static str, &'static str, Chart)> {
    let mut all = vec![];
    if summary.has_accuracy() {
        all.push(("knn", "kNN accuracy", accuracy(summary)));
    }
    if !summary.label_free.is_empty() {
        let title = "Score without labels: do changed copies find their place?";
        all.push(("label_free", title, label_free(summary)));
    }
    if !summary.pretext.is_empty() {
        all.push(("pretext", "The pretext task: what it is taught by", pretext(summary)));
    }
    all.push(("loss", "Loss", loss(summary)));
    all.push(("rate", "Learning rate", rate(summary)));
    if summary.rounds.iter().any(|r| r.anchors.is_some()) {
        all.push(("anchors", "Anchors and their consistency", anchors(summary)));
    }
    all
}

fn accuracy(summary: &Summary) -> Chart {
    let judged = summary.floors.iter().chain(&summary.evaluations);
    shares(summary, "kNN top-1, %", judged.map(|e| (e.subject, e.accuracy.top1)))
}

fn label_free(summary: &Summary) -> Chart {
    let judged = summary.label_free.iter().map(|e| (e.subject, e.figures.score));
    shares(summary, "score without labels, %", judged)
}

/// Shares over the epochs as a curve, and those of the floors as dashed lines under it.
fn shares(summary: &Summary, name: &str, judged: impl Iterator<Item = (Subject, f64)>) -> Chart {
    let (mut floors, mut points) = (vec![], vec![]);
    for (subject, share) in judged {
        let value = 100.0 * share;
        if let Subject::Trained { round, epoch } = subject {
            points.push((epoch_number(summary, round, epoch), value));
        } else if let Some(floor) = floor_name(subject) {
            floors.push((floor, value));
        }
    }
    floors.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all = points.iter().map(|p| p.1).chain(floors.iter().map(|f| f.1));
    let top = (all.fold(0.0, f64::max) * 1.12).clamp(10.0, 100.0);
    let mut chart = over_epochs(summary, Axis::new(0.0..top, name), false);
    // Names sit at the right, where curves have left the floor: the higher floor's above its line,
    // the lower's below.
    for (i, (name, value)) in floors.into_iter().enumerate() {
        chart.level(value);
        let (side, offset) = match i == 0 {
            true => (Side::Above, 0.015 * top),
            false => (Side::Below, -0.015 * top),
        };
        let at = (chart.x.range.end, value + offset);
        chart.text(format!("{name} {value:.1}"), at, side, GREY);
    }
    chart.curve(points, BLUE);
    chart
}

/// Every figure of the pretext task as a curve with its name at its end, and what guessing would
/// reach as a dashed line.
fn pretext(summary: &Summary) -> Chart {
    let mut chart = over_epochs(summary, Axis::new(0.0..104.0, "%"), true);
    let mut names: Vec<&str> = vec![];
    for figure in summary.pretext.iter().flat_map(|p| &p.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    for (name, colour) in names.into_iter().zip(FIGURES.into_iter().cycle()) {
        let of = summary.pretext.iter().flat_map(|p| {
            let at = epoch_number(summary, p.round, p.epoch);
            p.figures.iter().map(move |f| (at, f))
        });
        let own: Vec<_> = of.filter(|(_, f)| f.name == name).collect();
        if let Some(chance) = own.iter().rev().find_map(|(_, f)| f.chance) {
            chart.level(100.0 * chance);
        }
        chart.curve(own.iter().map(|(at, f)| (*at, 100.0 * f.share)).collect(), colour);
        let Some((_, last)) = own.last() else { continue };
        let value = 100.0 * last.share;
        let (side, offset) = if value > 90.0 { (Side::Below, -2.5) } else { (Side::Above, 2.5) };
        let at = (chart.x.range.end, value + offset);
        chart.text(format!("{name} {value:.1}"), at, side, colour);
    }
    chart
}

fn loss(summary: &Summary) -> Chart {
    let mut points = per_epoch(summary, |e| e.loss);
    points.retain(|p| p.1.is_finite());
    let (low, high) = ends(points.iter().map(|p| p.1));
    let room = ((high - low) * 0.08).max(1e-3);
    let mut chart = over_epochs(summary, Axis::new(low - room..high + room, "loss"), true);
    chart.curve(points, ORANGE);
    chart
}

fn rate(summary: &Summary) -> Chart {
    let points = per_epoch(summary, |e| e.rate);
    let high = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let y = Axis::new(0.0..(high * 1.1).max(1e-6), "learning rate");
    let mut chart = over_epochs(summary, y, true);
    chart.curve(points, VIOLET);
    chart
}

/// A chart over the epochs of all rounds, whose beginnings are marked.
fn over_epochs(summary: &Summary, y: Axis, named: bool) -> Chart {
    let ended = summary.epochs.iter().map(|e| (e.round, e.epoch));
    let told = summary.pretext.iter().map(|p| (p.round, p.epoch));
    let numbers = ended.chain(told).map(|(round, epoch)| epoch_number(summary, round, epoch));
    let last = numbers.fold(1.0, f64::max);
    let name = if named { "epochs (a grey line begins a round)" } else { "" };
    let labels = (last as usize + 1).min(10); // whole epochs only
    let mut chart = Chart::new(Axis::whole(0.0..last, name, labels), y);
    for e in summary.epochs.iter().filter(|e| e.epoch == 0 && e.round > 0) {
        let (start, y) = (epoch_number(summary, e.round, 0) - 1.0, chart.y.range.clone());
        chart.line([(start, y.start), (start, y.end)], FAINT);
    }
    chart
}

/// A figure of every epoch, over the epochs done.
fn per_epoch(summary: &Summary, figure: impl Fn(&EpochEnded) -> f64) -> Vec<(f64, f64)> {
    let epochs = summary.epochs.iter();
    epochs.map(|e| (epoch_number(summary, e.round, e.epoch), figure(e))).collect()
}

/// Epochs done when this one ended, over all rounds.
fn epoch_number(summary: &Summary, round: usize, epoch: usize) -> f64 {
    let epochs = summary.epochs.first().map_or(1, |e| e.epochs);
    // Rounds of one event and epochs of another may come to more than any run has.
    (round * epochs + epoch + 1).min(MOST_EPOCHS) as f64
}

/// The least and the greatest, or 0 and 1 where there is none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(none, |(low, high), v| (low.min(v), high.max(v)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

fn anchors(summary: &Summary) -> Chart {
    let pictures = summary.started.as_ref().map_or(0, |s| s.pictures);
    let later = summary.rounds.iter().filter(|r| r.round > 0);
    let share = later.clone().filter_map(|r| {
        let anchors = r.anchors?;
        Some((r.round as f64, 100.0 * anchors as f64 / pictures.max(anchors).max(1) as f64))
    });
    let consistent = later.filter_map(|r| Some((r.round as f64, 100.0 * r.consistency?.share()?)));
    let (share, consistent): (Vec<_>, Vec<_>) = (share.collect(), consistent.collect());
    let last = share.iter().map(|p| p.0).fold(1.0, f64::max);
    let (name, wide) = match consistent.is_empty() {
        true => ("round", 0.3),
        false => ("round (left: anchors; right: of these consistent)", -0.02),
    };
    let x = Axis::whole(0.5..last + 0.5, name, (last as usize + 1).min(64));
    let mut chart = Chart::new(x, Axis::new(0.0..108.0, "%"));
    for (round, value) in share {
        chart.bar([(round - 0.3, 0.0), (round + wide, value)], BLUE);
    }
    for (round, value) in consistent {
        chart.bar([(round + 0.02, 0.0), (round + 0.3, value)], GREEN);
    }
    chart
}

fn entropy(found: &Neighbourhoods) -> Chart {
    let known = found.entropy().iter().map(|e| f64::from(*e)).zip(found.anchors().iter().copied());
    let known: Vec<(f64, bool)> = known.filter(|(entropy, _)| entropy.is_finite()).collect();
    let (low, high) = ends(known.iter().map(|(e, _)| *e));
    let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
    let bar = |v: f64| (((v - low) / (high - low) * BARS as f64).max(0.0) as usize).min(BARS - 1);
    let (mut chosen, mut left) = ([0usize; BARS], [0usize; BARS]);
    for (entropy, anchor) in &known {
        let side = if *anchor { &mut chosen } else { &mut left };
        side[bar(*entropy)] += 1;
    }
    let tallest = chosen.iter().zip(&left).map(|(a, b)| a + b).max();
    let tallest = tallest.unwrap_or(0).max(1) as f64 * 1.1;
    let x = Axis { labels: 7, ..Axis::new(low..high, "entropy (sure at the left)") };
    let mut chart = Chart::new(x, Axis::whole(0.0..tallest, "pictures", 5));
    let step = (high - low) / BARS as f64;
    for (b, (chosen, left)) in chosen.into_iter().zip(left).enumerate() {
        let (x, gap) = (low + b as f64 * step, 0.08 * step);
        let (foot, top) = (chosen as f64, (chosen + left) as f64);
        for (count, from, to, colour) in [(chosen, 0.0, foot, BLUE), (left, foot, top, PALE)] {
            if count > 0 {
                chart.bar([(x + gap, from), (x + step - gap, to)], colour);
            }
        }
    }
    let anchors = known.iter().filter(|(_, anchor)| *anchor).map(|(entropy, _)| *entropy);
    if let Some(last) = anchors.max_by(f64::total_cmp) {
        chart.cut(last);
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;
    use anchorhood_train::{Event, PretextMeasured, PretextShare};

    fn dots(svg: &str) -> usize {
        svg.matches("<circle").count()
    }

    #[test]
    fn a_curve_shows_the_floors_and_every_point() {
        let svg = curve_svg(&Summary::of(&example(true))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("raw pixels 20.0") && svg.contains("untrained 25.0"));
        assert_eq!(dots(&svg), 4 + 4, "accuracies and losses");
        let svg = curve_svg(&Summary::of(&example(false))).unwrap();
        assert!(!svg.contains("kNN"));
        assert_eq!(dots(&svg), 4);
        curve_svg(&Summary::default()).unwrap();
    }

    /// A run whose task is told of for so many epochs.
    fn taught(epochs: usize) -> Summary {
        let figure = |name: &str, share, chance| PretextShare { name: name.into(), share, chance };
        let told = |epoch: usize| {
            let figures = vec![
                figure("accuracy", epoch as f64 / 10.0, Some(0.1)),
                figure("largest cluster", 0.05, None),
            ];
            Event::Pretext(PretextMeasured { round: 0, epoch, figures })
        };
        Summary::of(&(0..epochs).map(told).collect::<Vec<_>>())
    }

    #[test]
    fn tasks_of_several_runs_have_a_panel_each() {
        let runs = [("jigsaw", taught(6)), ("nat", taught(3)), ("colour", taught(10))];
        let svg = pretext_svg(&runs).unwrap();
        for text in ["jigsaw", "accuracy 50.0", "accuracy 20.0", "accuracy 90.0"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(dots(&svg), 2 * (6 + 3 + 10));
        pretext_svg(&[]).unwrap();
    }

    #[test]
    fn charts_are_those_of_what_was_told() {
        let files = |summary: &Summary| {
            let charts = charts(summary).unwrap();
            assert!(charts.iter().all(|(_, _, svg)| svg.trim_end().ends_with("</svg>")));
            charts.iter().map(|(file, ..)| *file).collect::<Vec<_>>()
        };
        let of_run = |labels| files(&Summary::of(&example(labels)));
        assert_eq!(of_run(true), ["knn", "label_free", "loss", "rate", "anchors"]);
        assert_eq!(of_run(false), ["label_free", "loss", "rate", "anchors"]);
        assert_eq!(files(&taught(2)), ["pretext", "loss", "rate"]);
        assert_eq!(files(&Summary::default()), ["loss", "rate"]);
        let svg = pretext(&taught(2)).svg(SIZE).unwrap();
        assert!(svg.contains("accuracy 10.0") && svg.contains("largest cluster 5.0"), "{svg}");
    }

    fn of_entropies(anchors: Vec<bool>, entropy: Vec<f32>) -> Neighbourhoods {
        Neighbourhoods::from_parts(0, vec![], anchors, entropy).unwrap()
    }

    #[test]
    fn every_chart_is_a_file_that_draws_in_its_colour() {
        let folder = tempfile::tempdir().unwrap();
        let found = of_entropies(vec![true, false], vec![0.0, 1.0]);
        let found = RoundNeighbourhoods { round: 1, found };
        write_charts(folder.path(), &Summary::of(&example(true)), &[found]).unwrap();
        for (name, colour) in [
            ("knn", "#005EA2"),
            ("label_free", "#005EA2"),
            ("loss", "#B04600"),
            ("rate", "#6E4696"),
            ("anchors", "#2E7D50"),
            ("entropy-1", "#AAB2BA"),
        ] {
            let path = folder.path().join(name).with_extension("svg");
            let svg = std::fs::read_to_string(path).unwrap();
            assert!(svg.contains(colour), "{name}");
            assert!(svg.contains("<text"), "{name}: letters and axes");
        }
    }

    #[test]
    fn every_picture_is_in_one_bar() {
        let anchors = vec![true, true, false, false];
        let found = of_entropies(anchors.clone(), vec![0.0, 1.0, 2.0, f32::NAN]);
        let svg = entropy_svg(&found).unwrap();
        assert_eq!(svg.matches("fill=\"#005EA2\"").count(), 2);
        assert_eq!(svg.matches("fill=\"#AAB2BA\"").count(), 1);
        entropy_svg(&of_entropies(anchors, vec![1.0; 4])).unwrap();
    }
}
