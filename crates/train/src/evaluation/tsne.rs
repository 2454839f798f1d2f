//! Vectors on a sheet of paper: near each other there when they are alike.
//!
//! The two directions of greatest variance give a first arrangement; t-SNE then pulls neighbours
//! together. The same vectors give the same sheet every time. Very many vectors are sampled, evenly
//! over their order.

use anchorhood_engine::{Device, Error, Scan};
use bhtsne::Neighbor;
use rayon::prelude::*;

/// Fewer points than this are shown by their two directions of greatest variance alone.
const FEWEST_FOR_TSNE: usize = 60;
const PERPLEXITY: f32 = 20.0;
const STEPS: usize = 400;
const POWER_STEPS: usize = 60;

/// Where each of some vectors lies on the sheet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Which vectors, ascending.
    pub chosen: Vec<u32>,
    /// Their places, both coordinates in [0, 1].
    pub places: Vec<[f32; 2]>,
}

/// Lays out `vectors` (rows of `dim`), at most `most` of them.
pub fn layout(vectors: &[f32], dim: usize, most: usize) -> Layout {
    let n = vectors.len() / dim.max(1);
    let count = n.min(most);
    let chosen: Vec<u32> = (0..count).map(|i| (i * n / count.max(1)) as u32).collect();
    if count == 0 {
        return Layout::default();
    }
    let rows: Vec<Vec<f32>> =
        chosen.iter().map(|i| unit(&vectors[*i as usize * dim..][..dim])).collect();
    let start = variance(&rows, dim);
    let flat = spread(&start) < 1e-6; // all the same: there are no neighbours to pull together
    let places = match count < FEWEST_FOR_TSNE || flat {
        true => start,
        false => neighbours_together(&rows, &start),
    };
    Layout { chosen, places: fitted(places) }
}

/// Of unit length; what is no number is nothing.
fn unit(row: &[f32]) -> Vec<f32> {
    let row: Vec<f32> = row.iter().map(|v| if v.is_finite() { *v } else { 0.0 }).collect();
    let length = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
    row.iter().map(|v| v / length).collect()
}

/// Each row along the two directions of greatest variance.
fn variance(rows: &[Vec<f32>], dim: usize) -> Vec<[f32; 2]> {
    let mut mean = vec![0.0; dim];
    for row in rows {
        mean.iter_mut().zip(row).for_each(|(m, v)| *m += v / rows.len() as f32);
    }
    let centred: Vec<Vec<f32>> =
        rows.iter().map(|row| row.iter().zip(&mean).map(|(v, m)| v - m).collect()).collect();
    let first = direction(&centred, dim, None);
    let second = direction(&centred, dim, Some(&first));
    centred.iter().map(|row| [dot(row, &first), dot(row, &second)]).collect()
}

/// Power iteration, kept at right angles to `other`.
fn direction(rows: &[Vec<f32>], dim: usize, other: Option<&[f32]>) -> Vec<f32> {
    // Any start that is no direction's opposite; a fixed one gives the same sheet every time.
    let mut towards: Vec<f32> = (0..dim).map(|i| 1.0 + (i as f32 * 1.7).sin()).collect();
    for _ in 0..POWER_STEPS {
        if let Some(other) = other {
            let along = dot(&towards, other);
            towards.iter_mut().zip(other).for_each(|(t, o)| *t -= along * o);
        }
        let length = dot(&towards, &towards).sqrt().max(1e-20);
        towards.iter_mut().for_each(|t| *t /= length);
        let mut next = vec![0.0; dim];
        for row in rows {
            let along = dot(row, &towards);
            next.iter_mut().zip(row).for_each(|(n, v)| *n += along * v);
        }
        towards = next;
    }
    let length = dot(&towards, &towards).sqrt().max(1e-20);
    towards.iter().map(|t| t / length).collect()
}

