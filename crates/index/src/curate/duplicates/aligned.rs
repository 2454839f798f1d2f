//! Whether two pictures show the same, pixel by pixel: laid on each other, whole, mirrored, turned
//! or one upon a part of the other.
//!
//! Two numbers tell. The correlation of the brightness finds the place, since it changes slowly
//! around it. The **detail**, that is the brightness less its mean over the 5×5 pixels around,
//! decides: skies and rooms have the same large shapes, and no two photographs have the same small
//! ones. Both are taken on a grid of 32 pixels along the longer side. Where it decides, the detail
//! is [evened]: the edge of a white border would else be all that two photographs are compared by.
//! Where a small part was changed, as by a text, most of the [tiles](retouched) still agree.

use std::ops::{Add, Sub};
use std::sync::LazyLock;

use super::orientation::{Orientation, Part};
use crate::curate::luma::{Luma, mean_and_deviation};

/// Points along the longer side of the grid.
const GRID: usize = 32;
/// Pixels around one that its surroundings are the mean of, each way.
const AROUND: usize = 2;
/// Brightness that correlates less is no copy, whatever the detail says.
const LEAST_BRIGHTNESS: f32 = 0.8;
/// Pixels along the longer side where places for a crop are tried one after the other: of a picture
/// that is more than three times as long as wide no crops are found.
const COARSE: usize = 16;
/// A crop has at least this share of the largest part of its shape.
const LEAST_SHARE: f32 = 0.5;
/// Places that look worse are not looked at closely; so many of the others are.
const WORTH_A_LOOK: f32 = 0.8;
const LOOKS: usize = 3;
/// Brightness that correlates less after a look at few pixels is not worth one at more.
const NEARLY_THERE: f32 = 0.85;
/// A part of at least this share of the picture's sides is the whole of it.
const WHOLE: f32 = 0.96;
/// Two shapes are one where they differ by less.
const SAME_SHAPE: f32 = 0.04;

/// Less detail than this, of 255, is none: noise of flat surroundings.
const LEAST_DETAIL: f32 = 0.5;
/// With detail in fewer points two images are not told apart.
const LEAST_POINTS: usize = 64;
/// Turned images whose brightness correlates less in 8×8 pixels are not compared in more.
const TURNED_ALIKE: f32 = 0.7;
/// Points along a side of what is compared first where images are turned.
const FEW: usize = 8;
/// Tiles of a grid along each side.
const TILES: usize = 4;
/// An image of which a part was changed has so much the same brightness, at least this share of its
/// tiles, and these correlate by so much.
const RETOUCHED_BRIGHTNESS: f32 = 0.3;
const RETOUCHED_TILES: f32 = 0.5;
const RETOUCHED_DETAIL: f32 = 0.9;

/// A way in which two pictures are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Aligned {
    /// How the first is turned before the second is laid on it.
    pub orientation: Orientation,
    /// What they share, as a part of the first once it is turned …
    pub on_first: Part,
    /// … and as a part of the second.
    pub on_second: Part,
    /// Correlation of their evened detail.
    pub score: f32,
    /// Whether a part of what they share is not the same.
    pub retouched: bool,
}

/// The first way that is accepted in which `b` lies on `a` with a detail that correlates by at
/// least `above`: whole, mirrored, turned, with a part that was changed, in part, mirrored in part.
/// `mirrored` is `a`, left for right.
pub(super) fn align(
    a: &Ready,
    mirrored: &Ready,
    b: &Ready,
    above: f32,
    accepts: &mut dyn FnMut(&Aligned) -> bool,
) -> Option<Aligned> {
    let wholly = |orientation, score, retouched| Aligned {
        orientation,
        on_first: Part::WHOLE,
        on_second: Part::WHOLE,
        score,
        retouched,
    };
    for orientation in Orientation::ALL {
        if let Some(score) = whole(a, b, orientation, above) {
            let found = wholly(orientation, score, false);
            if accepts(&found) {
                return Some(found);
            }
        }
    }
    let few = retouched(a, b).filter(|score| *score >= above);
    if let Some(found) = few.map(|score| wholly(Orientation::UPRIGHT, score, true))
        && accepts(&found)
    {
        return Some(found);
    }
    for (orientation, a) in [(Orientation::UPRIGHT, a), (Orientation::MIRRORED, mirrored)] {
        let in_first = best_place(a, b, above).map(|(score, part)| (score, part, Part::WHOLE));
        let in_either = in_first
            .or_else(|| best_place(b, a, above).map(|(score, part)| (score, Part::WHOLE, part)));
        let Some((score, on_first, on_second)) = in_either else {
            continue;
        };
        let found = Aligned { orientation, on_first, on_second, score, retouched: false };
        if accepts(&found) {
            return Some(found);
        }
    }
    None
}

