//! A run as a picture: kNN accuracy over the epochs with its floors, and the loss under it.

use std::ops::Range;
use std::path::Path;

use anchorhood_files::AtomicFile;
use anchorhood_train::{EpochEnded, Subject};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::metrics::MOST_EPOCHS;
use crate::summary::floor_name;
use crate::{ReportError, Summary};

const SIZE: (u32, u32) = (760, 520);
/// One of several beside each other.
const PANEL: (u32, u32) = (430, 250);
const ACCURACY: RGBColor = RGBColor(0, 94, 162);
const LOSS: RGBColor = RGBColor(176, 70, 0);
pub(crate) const FLOOR: RGBColor = RGBColor(110, 110, 110);
const ROUND: RGBColor = RGBColor(205, 205, 205);
const RATE: RGBColor = RGBColor(110, 70, 150);
/// Colours of figures that share a chart, in turn.
const FIGURES: [RGBColor; 5] = [ACCURACY, LOSS, CONSISTENT, RATE, FLOOR];
pub(crate) const CONSISTENT: RGBColor = RGBColor(46, 125, 80);
pub(crate) const GRID: RGBColor = RGBColor(235, 235, 235);

/// More points than this make a line by themselves.
const MOST_DOTS: usize = 60;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
pub(crate) type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;
pub(crate) type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Writes `curve.svg`.
pub fn write_curve(summary: &Summary, path: &Path) -> Result<(), ReportError> {
    let svg = curve_svg(summary)?;
    AtomicFile::write(path, svg.as_bytes())
        .map_err(|source| ReportError::Io { path: path.into(), source })
}

/// The picture as SVG. Without labels it is the loss alone.
pub fn curve_svg(summary: &Summary) -> Result<String, ReportError> {
    let mut svg = String::new();
    draw(summary, &mut svg).map_err(|e| ReportError::Drawing(e.to_string()))?;
    Ok(svg)
}

fn draw(summary: &Summary, svg: &mut String) -> Drawn {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(&title(summary), ("sans-serif", 17))?;
    if summary.has_accuracy() {
        let (top, bottom) = root.split_vertically(300);
        draw_accuracy(summary, &top)?;
        draw_loss(summary, &bottom)?;
    } else {
        draw_loss(summary, &root)?;
    }
    root.present()?;
    Ok(())
}

fn title(summary: &Summary) -> String {
    match &summary.started {
        Some(s) => format!("{}: {} pictures, {}, seed {}", s.data, s.pictures, s.network, s.seed),
        None => "A run".into(),
    }
}

pub(crate) fn draw_accuracy(summary: &Summary, area: &Area) -> Drawn {
    let floors = summary.floors.iter();
    let floors = floors.map(|f| (f.name, f.accuracy.top1)).collect();
    let judged = summary.evaluations.iter();
    let judged = judged.map(|e| (e.subject, e.accuracy.top1)).collect();
    draw_shares(summary, area, "kNN top-1, %", floors, judged)
}

pub(crate) fn draw_label_free(summary: &Summary, area: &Area) -> Drawn {
    let floors = summary.label_free.iter().filter_map(|e| {
        let name = floor_name(e.subject)?;
        Some((name, e.score))
    });
    let judged = summary.label_free.iter();
    let judged = judged.map(|e| (e.subject, e.score)).collect();
    draw_shares(summary, area, "score without labels, %", floors.collect(), judged)
}

/// The pretext tasks of several runs, a panel with its name for each, two beside each other.
pub fn pretext_svg(runs: &[(&str, Summary)]) -> Result<String, ReportError> {
    let rows = runs.len().div_ceil(2).max(1);
    let size = (2 * PANEL.0, rows as u32 * PANEL.1);
    let mut svg = String::new();
    draw_panels(runs, SVGBackend::with_string(&mut svg, size), rows)
        .map_err(|e| ReportError::Drawing(e.to_string()))?;
    Ok(svg)
}

fn draw_panels(runs: &[(&str, Summary)], backend: SVGBackend, rows: usize) -> Drawn {
    let root = backend.into_drawing_area();
    root.fill(&WHITE)?;
    for ((name, summary), panel) in runs.iter().zip(root.split_evenly((rows, 2))) {
        let style = ("sans-serif", 15).into_font().color(&BLACK);
        draw_pretext(summary, &panel.titled(name, style)?)?;
    }
    root.present()?;
    Ok(())
}

