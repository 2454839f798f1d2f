//! Two images that look the same, looked at closely: are they one photograph, and which of them was
//! made from the other?
//!
//! Both files are read whole. What the images share is laid on each other in up to 256 pixels,
//! where two photographs of one scene differ by noise, by the hand that moved and by what moved
//! before the camera. What only a copy has is then looked for: flat surroundings, no detail as fine
//! as its pixels, no colours, a text over it, clipped tones, the steps of another file's
//! compression.

use anchorhood_data::Picture;

use super::Look;
use super::aligned::{
    Aligned, correlation, cut, detail, evened, evened_correlation, refined, tiles,
};
use super::frequencies::{Spectrum, has_own_noise, quantised_by, still_frequencies};
use super::orientation::{Orientation, Part};
use crate::curate::luma::{Luma, mean_and_deviation};

/// Pixels along the longer side of what two images share.
const FINE: f32 = 256.0;
/// Pixels along the longer side of an image of which the other is a small part.
const MOST_FINE: f32 = 1024.0;
/// More than any image has: it is read whole.
const ALL_PIXELS: usize = 1 << 20;
/// Pixels along a side of what is cut out of an image to look at its compression.
const BLOCKS: usize = 512;
/// Least correlation of the detail of one photograph's copies, and least share of the tiles that
/// correlate by so much.
const LEAST_DETAIL: f32 = 0.5;
const LEAST_TILES: f32 = 0.6;
/// … of a copy of which a part was changed.
const LEAST_RETOUCHED: f32 = 0.6;
const TILES: usize = 8;
/// The least share of an image that is clipped or covered.
const LEAST_COVERED: f32 = 0.005;
/// A copy in as many pixels lies where its original does, up to this part of a point; one in other
/// sizes nearly so.
const SAME_PLACE: f32 = 0.1;
const NEAR_PLACE: f32 = 0.4;
/// Images that share so much of one's area have nothing beside it.
const ALL_OF_IT: f32 = 0.97;
/// Linear scales that differ less are the same.
const SAME_SCALE: f32 = 1.08;
/// Mean distance of colours from which an image is one in colours, and below which it is grey.
const COLOURED: f32 = 6.0;
const GREY: f32 = 2.5;

/// What surrounds an image is a border where so much of it has one brightness and so much of the
/// image's edge another: the flatter it is, the less of the edge is asked for. Texts may stand on a
/// border.
const BORDERS: [(f32, f32); 3] = [(0.97, 0.2), (0.9, 0.5), (0.55, 0.85)];

/// Differences that are nearly all of one sign need less evidence than others to be a text or a
/// mark: those that compression makes have both.
const ONE_WAY: f32 = 0.6;
const CLEAR: f32 = 0.1;
const MIXED: f32 = 1.1;
/// Tones are others where they differ so much in the mean.
const OTHER_TONES: f32 = 6.0;

/// Which of two images something is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    /// The side whose value is larger by a factor, and by something.
    fn larger(first: f32, second: f32, factor: f32, more: f32) -> Option<Side> {
        match () {
            () if first > second * factor + more => Some(Side::First),
            () if second > first * factor + more => Some(Side::Second),
            () => None,
        }
    }
}

/// What tells an original from its copy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traces {
    /// Has flat surroundings that the other has not.
    pub bordered: Option<Side>,
    /// Shows more around what the other shows.
    pub whole: Option<Side>,
    /// Has more pixels without having more detail.
    pub enlarged: Option<Side>,
    /// Has more pixels, and more detail in them.
    pub larger: Option<Side>,
    /// Has lost its colours.
    pub grey: Option<Side>,
    /// Has a text or a mark over it.
    pub marked: Option<Side>,
    /// Has tones that were pushed to black or white, or a bar over it.
    pub clipped: Option<Side>,
    /// Has the steps of the other's compression in its pixels: it was made from that file.
    pub derived: Option<Side>,
    /// Is compressed twice as much.
    pub recompressed: Option<Side>,
    /// Is a little more compressed.
    pub coarser: Option<Side>,
}

/// An image as it is looked at closely.
struct Sample {
    /// All of it, upright.
    luma: Luma,
    /// What only its own pixels tell, where they were read.
    native: Option<Native>,
}