/// Where the values of a turned grid come from.
fn sources(side: usize) -> [Vec<usize>; 8] {
    let places: Vec<usize> = (0..side * side).collect();
    Orientation::ALL.map(|orientation| orientation.turned([side, side], &places).1)
}

static GRID_SOURCES: LazyLock<[Vec<usize>; 8]> = LazyLock::new(|| sources(GRID));
static FEW_SOURCES: LazyLock<[Vec<usize>; 8]> = LazyLock::new(|| sources(FEW));

fn whole(a: &Ready, b: &Ready, orientation: Orientation, above: f32) -> Option<f32> {
    let turns = Orientation::ALL.iter().position(|o| *o == orientation)?;
    if turns > 1 {
        let from = &FEW_SOURCES[turns];
        let product: f32 = from.iter().zip(&b.few).map(|(from, b)| a.few[*from] * b).sum();
        if product < TURNED_ALIKE {
            return None;
        }
    }
    let from = &GRID_SOURCES[turns];
    let turned = |values: &[f32]| from.iter().map(|from| values[*from]).collect::<Vec<f32>>();
    if correlation(&b.square.brightness, &turned(&a.square.brightness)) < LEAST_BRIGHTNESS {
        return None;
    }
    let score = evened_correlation(&b.square.evened, &turned(&a.square.evened));
    Some(score).filter(|score| *score >= above)
}

/// The correlation of those tiles of two whole images that agree, if most do.
fn retouched(a: &Ready, b: &Ready) -> Option<f32> {
    let alike = correlation(&b.square.brightness, &a.square.brightness);
    if alike < RETOUCHED_BRIGHTNESS {
        return None;
    }
    let (mut with_detail, mut agree, mut sum) = (0, 0, 0.0);
    for (a, b) in tiles([&a.square.evened, &b.square.evened], [GRID, GRID], TILES) {
        with_detail += 1;
        let score = correlation(&a, &b);
        if score >= RETOUCHED_DETAIL {
            agree += 1;
            sum += score;
        }
    }
    let enough = agree as f32 >= RETOUCHED_TILES * with_detail as f32;
    (enough && agree >= TILES).then(|| sum / agree as f32)
}

/// So many tiles along each side of two grids of detail: those in which either has enough of it.
pub(super) fn tiles(
    grids: [&[f32]; 2],
    [rows, columns]: [usize; 2],
    count: usize,
) -> impl Iterator<Item = (Vec<f32>, Vec<f32>)> {
    let span = move |i: usize, of: usize| i * of / count..(i + 1) * of / count;
    let enough = |tile: &Vec<f32>| tile.iter().filter(|v| **v != 0.0).count() * 4 >= tile.len();
    let tiles = (0..count * count).map(move |i| {
        let [a, b] = grids.map(|values| {
            let across = span(i % count, columns);
            let rows = span(i / count, rows).map(|y| &values[y * columns..][across.clone()]);
            rows.flatten().copied().collect()
        });
        (a, b)
    });
    tiles.filter(move |(a, b)| enough(a) || enough(b))
}