/// Every figure of the pretext task as a curve with its name at its end, and what guessing would
/// reach as a dashed line.
pub(crate) fn draw_pretext(summary: &Summary, area: &Area) -> Drawn {
    let mut chart = axes(summary, area, 0.0..104.0, "%", true)?;
    let end = last_epoch(summary);
    let mut names: Vec<&str> = vec![];
    for figure in summary.pretext.iter().flat_map(|p| &p.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    for (name, colour) in names.into_iter().zip(FIGURES.into_iter().cycle()) {
        let (points, chance) = pretext_of(summary, name);
        if let Some(chance) = chance {
            let line = [(0.0, 100.0 * chance), (end, 100.0 * chance)];
            chart.draw_series(DashedLineSeries::new(line, 6, 4, FLOOR.stroke_width(1)))?;
        }
        curve(&mut chart, &points, colour)?;
        let Some(last) = points.last() else { continue };
        let (side, offset) = match last.1 > 90.0 {
            true => (VPos::Top, -2.5),
            false => (VPos::Bottom, 2.5),
        };
        let style = ("sans-serif", 12).into_font().color(&colour);
        let style = style.pos(Pos::new(HPos::Right, side));
        let text = format!("{name} {:.1}", last.1);
        chart.draw_series([Text::new(text, (end, last.1 + offset), style)])?;
    }
    Ok(())
}

/// A figure over the epochs, in percent, and the last that was said of guessing it.
fn pretext_of(summary: &Summary, name: &str) -> (Vec<(f64, f64)>, Option<f64>) {
    let of = summary.pretext.iter().flat_map(|p| {
        let at = epoch_number(summary, p.round, p.epoch);
        p.figures.iter().map(move |f| (at, f))
    });
    let own: Vec<_> = of.filter(|(_, f)| f.name == name).collect();
    let chance = own.iter().rev().find_map(|(_, f)| f.chance);
    (own.iter().map(|(at, f)| (*at, 100.0 * f.share)).collect(), chance)
}

/// Shares over the epochs as a curve, and those of the floors as dashed lines under it.
fn draw_shares(
    summary: &Summary,
    area: &Area,
    label: &str,
    floors: Vec<(&'static str, f64)>,
    judged: Vec<(Subject, f64)>,
) -> Drawn {
    let mut floors: Vec<(&str, f64)> = floors.iter().map(|f| (f.0, 100.0 * f.1)).collect();
    floors.sort_by(|a, b| b.1.total_cmp(&a.1));
    let point = |(subject, share): &(Subject, f64)| match *subject {
        Subject::Trained { round, epoch } => {
            Some((epoch_number(summary, round, epoch), 100.0 * share))
        }
        Subject::RawPixels | Subject::Untrained | Subject::Before | Subject::Model { .. } => None,
    };
    let points: Vec<(f64, f64)> = judged.iter().filter_map(point).collect();
    let all = points.iter().map(|p| p.1).chain(floors.iter().map(|f| f.1));
    let high = all.fold(0.0, f64::max);
    let y = 0.0..(high * 1.12).clamp(10.0, 100.0);
    let mut chart = axes(summary, area, y.clone(), label, false)?;
    let end = last_epoch(summary);
    // Names sit at the right, where curves have left the floor: the higher floor's above its line,
    // the lower's below.
    for (i, (name, value)) in floors.into_iter().enumerate() {
        let line = [(0.0, value), (end, value)];
        chart.draw_series(DashedLineSeries::new(line, 6, 4, FLOOR.stroke_width(1)))?;
        let (side, offset) = match i == 0 {
            true => (VPos::Bottom, 0.015),
            false => (VPos::Top, -0.015),
        };
        let style = ("sans-serif", 12).into_font().color(&FLOOR);
        let style = style.pos(Pos::new(HPos::Right, side));
        let place = (end, value + offset * y.end);
        chart.draw_series([Text::new(format!("{name} {value:.1}"), place, style)])?;
    }
    curve(&mut chart, &points, ACCURACY)
}

pub(crate) fn draw_loss(summary: &Summary, area: &Area) -> Drawn {
    let mut points = per_epoch(summary, |e| e.loss);
    points.retain(|p| p.1.is_finite());
    let low = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let room = ((high - low) * 0.08).max(1e-3);
    let y = (low - room)..(high + room);
    let mut chart = axes(summary, area, y, "loss", true)?;
    curve(&mut chart, &points, LOSS)
}

pub(crate) fn draw_rate(summary: &Summary, area: &Area) -> Drawn {
    let points = per_epoch(summary, |e| e.rate);
    let high = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let y = 0.0..(high * 1.1).max(1e-6);
    let mut chart = axes(summary, area, y, "learning rate", true)?;
    curve(&mut chart, &points, RATE)
}

fn axes<'a, 'b>(
    summary: &Summary,
    area: &'a Area<'b>,
    y: Range<f64>,
    name: &str,
    epochs: bool,
) -> Drawn<Chart<'a, 'b>> {
    let range = y.end - y.start;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(20)
        .set_label_area_size(LabelAreaPosition::Left, 58)
        .set_label_area_size(LabelAreaPosition::Bottom, if epochs { 44 } else { 26 })
        .build_cartesian_2d(0.0..last_epoch(summary), y)?;
    let value = |v: &f64| match range {
        8.0.. => format!("{v:.0}"),
        0.2.. => format!("{v:.2}"),
        0.002.. => format!("{v:.4}"),
        _ => format!("{v:.1e}"),
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .x_labels((last_epoch(summary) as usize + 1).min(10)) // whole epochs only
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&value)
        .y_desc(name)
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 13));
    if epochs {
        mesh.x_desc("epochs (a grey line begins a round)");
    }
    mesh.draw()?;
    drop(mesh);
    for start in round_starts(summary) {
        let range = chart.y_range();
        let line = [(start, range.start), (start, range.end)];
        chart.draw_series(LineSeries::new(line, ROUND.stroke_width(1)))?;
    }
    Ok(chart)
}