struct Native {
    spectrum: Option<Spectrum>,
    /// From the middle of the image, whole blocks of 8×8.
    blocks: Luma,
}

impl Sample {
    /// With so many pixels along the longer side, and the frequencies of a part, if they are asked
    /// for.
    fn read(look: &Look, longest: usize, spectrum_of: Option<Part>) -> Sample {
        let make = |picture: &Picture| {
            let ([rows, columns], rgb) = picture.within(longest)?;
            let ([high, wide], native) = picture.fitted(ALL_PIXELS)?;
            Ok(Sample {
                luma: Luma::of_rgb(rows, columns, &rgb),
                native: picture.is_whole().then(|| Native::new(high, wide, &native, spectrum_of)),
            })
        };
        let path = look.path.as_ref();
        let read = path.and_then(|path| Picture::read_for(path, ALL_PIXELS, make).ok());
        // Without a file, or when it has gone meanwhile, what was kept of it has to do.
        read.unwrap_or_else(|| Sample { luma: look.view.luma.clone(), native: None })
    }

    fn spectrum(&self) -> Option<&Spectrum> {
        self.native.as_ref()?.spectrum.as_ref()
    }
}

impl Native {
    fn new(rows: usize, columns: usize, rgb: &[u8], spectrum_of: Option<Part>) -> Native {
        let luma = Luma::of_rgb(rows, columns, rgb);
        let side = |pixels: usize| (pixels / 8 * 8).min(BLOCKS);
        let (high, wide) = (side(rows), side(columns));
        let (top, left) = ((rows - high) / 16 * 8, (columns - wide) / 16 * 8);
        Native {
            spectrum: spectrum_of.and_then(|part| Spectrum::of(&crop(&luma, part))),
            blocks: luma.part([top, left], [high, wide]),
        }
    }
}

fn crop(luma: &Luma, part: Part) -> Luma {
    let range = |start: f32, length: f32, all: usize| {
        let first = ((start * all as f32).ceil().max(0.0) as usize).min(all.saturating_sub(1));
        let pixels = (length * all as f32) as usize;
        (first, pixels.clamp(1, all - first))
    };
    let (top, high) = range(part.top, part.height, luma.rows);
    let (left, wide) = range(part.left, part.width, luma.columns);
    luma.part([top, left], [high, wide])
}

/// Pixels of a part, rows and columns.
fn pixels_of(part: Part, [height, width]: [u32; 2]) -> [f32; 2] {
    [part.height * height as f32, part.width * width as f32]
}

/// What is found where the second image is laid on the first; none where they are not one
/// photograph.
pub(super) fn compare(first: &Look, second: &Look, aligned: &Aligned) -> Option<Traces> {
    let orientation = aligned.orientation;
    let upright = orientation.inverse().of_part(aligned.on_first);
    let in_first = pixels_of(upright, first.height_and_width);
    let in_second = pixels_of(aligned.on_second, second.height_and_width);
    let longer = |[rows, columns]: [f32; 2]| rows.max(columns);
    let fine = longer(in_first).min(longer(in_second)).clamp(8.0, FINE);
    let scale = ((in_first[0] * in_first[1]) / (in_second[0] * in_second[1])).sqrt();
    let scaled = !(1.0 / SAME_SCALE..=SAME_SCALE).contains(&scale);
    let read = |look: &Look, part: Part, shared: [f32; 2]| {
        let longest = look.height_and_width.into_iter().max().unwrap_or(1) as f32;
        let longest = (longest * fine / longer(shared)).round().clamp(16.0, MOST_FINE);
        Sample::read(look, longest as usize, scaled.then_some(part))
    };
    let a = read(first, upright, in_first);
    let b = read(second, aligned.on_second, in_second);
    let turned = orientation.of(&a.luma);
    let pair = Pair::laid(&turned, &b.luma, aligned, fine);
    let matched = pair.matched();
    let same_size = in_first == in_second;
    let still = if same_size { SAME_PLACE } else { NEAR_PLACE };
    let moved = pair.is_whole() && pair.displacement(&matched) > still;
    let same_grid = orientation == Orientation::UPRIGHT && same_size && pair.is_whole();
    let blocks = [&a, &b].map(|sample| sample.native.as_ref().map(|native| &native.blocks));
    let blocks = match blocks {
        [Some(a), Some(b)] if same_grid => Some([a, b]),
        _ => None,
    };
    let other_noise = blocks.is_some_and(|[a, b]| has_own_noise(a, b));
    if !pair.is_one_photograph(aligned.retouched) || moved || other_noise {
        return None;
    }
    let mut traces = Traces::default();
    traces.of_surroundings(&pair, &turned, &b.luma);
    traces.of_scale([first, second], [&a, &b], scale);
    traces.of_tones(&pair, &matched, [first, second]);
    if !scaled {
        traces.of_compression([first, second]);
    }
    if let Some(blocks) = blocks {
        traces.of_blocks([first, second], blocks);
    }
    Some(traces)
}

