//! Results as pictures (SVG): bars beside the paper's, a line over a number, neighbourhoods over
//! the rounds.

use std::error::Error;

use anchorhood_report::ReportError;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::RoundFigures;
use crate::{Cell, Experiment, Plot, Results};

const OURS: RGBColor = RGBColor(0, 94, 162);
const PAPER: RGBColor = RGBColor(170, 170, 170);
const WRONG: RGBColor = RGBColor(176, 70, 0);
const GRID: RGBColor = RGBColor(235, 235, 235);

type Drawn = Result<(), Box<dyn Error>>;

/// The plots of an experiment, each as SVG.
pub fn plots(results: &Results, experiment: &Experiment) -> Result<Vec<String>, ReportError> {
    let mut all = vec![];
    let mut add = |size: (u32, u32), draw: &dyn Fn(&Area) -> Drawn| {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let drawn = root.fill(&WHITE).map_err(Into::into);
            let drawn = drawn.and_then(|()| draw(&root));
            let drawn = drawn.and_then(|()| root.present().map_err(Into::into));
            drawn.map_err(|e: Box<dyn Error>| ReportError::Drawing(e.to_string()))?;
        }
        all.push(svg);
        Ok::<(), ReportError>(())
    };
    match experiment.plot {
        Plot::Bars => {
            for column in experiment.columns() {
                let of = |c: &&Cell| c.column == column && (c.mean.or(c.paper)).is_some();
                let cells: Vec<&Cell> = results.cells.iter().filter(of).collect();
                if !cells.is_empty() {
                    let height = 70 + 34 * cells.len() as u32;
                    add((720, height), &|root| bars(root, column, results.ours(), &cells))?;
                }
            }
        }
        Plot::Line(x) => {
            if results.cells.iter().any(|c| c.mean.is_some()) {
                add((720, 340), &|root| line(root, x, results.ours(), &results.cells))?;
            }
        }
        Plot::Quality | Plot::Attention => {
            let rounds = results.rounds();
            if rounds.iter().any(|r| r.counts.is_some()) {
                add((720, 340), &|root| quality(root, &rounds))?;
            }
        }
    }
    Ok(all)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// One row a cell, ours above the paper's.
fn bars(root: &Area, title: &str, ours: &str, cells: &[&Cell]) -> Drawn {
    let n = cells.len() as f64;
    let mut chart = ChartBuilder::on(root)
        .caption(format!("{title}: {ours} (blue), and the paper's (grey), %"), ("sans-serif", 15))
        .margin(8)
        .margin_right(40)
        .set_label_area_size(LabelAreaPosition::Left, 250)
        .set_label_area_size(LabelAreaPosition::Bottom, 24)
        .build_cartesian_2d(0.0..100.0, n..0.0)?;
    (chart.configure_mesh())
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 12))
        .draw()?;
    for (i, cell) in cells.iter().enumerate() {
        let top = i as f64;
        for (value, from, colour) in [(cell.mean, 0.12, OURS), (cell.paper, 0.5, PAPER)] {
            let Some(value) = value else { continue };
            let place = [(0.0, top + from), (value, top + from + 0.36)];
            chart.draw_series([Rectangle::new(place, colour.filled())])?;
            let style = ("sans-serif", 11).into_font().color(&BLACK);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            let at = (value + 0.8, top + from + 0.18);
            chart.draw_series([Text::new(format!("{value:.1}"), at, style)])?;
        }
        if let (Some(mean), Some(std)) = (cell.mean, cell.std) {
            let y = top + 0.3;
            let whisker = [(mean - std, y), (mean + std, y)];
            chart.draw_series([PathElement::new(whisker, BLACK.stroke_width(1))])?;
        }
        let (x, y) = chart.backend_coord(&(0.0, top + 0.5));
        let style = ("sans-serif", 12).into_font().color(&BLACK);
        let style = style.pos(Pos::new(HPos::Right, VPos::Center));
        root.draw(&Text::new(cell.row.clone(), (x - 8, y), style))?;
    }
    Ok(())
}

/// Accuracy over a number; the paper's points are grey.
fn line(root: &Area, x: &str, name: &str, cells: &[Cell]) -> Drawn {
    let points = |value: fn(&Cell) -> Option<f64>| -> Vec<(f64, f64)> {
        cells.iter().filter_map(|c| c.x.zip(value(c))).collect()
    };
    let (ours, paper) = (points(|c| c.mean), points(|c| c.paper));
    let all: Vec<(f64, f64)> = ours.iter().chain(&paper).copied().collect();
    let (low, high) = range(all.iter().map(|p| p.1));
    let right = all.iter().map(|p| p.0).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(root)
        .caption(format!("kNN top-1, %: {name} (blue), and the paper's (grey)"), ("sans-serif", 15))
        .margin(8)
        .margin_right(24)
        .set_label_area_size(LabelAreaPosition::Left, 50)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(0.0..right * 1.05, low..high)?;
    (chart.configure_mesh())
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .x_desc(x)
        .x_label_formatter(&|v| format!("{v:.0}"))
        .y_label_formatter(&|v| format!("{v:.1}"))
        .label_style(("sans-serif", 12))
        .draw()?;
    chart.draw_series(LineSeries::new(ours.iter().copied(), OURS.stroke_width(2)))?;
    let dots = ours.iter().map(|p| Circle::new(*p, 4, OURS.filled()));
    chart.draw_series(dots)?;
    let dots = paper.iter().map(|p| Circle::new(*p, 5, PAPER.filled()));
    chart.draw_series(dots)?;
    for cell in cells {
        if let (Some(x), Some(mean), Some(std)) = (cell.x, cell.mean, cell.std) {
            let whisker = [(x, mean - std), (x, mean + std)];
            chart.draw_series([PathElement::new(whisker, OURS.stroke_width(1))])?;
        }
    }
    Ok(())
}

/// Consistent and inconsistent neighbourhoods over the rounds.
fn quality(root: &Area, rounds: &[RoundFigures]) -> Drawn {
    let of = |which: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let counted = rounds.iter().filter_map(|r| r.counts.map(|c| (r.round, which(c))));
        counted.map(|(r, n)| (r as f64, n)).collect()
    };
    let (yes, no) = (of(|c| c.0), of(|c| c.1));
    let most = yes.iter().chain(&no).map(|p| p.1).fold(1.0, f64::max);
    let last = rounds.iter().map(|r| r.round).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(root)
        .caption("Neighbourhoods: consistent (blue) and inconsistent (orange)", ("sans-serif", 15))
        .margin(8)
        .margin_right(24)
        .set_label_area_size(LabelAreaPosition::Left, 64)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(0.8..last as f64 + 0.2, 0.0..most * 1.08)?;
    (chart.configure_mesh())
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .x_desc("round")
        .x_labels(last)
        .x_label_formatter(&|v| format!("{v:.0}"))
        .y_label_formatter(&|v| format!("{v:.0}"))
        .label_style(("sans-serif", 12))
        .draw()?;
    for (points, colour) in [(yes, OURS), (no, WRONG)] {
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        let dots = points.iter().map(|p| Circle::new(*p, 4, colour.filled()));
        chart.draw_series(dots)?;
    }
    Ok(())
}

/// Some room around the values, within 0 and 100.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((100.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let room = ((high - low) * 0.15).max(1.0);
    ((low - room).max(0.0), (high + room).min(100.0))
}
