//! A chart as data, axes and what is drawn between them, and as SVG.
//!
//! A chart on a page has no background and few colours. `page/style.css` names each of them and
//! gives it one for light and one for dark, so that a page drawn once is right in both.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ReportError;

pub use plotters::style::RGBColor;

/// Ours, and what was chosen.
pub const BLUE: RGBColor = RGBColor(0, 94, 162);
/// What goes against it.
pub const ORANGE: RGBColor = RGBColor(176, 70, 0);
/// What is of one class.
pub const GREEN: RGBColor = RGBColor(46, 125, 80);
/// The learning rate.
pub const VIOLET: RGBColor = RGBColor(110, 70, 150);
/// What is to be beaten, and words.
pub const GREY: RGBColor = RGBColor(110, 110, 110);
/// What is beside it: the rest, the paper's.
pub const PALE: RGBColor = RGBColor(170, 178, 186);
/// A round's beginning.
pub(crate) const FAINT: RGBColor = RGBColor(205, 205, 205);
const GRID: RGBColor = RGBColor(235, 235, 235);
/// Colours of lines that share a chart, in turn.
pub const LINES: [RGBColor; 8] = [
    BLUE,
    ORANGE,
    GREEN,
    VIOLET,
    RGBColor(194, 59, 59),
    RGBColor(0, 122, 135),
    RGBColor(143, 107, 0),
    RGBColor(176, 48, 122),
];

/// More points than this make a line by themselves.
const MOST_DOTS: usize = 60;
/// Pixels between a point and the text beside it.
const BESIDE: i32 = 8;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Drawn = Result<(), Box<dyn Error>>;

/// One side of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it begins and ends with.
    pub range: Range<f64>,
    /// What it is, in words; may be empty.
    pub name: String,
    /// Numbers along it, about.
    pub labels: usize,
    /// Their decimals, where the range does not say: of none only whole numbers are shown.
    pub decimals: Option<usize>,
}

impl Axis {
    /// One whose numbers follow from its range.
    pub fn new(range: Range<f64>, name: impl Into<String>) -> Axis {
        Axis { range, name: name.into(), labels: 6, decimals: None }
    }

    /// One of so many whole numbers.
    pub fn whole(range: Range<f64>, name: impl Into<String>, labels: usize) -> Axis {
        Axis { labels, decimals: Some(0), ..Axis::new(range, name) }
    }

    fn label(&self, value: f64) -> String {
        match (self.decimals, self.range.end - self.range.start) {
            (Some(0), _) if (value - value.round()).abs() > 1e-6 => String::new(),
            (Some(decimals), _) => format!("{value:.decimals$}"),
            (None, 8.0..) => format!("{value:.0}"),
            (None, 0.2..) => format!("{value:.2}"),
            (None, 0.002..) => format!("{value:.4}"),
            (None, _) => format!("{value:.1e}"),
        }
    }
}

/// Where a text is, as seen from its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left of it.
    Left,
    /// Right of it, and so many pixels farther down.
    Right(i32),
    /// Above, ending there.
    Above,
    /// Below, ending there.
    Below,
}

#[derive(Clone, Debug)]
enum Mark {
    Curve(Vec<(f64, f64)>, RGBColor),
    Line([(f64, f64); 2], RGBColor),
    Dashed([(f64, f64); 2], ShapeStyle),
    Bar([(f64, f64); 2], RGBColor),
    Dot((f64, f64), RGBColor),
    Text(String, (f64, f64), Side, RGBColor),
}

/// Axes and marks, which are drawn in their order.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Over it; may be empty.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Pixels that are left free for texts at the left of the chart, instead of numbers.
    pub names_left: Option<u32>,
    /// And at its right.
    pub names_right: u32,
    marks: Vec<Mark>,
}

impl Chart {
    /// An empty one.
    pub fn new(x: Axis, y: Axis) -> Chart {
        let caption = String::new();
        Chart { caption, x, y, names_left: None, names_right: 20, marks: vec![] }
    }

    /// A line through points, with dots where there are few.
    pub fn curve(&mut self, points: Vec<(f64, f64)>, colour: RGBColor) {
        self.marks.push(Mark::Curve(points, colour));
    }

    /// A thin line.
    pub fn line(&mut self, ends: [(f64, f64); 2], colour: RGBColor) {
        self.marks.push(Mark::Line(ends, colour));
    }

