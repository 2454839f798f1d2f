//! The charts of a page: one idea each, without a title (the page has that), in colours that the
//! page's style replaces.
//!
//! A chart's SVG has no background and few colours. `page/style.css` names each of them and gives
//! it one for light and one for dark, so that a page drawn once is right in both.

use std::path::Path;

use anchorhood_discover::Neighbourhoods;
use anchorhood_files::AtomicFile;
use plotters::prelude::*;
use rayon::prelude::*;

use crate::curve::{self, Area, CONSISTENT, Drawn};
use crate::{ReportError, RoundNeighbourhoods, Summary};

const SIZE: (u32, u32) = (450, 240);
/// Bars of a histogram.
const BARS: usize = 48;
const CHOSEN: RGBColor = RGBColor(0, 94, 162);
const LEFT: RGBColor = RGBColor(170, 178, 186);
const CUT: RGBColor = RGBColor(176, 70, 0);

/// A chart with the name of its file, without `.svg`.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// `loss`, `knn`, `label_free`, `pretext`, `rate`, `anchors`.
    pub file: &'static str,
    /// What it shows, in words.
    pub title: &'static str,
    /// The drawing.
    pub svg: String,
}

/// The curves of a run: loss, accuracy where there are labels, what is told without them, learning
/// rate, anchors and their consistency.
pub fn charts(summary: &Summary) -> Result<Vec<Chart>, ReportError> {
    let chart = |(file, title, drawing): (_, _, Drawing)| {
        let svg = drawing.svg()?;
        Ok(Chart { file, title, svg })
    };
    drawings(summary).into_iter().map(chart).collect()
}

/// How the entropies of a round lie, and which of them the curriculum chose.
pub fn entropy_svg(found: &Neighbourhoods) -> Result<String, ReportError> {
    Drawing::Entropy(found).svg()
}

/// Writes every chart of a run into a folder, as SVG.
pub(crate) fn write_charts(
    folder: &Path,
    summary: &Summary,
    rounds: &[RoundNeighbourhoods],
) -> Result<(), ReportError> {
    let curves = drawings(summary).into_iter();
    let curves = curves.map(|(file, _, drawing)| (file.to_owned(), drawing));
    let entropies =
        rounds.iter().map(|r| (format!("entropy-{}", r.round), Drawing::Entropy(&r.found)));
    let all: Vec<(String, Drawing)> = curves.chain(entropies).collect();
    all.par_iter().try_for_each(|(name, drawing)| {
        let path = folder.join(format!("{name}.svg"));
        AtomicFile::write(&path, drawing.svg()?.as_bytes()).map_err(ReportError::io(&path))
    })
}

/// The curves by file and title.
fn drawings(summary: &Summary) -> Vec<(&'static str, &'static str, Drawing<'_>)> {
    let mut all = vec![];
    if summary.has_accuracy() {
        all.push(("knn", "kNN accuracy", Drawing::Accuracy(summary)));
    }
    if !summary.label_free.is_empty() {
        let title = "Score without labels: do changed copies find their place?";
        all.push(("label_free", title, Drawing::LabelFree(summary)));
    }
    if !summary.pretext.is_empty() {
        let title = "The pretext task: what it is taught by";
        all.push(("pretext", title, Drawing::Pretext(summary)));
    }
    all.push(("loss", "Loss", Drawing::Loss(summary)));
    all.push(("rate", "Learning rate", Drawing::Rate(summary)));
    if summary.rounds.iter().any(|r| r.anchors.is_some()) {
        let title = "Anchors and their consistency";
        all.push(("anchors", title, Drawing::Anchors(summary)));
    }
    all
}