/// What two images share, on one grid.
struct Pair {
    rows: usize,
    columns: usize,
    on_first: Part,
    on_second: Part,
    first: Vec<f32>,
    second: Vec<f32>,
    details: [Vec<f32>; 2],
}

impl Pair {
    fn laid(first: &Luma, second: &Luma, aligned: &Aligned, fine: f32) -> Pair {
        let Aligned { mut on_first, mut on_second, .. } = *aligned;
        let inner = crop(second, on_second);
        if on_first != Part::WHOLE {
            on_first = refined(first, on_first, &inner);
        } else if on_second != Part::WHOLE {
            on_second = refined(second, on_second, first);
        }
        let [high, wide] =
            [on_second.height * second.rows as f32, on_second.width * second.columns as f32];
        let by = (fine / high.max(wide)).min(1.0);
        let (rows, columns) =
            (((high * by).round() as usize).max(8), ((wide * by).round() as usize).max(8));
        let (a, b) = (cut(first, on_first, rows, columns), cut(second, on_second, rows, columns));
        let details = [&a, &b].map(|values| evened(detail(values, rows, columns)));
        Pair { rows, columns, on_first, on_second, first: a, second: b, details }
    }

    /// All that both images show, if the one is laid on the other so: more than what was compared,
    /// where that was the inside of a border.
    fn overlap(&self) -> (Part, Part) {
        let (a, b) = (self.on_first, self.on_second);
        // A side of the second image as one of the first, and back.
        let span = |a: [f32; 2], b: [f32; 2]| {
            let by = a[1] / b[1];
            let start = a[0] - b[0] * by;
            let (from, to) = (start.max(0.0), (start + by).min(1.0));
            ([from, to - from], [(from - start) / by, (to - from) / by])
        };
        let (down, down_b) = span([a.top, a.height], [b.top, b.height]);
        let (across, across_b) = span([a.left, a.width], [b.left, b.width]);
        let part =
            |[top, height]: [f32; 2], [left, width]: [f32; 2]| Part { top, left, height, width };
        (part(down, across), part(down_b, across_b))
    }

    /// How far the second image is from the first, in points of the grid, by how brightness changes
    /// along it (Lucas and Kanade).
    fn displacement(&self, matched: &[f32]) -> f32 {
        let (mut xx, mut xy, mut yy, mut dx, mut dy) = (0.0_f64, 0.0, 0.0, 0.0, 0.0);
        for y in 1..self.rows - 1 {
            for x in 1..self.columns - 1 {
                let i = y * self.columns + x;
                let slope = |of: &[f32], by: usize| f64::from(of[i + by] - of[i - by]) / 2.0;
                let across = (slope(&self.first, 1) + slope(matched, 1)) / 2.0;
                let along = |of: &[f32]| slope(of, self.columns);
                let down = (along(&self.first) + along(matched)) / 2.0;
                let off = f64::from(self.first[i] - matched[i]);
                // What is not the same at all says nothing of a small step.
                if off.abs() > 30.0 {
                    continue;
                }
                xx += across * across;
                xy += across * down;
                yy += down * down;
                dx += across * off;
                dy += down * off;
            }
        }
        let determinant = xx * yy - xy * xy;
        if determinant < 1e-3 * xx * yy + 1e-9 {
            return 0.0;
        }
        let right = (yy * dx - xy * dy) / determinant;
        let lower = (xx * dy - xy * dx) / determinant;
        right.hypot(lower) as f32
    }

