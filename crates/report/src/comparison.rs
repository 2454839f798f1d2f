//! Several runs in one picture: accuracy over the seconds each has taken, a line a run, with its
//! name at the line's end.

use anchorhood_train::{Event, Subject};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ReportError;
use crate::curve::{Area, Drawn, FLOOR, GRID, curve};
use crate::metrics::seconds;

const SIZE: (u32, u32) = (760, 400);
/// Room for names at the right.
const NAMES: u32 = 120;
/// Pixels between two names.
const LINE: i32 = 15;
/// The page's style has each of them for light and for dark.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 94, 162),
    RGBColor(176, 70, 0),
    RGBColor(46, 125, 80),
    RGBColor(110, 70, 150),
    RGBColor(194, 59, 59),
    RGBColor(0, 122, 135),
    RGBColor(143, 107, 0),
    RGBColor(176, 48, 122),
];

/// A run, as a line.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLine {
    /// What is written at its end; nothing, if another line of its colour has the name.
    pub name: String,
    /// Lines of one number have one colour.
    pub colour: usize,
    /// Seconds, and the share of pictures that kNN was right about then.
    pub points: Vec<(f64, f64)>,
}

/// When a run's features were judged, in seconds of discovery, training and judging, and how good
/// they were. The untrained network comes first.
pub fn accuracy_over_seconds<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<(f64, f64)> {
    let (mut now, mut points) = (0.0, vec![]);
    for event in events {
        now += seconds(event);
        if let Event::Evaluated(e) = event
            && !matches!(e.subject, Subject::RawPixels | Subject::Model { .. })
        {
            points.push((now, e.accuracy.top1));
        }
    }
    points
}

/// The picture as SVG. `raw_pixels` is a fraction.
pub fn comparison_svg(lines: &[RunLine], raw_pixels: Option<f64>) -> Result<String, ReportError> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = draw(lines, raw_pixels.map(|share| 100.0 * share), &root);
    let drawn = drawn.and_then(|()| Ok(root.present()?));
    drop(root);
    drawn.map_err(|e| ReportError::Drawing(e.to_string()))?;
    Ok(svg)
}

fn draw(lines: &[RunLine], raw_pixels: Option<f64>, root: &Area) -> Drawn {
    root.fill(&WHITE)?;
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|p| p.0).fold(1.0, f64::max);
    let values = points().map(|p| 100.0 * p.1).chain(raw_pixels);
    let (low, high) = values.fold((100.0, 0.0), |(l, h), v| (f64::min(l, v), f64::max(h, v)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 100.0) };
    let room = (0.08 * (high - low)).max(1.0);
    let mut chart = ChartBuilder::on(root)
        .margin(8)
        .margin_right(NAMES)
        .set_label_area_size(LabelAreaPosition::Left, 58)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(0.0..last, (low - room).max(0.0)..(high + room).min(100.0))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .y_labels(6)
        .x_label_formatter(&|x| {
            if last < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") }
        })
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc("seconds")
        .y_desc("kNN top-1, %")
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 13))
        .draw()?;
    let mut names = vec![];
    if let Some(value) = raw_pixels {
        let line = [(0.0, value), (last, value)];
        chart.draw_series(DashedLineSeries::new(line, 6, 4, FLOOR.stroke_width(1)))?;
        names.push((format!("raw pixels {value:.1}"), value, FLOOR));
    }
    for line in lines {
        let colour = COLOURS[line.colour % COLOURS.len()];
        let points = line.points.iter().map(|(x, share)| (*x, 100.0 * share));
        let points: Vec<(f64, f64)> = points.collect();
        curve(&mut chart, &points, colour)?;
        if let (Some((_, value)), false) = (points.last(), line.name.is_empty()) {
            names.push((line.name.clone(), *value, colour));
        }
    }
    let place = |value: f64| chart.backend_coord(&(last, value));
    let at: Vec<i32> = names.iter().map(|(_, value, _)| place(*value).1).collect();
    for ((name, value, colour), y) in names.iter().zip(apart(&at)) {
        let style = ("sans-serif", 12).into_font().color(colour);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(name.as_str(), (place(*value).0 + 8, y), style))?;
    }
    Ok(())
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
    use crate::summary::tests::example;

    #[test]
    fn seconds_are_those_of_all_that_happened() {
        let points = accuracy_over_seconds(&example(true));
        assert_eq!(points.len(), 1 + 4, "the untrained network, and every evaluation");
        assert!(points.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(points[0].1, 0.25);
        assert!(accuracy_over_seconds(&example(false)).is_empty());
    }

    #[test]
    fn every_run_has_a_line_and_its_name() {
        let line = |name: &str, colour, top: f64| RunLine {
            name: name.into(),
            colour,
            points: vec![(0.0, 0.2), (30.0, top)],
        };
        let lines = [line("and 50.5", 0, 0.5), line("", 0, 0.51), line("byol", 9, 0.5)];
        let svg = comparison_svg(&lines, Some(0.3)).unwrap();
        for part in ["and 50.5", "byol", "raw pixels 30.0", "seconds"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 6);
        assert!(svg.trim_end().ends_with("</svg>"));
        comparison_svg(&[], None).unwrap();
    }

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