/// A picture made ready to be compared.
pub(super) struct Ready {
    luma: Luma,
    /// All of it, whatever its shape.
    square: Grid,
    /// Its brightness in few pixels, of mean 0 and unit length.
    few: Vec<f32>,
    coarse: Coarse,
    sums: Sums<i32>,
}

impl Ready {
    pub fn new(luma: &Luma) -> Ready {
        let sums = Sums::new(luma.columns, luma.pixels.iter().map(|p| i32::from(*p)));
        let mut few = luma.resized(FEW, FEW);
        let (mean, deviation) = mean_and_deviation(&few);
        let length = (deviation * FEW as f32).max(1e-3);
        few.iter_mut().for_each(|v| *v = (*v - mean) / length);
        Ready {
            square: Grid::new(luma, GRID, GRID),
            few,
            coarse: Coarse::new(luma, &sums),
            sums,
            luma: luma.clone(),
        }
    }
}

/// Sums of all values above and to the left of each, so that the sum over a part takes four of
/// them.
struct Sums<T> {
    wide: usize,
    sums: Vec<T>,
}

impl<T: Copy + Default + Add<Output = T> + Sub<Output = T>> Sums<T> {
    fn new(columns: usize, values: impl ExactSizeIterator<Item = T>) -> Sums<T> {
        let wide = columns + 1;
        let mut sums = vec![T::default(); wide * (values.len() / columns + 1)];
        let mut row = T::default();
        for (i, value) in values.enumerate() {
            let (y, x) = (i / columns, i % columns);
            row = if x == 0 { value } else { row + value };
            sums[(y + 1) * wide + x + 1] = sums[y * wide + x + 1] + row;
        }
        Sums { wide, sums }
    }

    fn over(&self, [top, bottom]: [usize; 2], [left, right]: [usize; 2]) -> T {
        let at = |y: usize, x: usize| self.sums[y * self.wide + x];
        at(bottom, right) - at(top, right) - at(bottom, left) + at(top, left)
    }
}

impl Sums<i32> {
    /// Means over boxes of whole pixels, as so many rows and columns.
    fn boxes(&self, rows: usize, columns: usize) -> impl Iterator<Item = f32> + '_ {
        let (high, wide) = (self.sums.len() / self.wide - 1, self.wide - 1);
        let span = |i: usize, of: usize, count: usize| {
            let start = i * of / count;
            [start, ((i + 1) * of / count).max(start + 1)]
        };
        (0..rows * columns).map(move |i| {
            let (y, x) = (span(i / columns, high, rows), span(i % columns, wide, columns));
            let count = (y[1] - y[0]) * (x[1] - x[0]);
            self.over(y, x) as f32 / count as f32
        })
    }
}

/// A picture in few pixels, of which every part is tried.
struct Coarse {
    rows: usize,
    columns: usize,
    /// Pixels of the picture for each of these.
    scale: f32,
    values: Vec<i16>,
    sums: Sums<i32>,
    squares: Sums<i32>,
}

impl Coarse {
    fn new(luma: &Luma, sums: &Sums<i32>) -> Coarse {
        let scale = luma.rows.max(luma.columns) as f32 / COARSE as f32;
        let side = |pixels: usize| ((pixels as f32 / scale).round() as usize).max(2);
        let (rows, columns) = (side(luma.rows), side(luma.columns));
        let values: Vec<i16> = sums.boxes(rows, columns).map(|v| v.round() as i16).collect();
        let wide = |v: &i16| i32::from(*v);
        Coarse {
            sums: Sums::new(columns, values.iter().map(wide)),
            squares: Sums::new(columns, values.iter().map(|v| wide(v) * wide(v))),
            rows,
            columns,
            scale,
            values,
        }
    }

    /// Correlation of a template (of mean 0 and this length) with what lies under it.
    fn placed(&self, template: &Template, top: usize, left: usize) -> f32 {
        let Template { rows, columns, .. } = *template;
        let mut product = 0;
        for (y, row) in template.values.chunks_exact(columns).enumerate() {
            let under = &self.values[(top + y) * self.columns + left..][..columns];
            let products = row.iter().zip(under).map(|(t, v)| i32::from(*t) * i32::from(*v));
            product += products.sum::<i32>();
        }
        let (down, across) = ([top, top + rows], [left, left + columns]);
        let (sum, squares) =
            (self.sums.over(down, across) as f32, self.squares.over(down, across) as f32);
        let length = (squares - sum * sum / (rows * columns) as f32).max(1.0).sqrt();
        product as f32 / (template.length * length)
    }
}