fn neighbours_together(rows: &[Vec<f32>], start: &[[f32; 2]]) -> Vec<[f32; 2]> {
    // t-SNE's sums depend on how threads share the work, and its sheets on the last bit of a sum:
    // one thread does it all.
    let device = Device::cpu(1);
    let perplexity = PERPLEXITY.min(rows.len() as f32 / 4.0);
    let Ok(nearest) = nearest(&device, rows, (3.0 * perplexity) as usize) else {
        return start.to_vec(); // a sheet, if not the best
    };
    // It wants to begin in a small heap, and cannot part what lies in one place, as copies of a
    // picture do.
    let scale = 1e-2 / spread(start);
    let values = start.iter().flatten().enumerate();
    let start: Vec<f32> =
        values.map(|(i, v)| v * scale + 1e-5 * (i as f32 * 12.9898).sin()).collect();
    let places = device.within(|| {
        let mut tsne: bhtsne::tSNE<f32, Vec<f32>> = bhtsne::tSNE::new(rows);
        tsne.perplexity(perplexity)
            .epochs(STEPS)
            .stop_lying_epoch(STEPS / 3)
            .momentum_switch_epoch(STEPS / 3)
            .initial_embedding(start)
            .barnes_hut_with_neighbors(0.5, &nearest);
        tsne.embedding()
    });
    places.chunks_exact(2).map(|p| [p[0], p[1]]).collect()
}

/// The rows most like each, nearest first. (t-SNE's own search begins anywhere, and no sheet would
/// be like the last.)
fn nearest(device: &Device, rows: &[Vec<f32>], k: usize) -> Result<Vec<Vec<Neighbor<f32>>>, Error> {
    let scan = Scan { dim: rows[0].len(), entropy_temperature: None, k, same: true };
    let rows = device.hand_over(rows.concat())?;
    let found = device.scan(&rows, &rows, &scan, &|_| {})?.neighbours;
    let neighbour = |(index, similarity): (&u32, &f32)| Neighbor {
        index: *index as usize,
        distance: (2.0 - 2.0 * similarity).max(0.0).sqrt(),
    };
    let pairs = found.indices.iter().zip(&found.similarities);
    let all: Vec<_> = pairs.map(neighbour).collect();
    Ok(all.chunks(found.k).map(<[_]>::to_vec).collect())
}

fn spread(places: &[[f32; 2]]) -> f32 {
    places.iter().flatten().fold(0.0, |a, v| a.max(v.abs()))
}

/// Into the unit square.
fn fitted(mut places: Vec<[f32; 2]>) -> Vec<[f32; 2]> {
    for axis in 0..2 {
        let line = Line::of(places.iter().map(|p| p[axis]));
        for place in &mut places {
            place[axis] = line.place(place[axis]);
        }
    }
    places
}

/// Where values lie along one side of the square: all but the farthest hundredth as they are,
/// unless these are far, lest they squeeze the rest. Those are then drawn in, and keep their order.
struct Line {
    low: f32,
    range: f32,
    /// The share of the side beyond `low` and beyond `low + range`.
    margins: [Margin; 2],
}

#[derive(Clone, Copy)]
struct Margin {
    share: f32,
    /// How far the farthest lies, in ranges.
    reach: f32,
}

impl Line {
    /// Of the side, for what is far on one end.
    const WIDEST: f32 = 0.12;

    fn of(values: impl Iterator<Item = f32>) -> Line {
        let mut values: Vec<f32> = values.filter(|v| v.is_finite()).collect();
        values.par_sort_unstable_by(f32::total_cmp);
        let last = values.len().saturating_sub(1);
        let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
        let outer = if values.len() < 200 { 0 } else { last / 200 };
        let (low, high) = (at(outer), at(last - outer));
        let range = (high - low).max(1e-12);
        let margin = |reach: f32| Margin { share: reach.min(Line::WIDEST), reach };
        let margins = [margin((low - at(0)) / range), margin((at(last) - high) / range)];
        Line { low, range, margins }
    }