    fn is_whole(&self) -> bool {
        self.on_first.area().min(self.on_second.area()) > 0.999
    }

    /// By their detail, and by the share of the tiles with detail whose detail is the same.
    fn is_one_photograph(&self, retouched: bool) -> bool {
        let [a, b] = &self.details;
        let tiles = tiles([a, b], [self.rows, self.columns], TILES);
        let agree: Vec<bool> = tiles.map(|(a, b)| correlation(&a, &b) >= LEAST_DETAIL).collect();
        let agreeing = agree.iter().filter(|agrees| **agrees).count() as f32;
        let share = agreeing / agree.len().max(1) as f32;
        match retouched {
            true => share >= LEAST_RETOUCHED,
            false => evened_correlation(a, b) >= LEAST_DETAIL && share >= LEAST_TILES,
        }
    }

    /// For each brightness of the second image that of the first in the same places.
    fn tones(&self) -> [f32; LEVELS] {
        let mut found: [Vec<f32>; LEVELS] = std::array::from_fn(|_| vec![]);
        for (a, b) in self.first.iter().zip(&self.second) {
            found[(b / 256.0 * LEVELS as f32) as usize % LEVELS].push(*a);
        }
        let middle = |values: &mut Vec<f32>| {
            let middle = values.len() / 2;
            (values.len() >= 4).then(|| *values.select_nth_unstable_by(middle, f32::total_cmp).1)
        };
        let known: Vec<Option<f32>> = found.iter_mut().map(middle).collect();
        let near = |i: usize| {
            let others = known.iter().enumerate().filter_map(|(j, v)| Some((j, (*v)?)));
            let (j, v) = others.min_by_key(|(j, _)| j.abs_diff(i))?;
            Some(v + (i as f32 - j as f32) * 256.0 / LEVELS as f32)
        };
        std::array::from_fn(|i| near(i).unwrap_or(i as f32 * 256.0 / LEVELS as f32))
    }

    /// The second image in the tones of the first.
    fn matched(&self) -> Vec<f32> {
        let tones = self.tones();
        let tone = |b: &f32| {
            let at = (b / 256.0 * LEVELS as f32 - 0.5).clamp(0.0, LEVELS as f32 - 1.0);
            let low = (at as usize).min(LEVELS - 2);
            tones[low] + (tones[low + 1] - tones[low]) * (at - low as f32)
        };
        self.second.iter().map(tone).collect()
    }

    /// Which of the two has edges where they differ: that of a text or a mark which was laid over
    /// it.
    fn marked(&self, matched: &[f32]) -> Option<(Side, f32)> {
        let off: Vec<f32> = self.first.iter().zip(matched).map(|(a, b)| a - b).collect();
        let mut sizes: Vec<f32> = off.iter().map(|v| v.abs()).collect();
        let middle = sizes.len() / 2;
        let usual = *sizes.select_nth_unstable_by(middle, f32::total_cmp).1;
        let least = (5.0 * usual).max(14.0);
        let differs = |i: usize| off[i].abs() > least;
        let (mut sum, mut size) = (0.0_f32, 0.0);
        let (mut edges, mut first, mut second) = (0, 0.0, 0.0);
        for i in (0..off.len()).filter(|i| differs(*i)) {
            sum += off[i];
            size += off[i].abs();
            let (y, x) = (i / self.columns, i % self.columns);
            let beside = [
                (y >= 2).then(|| i - 2 * self.columns),
                (y + 2 < self.rows).then_some(i + 2 * self.columns),
                (x >= 2).then(|| i - 2),
                (x + 2 < self.columns).then_some(i + 2),
            ];
            for j in beside.into_iter().flatten().filter(|j| !differs(*j)) {
                edges += 1;
                first += (self.first[i] - self.first[j]).powi(2);
                second += (matched[i] - matched[j]).powi(2);
            }
        }
        let there: Vec<usize> = (0..off.len()).filter(|i| differs(*i)).collect();
        let covered = |values: &[f32]| there.iter().map(|i| values[*i]).collect::<Vec<f32>>();
        let (under_a, under_b) = (covered(&self.first), covered(matched));
        let sizes: Vec<f32> = there.iter().map(|i| off[*i].abs()).collect();
        let between = under_a.iter().zip(&under_b).map(|(a, b)| (a + b) / 2.0);
        // White that is laid over an image changes what is dark there the most, black what is
        // bright.
        let falls = -correlation(&sizes, &between.collect::<Vec<f32>>()) * sum.signum();
        // What is laid over an image has edges of its own, and evens out what it covers.
        let spread = |values: &[f32]| mean_and_deviation(values).1 + 1.0;
        let edge = ((first + 1.0) / (second + 1.0)).ln();
        let evenness = (spread(&under_b) / spread(&under_a)).ln();
        let evidence: f32 = edge + evenness + falls;
        let one_way: f32 = sum.abs() / f32::max(size, 1.0);
        let share = there.len() as f32 / off.len().max(1) as f32;
        let least = if one_way >= ONE_WAY { CLEAR } else { MIXED };
        let enough = (0.001..0.6).contains(&share) && edges >= 8 && evidence.abs() >= least;
        let side = if evidence > 0.0 { Side::First } else { Side::Second };
        enough.then_some((side, evidence.abs()))
    }
}