/// A picture in some size, less its mean.
struct Template {
    rows: usize,
    columns: usize,
    values: Vec<i16>,
    length: f32,
}

impl Template {
    fn new(part: &Ready, rows: usize, columns: usize) -> Template {
        let values: Vec<f32> = part.sums.boxes(rows, columns).collect();
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        // In eighths of a grey, so that nothing is lost by rounding and no sum of products is too
        // large.
        let values: Vec<i16> = values.iter().map(|v| ((v - mean) * 8.0).round() as i16).collect();
        let squares = values.iter().map(|v| f32::from(*v) * f32::from(*v));
        let length = squares.sum::<f32>().sqrt().max(1.0);
        Template { rows, columns, values, length }
    }
}

/// A part of a picture, in its pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    top: f32,
    left: f32,
    height: f32,
    width: f32,
}

impl Window {
    fn at(part: Part, of: &Luma) -> Window {
        let (rows, columns) = (of.rows as f32, of.columns as f32);
        let (top, left) = (part.top * rows, part.left * columns);
        Window { top, left, height: part.height * rows, width: part.width * columns }
    }

    /// Whether it is nearly all of a picture.
    fn is_whole(self, luma: &Luma) -> bool {
        let (down, across) = (self.height / luma.rows as f32, self.width / luma.columns as f32);
        down.min(across) > WHOLE && (down - across).abs() < SAME_SHAPE
    }

    /// As a part of the picture.
    fn of(self, luma: &Luma) -> Part {
        let (rows, columns) = (luma.rows as f32, luma.columns as f32);
        let (top, left) = (self.top / rows, self.left / columns);
        Part { top, left, height: self.height / rows, width: self.width / columns }
    }

    /// Moved and scaled about its centre, and pushed back inside the picture.
    fn changed(self, down: f32, right: f32, by: f32, within: &Luma) -> Window {
        let (rows, columns) = (within.rows as f32, within.columns as f32);
        let by = by.min(rows / self.height).min(columns / self.width);
        let (height, width) = (self.height * by, self.width * by);
        let top = self.top + (self.height - height) / 2.0 + down;
        let left = self.left + (self.width - width) / 2.0 + right;
        Window {
            top: top.clamp(0.0, (rows - height).max(0.0)),
            left: left.clamp(0.0, (columns - width).max(0.0)),
            height,
            width,
        }
    }
}

/// How well something lies on something.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    brightness: f32,
    detail: f32,
}

/// A picture on the grid, ready to be laid on others.
struct Grid {
    rows: usize,
    columns: usize,
    brightness: Vec<f32>,
    detail: Vec<f32>,
    /// The detail, [evened].
    evened: Vec<f32>,
}

impl Grid {
    /// With the picture's own shape, so many points along the longer side.
    fn shaped(luma: &Luma, longest: usize) -> Grid {
        let longer = luma.rows.max(luma.columns);
        let points = |side: usize| (side * longest).div_ceil(longer).max(2 * AROUND + 1);
        Grid::new(luma, points(luma.rows), points(luma.columns))
    }

    fn new(luma: &Luma, rows: usize, columns: usize) -> Grid {
        let brightness = luma.resized(rows, columns);
        let detail = detail(&brightness, rows, columns);
        Grid { rows, columns, evened: evened(detail.clone()), detail, brightness }
    }

    /// Lays it on a part of another picture.
    fn fit(&self, on: &Luma, window: Window) -> Fit {
        self.fit_with(&sampled(on, window, self.rows, self.columns))
    }