    fn place(&self, value: f32) -> f32 {
        if !value.is_finite() {
            return 0.5;
        }
        let [before, after] = self.margins;
        let v = (value - self.low) / self.range;
        let v = match v {
            v if v < 0.0 => -before.drawn_in(-v),
            v if v > 1.0 => 1.0 + after.drawn_in(v - 1.0),
            v => v,
        };
        let whole = before.share + 1.0 + after.share;
        ((v + before.share) / whole).clamp(0.0, 1.0)
    }
}

impl Margin {
    /// How far something lies into the margin that lies `far` beyond it: as far, where there is
    /// room.
    fn drawn_in(self, far: f32) -> f32 {
        match self.reach <= self.share {
            true => far,
            // Steep at first, flat at its end, where the farthest lies.
            false => self.share * (far / self.reach).sqrt(),
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two heaps of vectors around two directions.
    fn heaps(each: usize) -> Vec<f32> {
        let row = |i: usize| {
            let heap = i % 2;
            (0..8).map(move |d| {
                let noise = ((i * 31 + d * 17) % 97) as f32 / 97.0 * 0.2;
                noise + if d == heap * 4 { 1.0 } else { 0.0 }
            })
        };
        (0..2 * each).flat_map(row).collect()
    }

    #[test]
    fn heaps_stay_apart() {
        for each in [10, 100] {
            let sheet = layout(&heaps(each), 8, 1000);
            assert_eq!(sheet.chosen.len(), 2 * each);
            let distance = |a: usize, b: usize| {
                let (a, b) = (sheet.places[a], sheet.places[b]);
                ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
            };
            let nearest = |i: usize| {
                let others = (0..2 * each).filter(|j| *j != i);
                others.min_by(|a, b| distance(i, *a).total_cmp(&distance(i, *b))).unwrap()
            };
            let right = (0..2 * each).filter(|i| nearest(*i) % 2 == i % 2).count();
            assert!(right as f64 > 1.9 * each as f64, "{right} of {}", 2 * each);
        }
    }

    #[test]
    fn the_farthest_keep_their_places_or_at_least_their_order() {
        // A square of 40×40, and a line that leads out of it.
        let inside = (0..1600).map(|i| [(i % 40) as f32, (i / 40) as f32]);
        let near: Vec<[f32; 2]> = inside.clone().chain([[41.0, 20.0], [42.0, 20.0]]).collect();
        let placed = fitted(near);
        let x = |i: usize| placed[i][0];
        let step = x(1) - x(0);
        assert!((x(1601) - x(1600) - step).abs() < 1e-4 && x(1601) == 1.0);
        let far = [[60.0, 20.0], [500.0, 20.0], [4000.0, 20.0]];
        let placed = fitted(inside.chain(far).collect());
        let x = |i: usize| placed[i][0];
        assert!(x(39) < x(1600) && x(1600) < x(1601) && x(1601) < x(1602));
        assert!(x(39) - x(0) > 0.85, "the rest is not squeezed");
        assert!(placed.iter().flatten().all(|v| (0.0..=1.0).contains(v)));
        assert_eq!(fitted(vec![[f32::NAN, 1.0]; 3]), vec![[0.5, 0.0]; 3]);
    }

    #[test]
    fn the_same_sheet_every_time_on_any_number_of_threads() {
        let vectors: Vec<f32> = (0..1500 * 16_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0)
            .collect();
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            pool.install(|| layout(&vectors, 16, 2000))
        };
        let first = on(1);
        for threads in [2, 3, 4] {
            let again = on(threads);
            let differ = (first.places.iter().zip(&again.places)).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), 0, "{threads} threads");
        }
    }

    #[test]
    fn samples_evenly_and_survives_anything() {
        let sheet = layout(&heaps(50), 8, 10);
        assert_eq!(sheet.chosen, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        for bad in [f32::NAN, f32::INFINITY, 0.0] {
            let sheet = layout(&[bad; 80 * 4], 4, 100);
            let inside = |p: &[f32; 2]| p.iter().all(|v| (0.0..=1.0).contains(v));
            assert!(sheet.places.iter().all(inside));
        }
        assert_eq!(layout(&[], 4, 100), Layout::default());
    }
}