/// What can be drawn, on whatever there is to draw on.
#[derive(Clone, Copy)]
enum Drawing<'a> {
    Accuracy(&'a Summary),
    LabelFree(&'a Summary),
    Pretext(&'a Summary),
    Loss(&'a Summary),
    Rate(&'a Summary),
    Anchors(&'a Summary),
    Entropy(&'a Neighbourhoods),
}

impl Drawing<'_> {
    fn draw(self, svg: &mut String) -> Result<(), ReportError> {
        let area = &SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let drawn = match self {
            Drawing::Accuracy(summary) => curve::draw_accuracy(summary, area),
            Drawing::LabelFree(summary) => curve::draw_label_free(summary, area),
            Drawing::Pretext(summary) => curve::draw_pretext(summary, area),
            Drawing::Loss(summary) => curve::draw_loss(summary, area),
            Drawing::Rate(summary) => curve::draw_rate(summary, area),
            Drawing::Anchors(summary) => draw_anchors(summary, area),
            Drawing::Entropy(found) => draw_entropy(found, area),
        };
        let drawn = drawn.and_then(|()| Ok(area.present()?));
        drawn.map_err(|e| ReportError::Drawing(e.to_string()))
    }

    fn svg(self) -> Result<String, ReportError> {
        let mut svg = String::new();
        self.draw(&mut svg)?;
        Ok(svg)
    }
}

fn draw_anchors(summary: &Summary, area: &Area) -> Drawn {
    let pictures = summary.started.as_ref().map_or(0, |s| s.pictures);
    let later = summary.rounds.iter().filter(|r| r.round > 0);
    let share = later.clone().filter_map(|r| {
        let anchors = r.anchors?;
        Some((r.round as f64, 100.0 * anchors as f64 / pictures.max(anchors).max(1) as f64))
    });
    let consistent = later.filter_map(|r| {
        let share = r.consistency?.share()?;
        Some((r.round as f64, 100.0 * share))
    });
    let (share, consistent): (Vec<_>, Vec<_>) = (share.collect(), consistent.collect());
    let last = share.iter().map(|p| p.0).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .set_label_area_size(LabelAreaPosition::Left, 54)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(0.5..last + 0.5, 0.0..108.0)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(curve::GRID)
        .light_line_style(TRANSPARENT)
        .x_labels((last as usize + 1).min(64))
        .x_label_formatter(&|x| match x.fract() == 0.0 {
            true => format!("{x:.0}"),
            false => String::new(),
        })
        .y_labels(6)
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc(match consistent.is_empty() {
            true => "round",
            false => "round (left: anchors; right: of these consistent)",
        })
        .y_desc("%")
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 13))
        .draw()?;
    let bar = |(round, value): &(f64, f64), from: f64, to: f64, colour: RGBColor| {
        Rectangle::new([(round + from, 0.0), (round + to, *value)], colour.filled())
    };
    let alone = consistent.is_empty();
    let wide = if alone { 0.3 } else { -0.02 };
    chart.draw_series(share.iter().map(|p| bar(p, -0.3, wide, CHOSEN)))?;
    chart.draw_series(consistent.iter().map(|p| bar(p, 0.02, 0.3, CONSISTENT)))?;
    Ok(())
}

fn draw_entropy(found: &Neighbourhoods, area: &Area) -> Drawn {
    let known = |i: &usize| found.entropy()[*i].is_finite();
    let known: Vec<usize> = (0..found.entropy().len()).filter(known).collect();
    let value = |i: usize| f64::from(found.entropy()[i]);
    let all = || known.iter().map(|i| value(*i));
    let (low, high) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
    let bar = |v: f64| (((v - low) / (high - low) * BARS as f64).max(0.0) as usize).min(BARS - 1);
    let (mut chosen, mut left) = (vec![0usize; BARS], vec![0usize; BARS]);
    for i in &known {
        let side = if found.anchors()[*i] { &mut chosen } else { &mut left };
        side[bar(value(*i))] += 1;
    }
    let tallest = chosen.iter().zip(&left).map(|(a, b)| a + b).max();
    let tallest = tallest.unwrap_or(0).max(1) as f64 * 1.1;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .set_label_area_size(LabelAreaPosition::Left, 54)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(low..high, 0.0..tallest)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(curve::GRID)
        .light_line_style(TRANSPARENT)
        .x_labels(7)
        .y_labels(5)
        .x_label_formatter(&|x| format!("{x:.1}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc("entropy (sure at the left)")
        .y_desc("pictures")
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 13))
        .draw()?;
    let step = (high - low) / BARS as f64;
    for b in 0..BARS {
        let (x, gap) = (low + b as f64 * step, 0.08 * step);
        let (foot, top) = (chosen[b] as f64, (chosen[b] + left[b]) as f64);
        let at = |y: [f64; 2]| [(x + gap, y[0]), (x + step - gap, y[1])];
        if chosen[b] > 0 {
            chart.draw_series([Rectangle::new(at([0.0, foot]), CHOSEN.filled())])?;
        }
        if left[b] > 0 {
            chart.draw_series([Rectangle::new(at([foot, top]), LEFT.filled())])?;
        }
    }
    let anchors = known.iter().filter(|i| found.anchors()[**i]);
    let cut = anchors.map(|i| value(*i)).fold(f64::NEG_INFINITY, f64::max);
    if cut.is_finite() {
        let line = [(cut, 0.0), (cut, tallest)];
        chart.draw_series(DashedLineSeries::new(line, 5, 4, CUT.stroke_width(2)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;
    use anchorhood_train::{Event, PretextMeasured, PretextShare};

    #[test]
    fn a_run_with_labels_has_a_chart_more_than_one_without() {
        let files = |labels| {
            let charts = charts(&Summary::of(&example(labels))).unwrap();
            assert!(charts.iter().all(|c| c.svg.trim_end().ends_with("</svg>")));
            charts.iter().map(|c| c.file).collect::<Vec<_>>()
        };
        assert_eq!(files(true), ["knn", "label_free", "loss", "rate", "anchors"]);
        assert_eq!(files(false), ["label_free", "loss", "rate", "anchors"]);
        charts(&Summary::default()).unwrap();
    }

    #[test]
    fn a_pretext_task_has_a_chart_with_its_figures_and_chance() {
        let mut events = example(false);
        let figure = |name: &str, share, chance| PretextShare { name: name.into(), share, chance };
        for epoch in 0..2 {
            events.push(Event::Pretext(PretextMeasured {
                round: 0,
                epoch,
                figures: vec![
                    figure("accuracy", 0.2 + 0.2 * epoch as f64, Some(0.1)),
                    figure("largest cluster", 0.05, None),
                ],
            }));
        }
        let charts = charts(&Summary::of(&events)).unwrap();
        let own = charts.iter().find(|c| c.file == "pretext").unwrap();
        assert!(own.svg.contains("accuracy 40.0"), "{}", own.svg);
        assert!(own.svg.contains("largest cluster 5.0"));
        assert_eq!(own.svg.matches("<circle").count(), 4);
    }

    fn of_entropies(anchors: Vec<bool>, entropy: Vec<f32>) -> Neighbourhoods {
        Neighbourhoods::from_parts(0, vec![], anchors, entropy).unwrap()
    }

    #[test]
    fn every_chart_is_a_file_that_draws_in_its_colour() {
        let folder = tempfile::tempdir().unwrap();
        let found = RoundNeighbourhoods {
            round: 1,
            found: of_entropies(vec![true, false], vec![0.0, 1.0]),
        };
        let summary = Summary::of(&example(true));
        write_charts(folder.path(), &summary, &[found]).unwrap();
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
        let flat = of_entropies(anchors, vec![1.0; 4]);
        entropy_svg(&flat).unwrap();
    }
}