    /// How much of its detail is that of a part of another picture, once both are evened.
    fn score(&self, on: &Luma, window: Window) -> f32 {
        let there = sampled(on, window, self.rows, self.columns);
        let there = evened(detail(&there, self.rows, self.columns));
        evened_correlation(&self.evened, &there)
    }

    /// Lays it on as many points of another.
    fn fit_with(&self, there: &[f32]) -> Fit {
        Fit {
            brightness: correlation(&self.brightness, there),
            detail: correlation(&self.detail, &detail(there, self.rows, self.columns)),
        }
    }
}

/// A part of a picture as so many rows and columns; each is the mean of four places in it.
fn sampled(luma: &Luma, window: Window, rows: usize, columns: usize) -> Vec<f32> {
    let places = |start: f32, length: f32, count: usize, most: usize| -> Vec<(usize, f32)> {
        let step = length / (2 * count) as f32;
        let place = |i: usize| {
            let at = start + (i as f32 + 0.5) * step - 0.5;
            let at = at.clamp(0.0, most as f32 - 1.0);
            let low = (at as usize).min(most.saturating_sub(2));
            (low, at - low as f32)
        };
        (0..2 * count).map(place).collect()
    };
    let down = places(window.top, window.height, rows, luma.rows);
    let across = places(window.left, window.width, columns, luma.columns);
    let mut out = vec![0.0; rows * columns];
    for (y, (row, share)) in down.iter().enumerate() {
        let upper = &luma.pixels[row * luma.columns..][..luma.columns];
        let lower = &luma.pixels[(row + 1).min(luma.rows - 1) * luma.columns..][..luma.columns];
        let out = &mut out[y / 2 * columns..][..columns];
        for (x, (column, part)) in across.iter().enumerate() {
            let next = (column + 1).min(luma.columns - 1);
            let between = |row: &[u8]| {
                let (a, b) = (f32::from(row[*column]), f32::from(row[next]));
                a + (b - a) * part
            };
            let (a, b) = (between(upper), between(lower));
            out[x / 2] += 0.25 * (a + (b - a) * share);
        }
    }
    out
}

/// Each value less the mean of those around it.
pub(super) fn detail(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let sums = Sums::new(columns, values.iter().copied());
    let range = |at: usize, most: usize| [at.saturating_sub(AROUND), (at + AROUND + 1).min(most)];
    let mut out = Vec::with_capacity(values.len());
    for y in 0..rows {
        let down = range(y, rows);
        for x in 0..columns {
            let across = range(x, columns);
            let count = ((down[1] - down[0]) * (across[1] - across[0])) as f32;
            out.push(values[y * columns + x] - sums.over(down, across) / count);
        }
    }
    out
}

/// No detail larger than twice the median of all there is, or than a grey; and none that is only
/// noise.
pub(super) fn evened(mut detail: Vec<f32>) -> Vec<f32> {
    let sizes = detail.iter().map(|v| v.abs());
    let mut sizes: Vec<f32> = sizes.filter(|v| *v >= LEAST_DETAIL).collect();
    let middle = sizes.len() / 2;
    let most = match sizes.is_empty() {
        true => 1.0,
        false => (2.0 * *sizes.select_nth_unstable_by(middle, f32::total_cmp).1).max(1.0),
    };
    for v in &mut detail {
        *v = if v.abs() < LEAST_DETAIL { 0.0 } else { v.clamp(-most, most) };
    }
    detail
}

/// The correlation of two evened details; 0 where too few points have any.
pub(super) fn evened_correlation(a: &[f32], b: &[f32]) -> f32 {
    let points = a.iter().zip(b).filter(|(a, b)| **a != 0.0 || **b != 0.0);
    if points.count() < LEAST_POINTS { 0.0 } else { correlation(a, b) }
}

/// Pearson's; 0 where one of the two never changes.
pub(super) fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let ((mean_a, deviation_a), (mean_b, deviation_b)) =
        (mean_and_deviation(a), mean_and_deviation(b));
    let scale = deviation_a * deviation_b * a.len() as f32;
    if scale < 1e-3 {
        return 0.0;
    }
    let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
    products.sum::<f32>() / scale
}