/// How much of one image varies where the other is black, or where it is white: what was pushed
/// there was not all the same before, and nor was what a bar now covers.
fn covered([own, other]: [&Vec<f32>; 2]) -> f32 {
    let varies = |at_end: fn(f32) -> bool| {
        let there = own.iter().zip(other).filter(|(own, _)| at_end(**own));
        let there: Vec<f32> = there.map(|(_, other)| *other).collect();
        if there.len() < 4 || (there.len() as f32) < LEAST_COVERED * own.len() as f32 {
            return 0.0;
        }
        // Between the quarters: a text over a white sky leaves most of it as it was.
        let mut there = there;
        there.sort_unstable_by(f32::total_cmp);
        there[there.len() * 3 / 4] - there[there.len() / 4]
    };
    varies(|v| v <= 4.0).max(varies(|v| v >= 251.0))
}

/// Brightnesses that are told apart where tones are compared.
const LEVELS: usize = 32;

impl Traces {
    fn of_surroundings(&mut self, pair: &Pair, first: &Luma, second: &Luma) {
        let beside = |part: Part| part.area() < ALL_OF_IT;
        let (on_first, on_second) = pair.overlap();
        let sides = [(Side::First, on_first, first), (Side::Second, on_second, second)];
        for (side, part, luma) in sides {
            if !beside(part) {
                continue;
            }
            if is_border(luma, part) { self.bordered = Some(side) } else { self.whole = Some(side) }
        }
    }

    fn of_scale(&mut self, looks: [&Look; 2], samples: [&Sample; 2], scale: f32) {
        let [a, b] = looks;
        let [of_a, of_b] = samples.map(Sample::spectrum);
        let (side, looks, spectra, by) = match scale {
            scale if scale > SAME_SCALE => (Side::First, [a, b], [of_a, of_b], scale),
            scale if scale < 1.0 / SAME_SCALE => (Side::Second, [b, a], [of_b, of_a], 1.0 / scale),
            _ => return,
        };
        // Many a camera's images are soft; they have the size that the camera says.
        let [large, small] = looks.map(Look::has_size_of_camera);
        let as_taken = large && !small;
        let enlarged = match spectra {
            [Some(large), Some(small)] => large.is_enlarged(by, small),
            _ => false,
        };
        if enlarged && !as_taken { self.enlarged = Some(side) } else { self.larger = Some(side) }
    }