    /// A level to beat, from one side to the other.
    pub fn level(&mut self, value: f64) {
        let ends = [(self.x.range.start, value), (self.x.range.end, value)];
        self.marks.push(Mark::Dashed(ends, GREY.stroke_width(1)));
    }

    /// A place that parts what is left of it from what is right of it.
    pub fn cut(&mut self, x: f64) {
        let ends = [(x, self.y.range.start), (x, self.y.range.end)];
        self.marks.push(Mark::Dashed(ends, ORANGE.stroke_width(2)));
    }

    /// A bar between two corners.
    pub fn bar(&mut self, corners: [(f64, f64); 2], colour: RGBColor) {
        self.marks.push(Mark::Bar(corners, colour));
    }

    /// A dot.
    pub fn dot(&mut self, at: (f64, f64), colour: RGBColor) {
        self.marks.push(Mark::Dot(at, colour));
    }

    /// Some words.
    pub fn text(&mut self, text: String, at: (f64, f64), side: Side, colour: RGBColor) {
        self.marks.push(Mark::Text(text, at, side, colour));
    }

    /// As a page has it, without a background.
    pub fn svg(&self, size: (u32, u32)) -> Result<String, ReportError> {
        svg(size, |area| self.draw(area))
    }

    /// As a file of its own.
    pub fn svg_on_white(&self, size: (u32, u32)) -> Result<String, ReportError> {
        svg(size, |area| {
            area.fill(&WHITE)?;
            self.draw(area)
        })
    }

    pub(crate) fn draw(&self, area: &Area) -> Drawn {
        let mut builder = ChartBuilder::on(area);
        if !self.caption.is_empty() {
            builder.caption(&self.caption, ("sans-serif", 15));
        }
        let (x, y) = (&self.x, &self.y);
        let mut chart = builder
            .margin(8)
            .margin_right(self.names_right)
            .set_label_area_size(LabelAreaPosition::Left, self.names_left.unwrap_or(58))
            .set_label_area_size(LabelAreaPosition::Bottom, if x.name.is_empty() { 26 } else { 44 })
            .build_cartesian_2d(x.range.clone(), y.range.clone())?;
        let (x_label, y_label) = (|v: &f64| x.label(*v), |v: &f64| y.label(*v));
        let mut mesh = chart.configure_mesh();
        mesh.bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .x_labels(x.labels)
            .y_labels(y.labels)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label)
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13));
        if !x.name.is_empty() {
            mesh.x_desc(&x.name);
        }
        if !y.name.is_empty() {
            mesh.y_desc(&y.name);
        }
        match self.names_left {
            Some(_) => mesh.disable_y_mesh().disable_y_axis().y_labels(0),
            None => mesh.disable_x_mesh(),
        };
        mesh.draw()?;
        drop(mesh);
        for mark in &self.marks {
            match mark {
                Mark::Curve(points, colour) => {
                    let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
                    chart.draw_series(line)?;
                    let dots = points.iter().filter(|_| points.len() <= MOST_DOTS);
                    chart.draw_series(dots.map(|p| Circle::new(*p, 3, colour.filled())))?;
                }
                Mark::Line(ends, colour) => {
                    chart.draw_series(LineSeries::new(*ends, colour.stroke_width(1)))?;
                }
                Mark::Dashed(ends, style) => {
                    chart.draw_series(DashedLineSeries::new(*ends, 6, 4, *style))?;
                }
                Mark::Bar(corners, colour) => {
                    chart.draw_series([Rectangle::new(*corners, colour.filled())])?;
                }
                Mark::Dot(at, colour) => {
                    chart.draw_series([Circle::new(*at, 5, colour.filled())])?;
                }
                Mark::Text(text, at, side, colour) => {
                    let (place, across, up) = match side {
                        Side::Left => ((-BESIDE, 0), HPos::Right, VPos::Center),
                        Side::Right(down) => ((BESIDE, *down), HPos::Left, VPos::Center),
                        Side::Above => ((0, 0), HPos::Right, VPos::Bottom),
                        Side::Below => ((0, 0), HPos::Right, VPos::Top),
                    };
                    let style = ("sans-serif", 12).into_font().color(colour);
                    let text = Text::new(text.clone(), place, style.pos(Pos::new(across, up)));
                    chart.draw_series([EmptyElement::at(*at) + text])?;
                }
            }
        }
        Ok(())
    }
}

/// A drawing.
pub(crate) fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area) -> Drawn,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = draw(&area).and_then(|()| Ok(area.present()?));
    drop(area);
    drawn.map_err(ReportError::drawing)?;
    Ok(svg)
}