/// The evened detail's correlation where `part` lies best on a part of `on`, if it is at least
/// `above`, and that part.
fn best_place(on: &Ready, part: &Ready, above: f32) -> Option<(f32, Part)> {
    let windows = promising(&on.coarse, part);
    if windows.is_empty() {
        return None;
    }
    let (on, rough) = (&on.luma, Grid::shaped(&part.luma, COARSE));
    let fine = Grid::shaped(&part.luma, GRID);
    let step = on.rows.max(on.columns) as f32 / (2 * COARSE) as f32;
    let mut best: Option<(f32, Window)> = None;
    for window in windows {
        // Roughly first: most places that look right in few pixels do not in more.
        let (window, fit) = climbed(on, &rough, window, step, 0.8);
        if fit.brightness < NEARLY_THERE {
            continue;
        }
        let (window, fit) = climbed(on, &fine, window, step, 0.2);
        if window.is_whole(on) || fit.brightness < LEAST_BRIGHTNESS {
            continue;
        }
        let score = fine.score(on, window);
        if score >= above && best.is_none_or(|(before, _)| score > before) {
            best = Some((score, window));
        }
    }
    best.map(|(score, window)| (score, window.of(on)))
}

/// Parts of a picture that are worth a close look, by trying all sizes and places in few pixels.
fn promising(on: &Coarse, part: &Ready) -> Vec<Window> {
    let (rows, columns) = (part.luma.rows as f32, part.luma.columns as f32);
    // The largest window of the part's shape.
    let fit = (on.rows as f32 / rows).min(on.columns as f32 / columns);
    let longest = (rows.max(columns) * fit).round() as usize;
    let mut found: Vec<(f32, Window)> = vec![];
    for length in (longest as f32 * LEAST_SHARE).ceil() as usize..=longest {
        let by = fit * length as f32 / longest as f32;
        let side = |pixels: f32, most: usize| ((pixels * by).round() as usize).min(most);
        let (height, width) = (side(rows, on.rows), side(columns, on.columns));
        if height < 4 || width < 4 {
            continue;
        }
        let template = Template::new(part, height, width);
        for top in 0..=on.rows - height {
            for left in 0..=on.columns - width {
                let score = on.placed(&template, top, left);
                if score >= WORTH_A_LOOK {
                    let window = Window {
                        top: top as f32 * on.scale,
                        left: left as f32 * on.scale,
                        height: rows * by * on.scale,
                        width: columns * by * on.scale,
                    };
                    found.push((score, window));
                }
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut windows: Vec<Window> = vec![];
    for (_, window) in found {
        let near = |other: &Window| {
            let apart = (other.top - window.top).abs() + (other.left - window.left).abs();
            apart + (other.height - window.height).abs() < 2.0 * on.scale
        };
        if windows.len() < LOOKS && !windows.iter().any(near) {
            windows.push(window);
        }
    }
    windows
}

/// From a place to the best one near it, by steps that become smaller, from `step` down to `least`
/// pixels.
fn climbed(on: &Luma, grid: &Grid, start: Window, mut step: f32, least: f32) -> (Window, Fit) {
    let worth = |fit: Fit| fit.brightness + fit.detail;
    let mut window = start.changed(0.0, 0.0, 1.0, on);
    let mut fit = grid.fit(on, window);
    while step > least {
        let by = 1.0 + step / on.rows.max(on.columns) as f32 * 2.0;
        let ways = [
            (step, 0.0, 1.0),
            (-step, 0.0, 1.0),
            (0.0, step, 1.0),
            (0.0, -step, 1.0),
            (0.0, 0.0, by),
            (0.0, 0.0, 1.0 / by),
        ];
        let tried = ways.map(|(down, right, by)| {
            let window = window.changed(down, right, by, on);
            (window, grid.fit(on, window))
        });
        let best = tried.into_iter().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1)));
        match best.filter(|(_, there)| worth(*there) > worth(fit)) {
            Some(better) => (window, fit) = better,
            None => step /= 2.0,
        }
    }
    (window, fit)
}