/// A line, with dots where there are few.
pub(crate) fn curve(chart: &mut Chart, points: &[(f64, f64)], colour: RGBColor) -> Drawn {
    chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
    if points.len() <= MOST_DOTS {
        let dots = points.iter().map(|p| Circle::new(*p, 3, colour.filled()));
        chart.draw_series(dots)?;
    }
    Ok(())
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

fn last_epoch(summary: &Summary) -> f64 {
    let ended = summary.epochs.iter().map(|e| (e.round, e.epoch));
    let told = summary.pretext.iter().map(|p| (p.round, p.epoch));
    let numbers = ended.chain(told);
    let numbers = numbers.map(|(round, epoch)| epoch_number(summary, round, epoch));
    numbers.fold(1.0, f64::max)
}

fn round_starts(summary: &Summary) -> Vec<f64> {
    let later = summary.epochs.iter().filter(|e| e.epoch == 0 && e.round > 0);
    later.map(|e| epoch_number(summary, e.round, 0) - 1.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;
    use anchorhood_train::{Event, PretextMeasured, PretextShare};

    #[test]
    fn shows_the_floors_and_every_point() {
        let svg = curve_svg(&Summary::of(&example(true))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("raw pixels 20.0") && svg.contains("untrained 25.0"));
        assert_eq!(svg.matches("<circle").count(), 4 + 4, "accuracies and losses");
    }

    #[test]
    fn tasks_of_several_runs_have_a_panel_each() {
        let told = |last: usize| {
            let share = |epoch| PretextShare {
                name: "accuracy".into(),
                share: epoch as f64 / 10.0,
                chance: Some(0.1),
            };
            let epochs = (0..=last).map(|epoch| {
                Event::Pretext(PretextMeasured { round: 0, epoch, figures: vec![share(epoch)] })
            });
            Summary::of(&epochs.collect::<Vec<_>>())
        };
        let runs = [("jigsaw", told(5)), ("nat", told(2)), ("colour", told(9))];
        let svg = pretext_svg(&runs).unwrap();
        for text in ["jigsaw", "accuracy 50.0", "accuracy 20.0", "accuracy 90.0"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 6 + 3 + 10);
        pretext_svg(&[]).unwrap();
    }

    #[test]
    fn draws_a_run_without_labels_and_one_without_epochs() {
        let svg = curve_svg(&Summary::of(&example(false))).unwrap();
        assert!(!svg.contains("kNN"));
        assert_eq!(svg.matches("<circle").count(), 4);
        curve_svg(&Summary::default()).unwrap();
    }
}