    fn of_tones(&mut self, pair: &Pair, matched: &[f32], looks: [&Look; 2]) {
        let [a, b] = looks.map(|look| look.chroma);
        self.grey = match () {
            () if a < GREY && b > COLOURED => Some(Side::First),
            () if b < GREY && a > COLOURED => Some(Side::Second),
            () => None,
        };
        let moved = matched.iter().zip(&pair.second).map(|(m, b)| (m - b).abs());
        let moved = moved.sum::<f32>() / matched.len().max(1) as f32;
        // Where all tones are others, they do not match so well that little evidence is enough.
        let least = if moved > OTHER_TONES { MIXED } else { CLEAR };
        let marked = pair.marked(matched).filter(|(_, evidence)| *evidence >= least);
        self.marked = marked.map(|(side, _)| side);
        let [a, b] = [[&pair.first, &pair.second], [&pair.second, &pair.first]].map(covered);
        // A text that is sure explains what varies beneath it.
        let sure = marked.is_some_and(|(_, evidence)| evidence >= MIXED);
        self.clipped = Side::larger(a, b, 2.0, 8.0).filter(|_| !sure);
    }

    fn of_compression(&mut self, looks: [&Look; 2]) {
        let coarse = |look: &Look| {
            let steps = look.metadata.quantisation.as_ref()?;
            Some(steps[..32].iter().map(|step| f32::from(*step)).sum::<f32>())
        };
        if let [Some(a), Some(b)] = looks.map(coarse) {
            self.recompressed = Side::larger(a, b, 2.0, 0.0);
            self.coarser = Side::larger(a, b, 1.1, 0.0);
        }
    }

    /// By the blocks of pixels of the same size that lie in the same places.
    fn of_blocks(&mut self, looks: [&Look; 2], [a, b]: [&Luma; 2]) {
        let [steps_a, steps_b] = looks.map(|look| look.metadata.quantisation.as_ref());
        let after = |luma: &Luma, own: Option<&[u16; 64]>, other: Option<&[u16; 64]>| {
            other.is_some_and(|other| quantised_by(luma, other, own))
        };
        self.derived = match (after(a, steps_a, steps_b), after(b, steps_b, steps_a)) {
            (true, false) => Some(Side::First),
            (false, true) => Some(Side::Second),
            _ => None,
        };
        let still = || Side::larger(still_frequencies(a), still_frequencies(b), 1.0, 0.02);
        self.coarser = self.coarser.or_else(still);
    }
}

/// Whether what lies around a part is nearly of one colour, and ends where the part begins.
fn is_border(luma: &Luma, part: Part) -> bool {
    let (rows, columns) = (luma.rows as f32, luma.columns as f32);
    // The pixels at the edge are mixed.
    let beyond = |v: f32| v.round() as i64;
    let (top, left) = (beyond(part.top * rows), beyond(part.left * columns));
    let bottom = beyond((part.top + part.height) * rows);
    let right = beyond((part.left + part.width) * columns);
    let outside = |y: i64, x: i64| y < top - 1 || y > bottom || x < left - 1 || x > right;
    let at = |y: i64, x: i64| luma.pixels[y as usize * luma.columns + x as usize];
    let (high, wide) = (luma.rows as i64, luma.columns as i64);
    let mut counts = [0_usize; 256];
    let mut all = 0;
    for y in 0..high {
        for x in 0..wide {
            if outside(y, x) {
                counts[usize::from(at(y, x))] += 1;
                all += 1;
            }
        }
    }
    if all < 16 {
        return false;
    }
    let near = |v: usize| counts[v.saturating_sub(10)..(v + 11).min(256)].iter().sum::<usize>();
    let Some(colour) = (0..256).max_by_key(|v| near(*v)) else {
        return false;
    };
    let flat = near(colour) as f32 / all as f32;
    // A step along the edge: what lies just within is of other brightness than the border.
    let (mut edge, mut steps) = (0_usize, 0_usize);
    let mut look_at = |y: i64, x: i64| {
        if (0..high).contains(&y) && (0..wide).contains(&x) {
            edge += 1;
            steps += usize::from(at(y, x).abs_diff(colour as u8) > 12);
        }
    };
    for x in left + 2..right - 2 {
        if top > 1 {
            look_at(top + 2, x);
        }
        if bottom < high - 1 {
            look_at(bottom - 3, x);
        }
    }
    for y in top + 2..bottom - 2 {
        if left > 1 {
            look_at(y, left + 2);
        }
        if right < wide - 1 {
            look_at(y, right - 3);
        }
    }
    let stepped = steps as f32 / edge.max(1) as f32;
    BORDERS.iter().any(|(least, edge)| flat >= *least && stepped >= *edge)
}