/// Where a part of an image shows what another image does, given about where: looked for in more
/// and more pixels.
pub(super) fn refined(on: &Luma, part: Part, whole: &Luma) -> Part {
    let mut window = Window::at(part, on);
    let longer = on.rows.max(on.columns) as f32;
    let most = whole.rows.max(whole.columns);
    for (longest, from, to) in
        [(GRID, 0.02, 0.004), (2 * GRID, 0.004, 0.002), (4 * GRID, 0.002, 0.001)]
    {
        if longest > most && longest > GRID {
            break;
        }
        let grid = Grid::shaped(whole, longest.min(most));
        (window, _) = climbed(on, &grid, window, from * longer, to * longer);
    }
    window.of(on)
}

/// A part of an image as so many rows and columns.
pub(super) fn cut(luma: &Luma, part: Part, rows: usize, columns: usize) -> Vec<f32> {
    sampled(luma, Window::at(part, luma), rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grey picture with detail everywhere.
    fn luma(rows: usize, columns: usize) -> Luma {
        let pixel = |i: usize| {
            let (x, y) = ((i % columns) as f32, (i / columns) as f32);
            let large = (0.09 * x + 0.05 * y).sin() + (0.11 * y - 0.03 * x).cos();
            let small = (0.9 * x + 0.5 * y * y / 20.0).sin() + (0.7 * y).cos();
            (128.0 + 30.0 * large + 25.0 * small) as u8
        };
        Luma { rows, columns, pixels: (0..rows * columns).map(pixel).collect() }
    }

    /// A part of it, with 64 pixels along the longer side, as pictures are looked at.
    fn part(of: &Luma, top: usize, left: usize, rows: usize, columns: usize) -> Luma {
        let cut = of.part([top, left], [rows, columns]);
        let scale = 64.0 / rows.max(columns) as f32;
        let side = |pixels: usize| ((pixels as f32 * scale).round() as usize).max(8);
        let (rows, columns) = (side(rows), side(columns));
        let pixels = cut.resized(rows, columns);
        Luma { rows, columns, pixels: pixels.iter().map(|v| v.round() as u8).collect() }
    }

    fn is_part(part: Part) -> bool {
        part.height.min(part.width) < WHOLE
    }

    /// Turned or not, whether it is within the first, around it or neither.
    fn lies(found: Aligned) -> (bool, bool, Orientation) {
        let (within, around) = (is_part(found.on_first), is_part(found.on_second));
        (within, around, found.orientation)
    }

    fn aligned(a: &Luma, b: &Luma) -> Option<Aligned> {
        align(
            &Ready::new(a),
            &Ready::new(&Orientation::MIRRORED.of(a)),
            &Ready::new(b),
            0.7,
            &mut |_| true,
        )
    }

    /// A border is a strong edge in the same place, and tells nothing of what lies within.
    #[test]
    fn the_same_border_does_not_make_two_pictures_one() {
        let bordered = |mut inside: Luma| {
            let pixels = inside.pixels.iter_mut().enumerate();
            pixels.for_each(|(i, p)| *p = if i / 64 < 50 { 20 + *p / 8 } else { 255 });
            inside
        };
        let a = bordered(part(&luma(192, 192), 0, 0, 192, 192));
        let b = bordered(part(&luma(192, 192), 20, 90, 100, 100));
        let square = |of: &Luma| Grid::new(of, GRID, GRID);
        let fit = square(&a).fit_with(&square(&b).brightness);
        assert!(fit.brightness > 0.95, "{fit:?}");
        assert!(fit.detail > 0.95, "by the edges of the border alone: {fit:?}");
        let [a, mirrored, b] = [&a, &Orientation::MIRRORED.of(&a), &b].map(Ready::new);
        let above = crate::curate::DuplicateOptions::default().above;
        assert_eq!(align(&a, &mirrored, &b, above, &mut |_| true), None);
        assert!(align(&a, &mirrored, &a, above, &mut |_| true).is_some());
    }

    #[test]
    fn parts_are_found_whatever_their_shape() {
        for (rows, columns) in [(192, 192), (192, 144), (96, 192)] {
            let large = luma(rows, columns);
            let whole = part(&large, 0, 0, rows, columns);
            let itself = aligned(&whole, &whole).unwrap();
            assert!(lies(itself) == (false, false, Orientation::UPRIGHT) && itself.score > 0.999);
            for (down, across) in [(0.7, 0.7), (0.6, 0.9), (0.95, 0.62)] {
                let sides = [(rows as f32 * down) as usize, (columns as f32 * across) as usize];
                let (top, left) = ((rows - sides[0]) / 3, (columns - sides[1]) / 2);
                let crop = part(&large, top, left, sides[0], sides[1]);
                let what = format!("{rows}×{columns}, {down} × {across}");
                let found = aligned(&whole, &crop).expect(&what);
                assert_eq!(lies(found), (true, false, Orientation::UPRIGHT), "{what}");
                let found = aligned(&crop, &Orientation::MIRRORED.of(&whole)).expect(&what);
                assert_eq!(lies(found), (false, true, Orientation::MIRRORED), "{what}");
            }
        }
    }

    #[test]
    fn turned_images_are_found_in_every_orientation() {
        let whole = part(&luma(192, 144), 0, 0, 192, 144);
        for orientation in Orientation::ALL {
            let found = aligned(&whole, &orientation.of(&whole)).unwrap();
            assert_eq!(lies(found), (false, false, orientation));
            assert!(found.score > 0.99, "{found:?}");
        }
    }

    #[test]
    fn a_band_over_an_image_leaves_it_the_same_image() {
        let whole = part(&luma(192, 192), 0, 0, 192, 192);
        let mut banded = whole.clone();
        banded.pixels[50 * 64..].fill(0);
        let found = aligned(&whole, &banded).unwrap();
        assert!(found.retouched && lies(found) == (false, false, Orientation::UPRIGHT));
        let mut other = whole.clone();
        other.pixels.iter_mut().for_each(|v| *v = 255 - *v);
        assert_eq!(aligned(&other, &banded), None);
    }

    /// A strip is found whole; in few pixels it has too few for its parts.
    #[test]
    fn strips_are_compared_whole() {
        let strip = part(&luma(192, 40), 0, 0, 192, 40);
        let found = aligned(&strip, &strip).unwrap();
        assert_eq!(lies(found), (false, false, Orientation::UPRIGHT));
        let crop = part(&luma(192, 40), 20, 5, 130, 28);
        assert_eq!(aligned(&strip, &crop), None);
    }

    /// What is fast against what is plain.
    #[test]
    fn sums_and_templates_are_what_they_say() {
        let whole = part(&luma(192, 144), 0, 0, 192, 144);
        let ready = Ready::new(&whole);
        let boxes: Vec<f32> = ready.sums.boxes(16, 12).collect();
        let means = whole.resized(16, 12);
        assert!(boxes.iter().zip(&means).all(|(a, b)| (a - b).abs() < 1e-3));
        let template = Template::new(&ready, 9, 7);
        for (top, left) in [(0, 0), (3, 5), (7, 2)] {
            let under = (top..top + 9).flat_map(|y| &ready.coarse.values[y * 12 + left..][..7]);
            let under: Vec<f32> = under.map(|v| f32::from(*v)).collect();
            let values: Vec<f32> = template.values.iter().map(|v| f32::from(*v)).collect();
            let plain = correlation(&values, &under);
            let fast = ready.coarse.placed(&template, top, left);
            assert!((plain - fast).abs() < 1e-3, "{plain} {fast}");
        }
        let flat = Luma { pixels: vec![7; 64 * 64], rows: 64, columns: 64 };
        assert_eq!(aligned(&flat, &flat), None);
        assert_eq!(aligned(&whole, &flat), None);
    }
}
