//! Points of the unit sphere, drawn at random and fixed, one for each picture: which picture is
//! which point's?
//!
//! Pictures change points with each other in groups, so that features and their points are as near
//! as can be: a group's is a linear [assignment](crate::discovery::assign), and over all pictures each point
//! is always one picture's.

use anchorhood_storage::random::{Draws, Stream};
use rayon::prelude::*;

use crate::discovery::assign;
use anchorhood_engine::vectors::{dot, to_unit_length};

/// Points, and whose they are.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseTargets {
    points: Vec<f32>,
    dim: usize,
    seed: u64,
    of: Vec<u32>,
}

/// What a change of points came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reassigned {
    /// The share of pictures that were nearer to their own point than to any other of their group,
    /// before.
    pub nearest: f64,
    /// The share of pictures that keep theirs.
    pub kept: f64,
}

/// A picture of a group, its point from now on, and whether it was nearest to the one it had.
struct Given {
    picture: u32,
    point: u32,
    nearest: bool,
}

impl NoiseTargets {
    /// A point for each of `n` pictures: the seed's.
    pub fn new(n: usize, dim: usize, seed: u64) -> Self {
        let mut points = vec![0.0; n * dim];
        for (i, point) in points.chunks_exact_mut(dim).enumerate() {
            fill_normal(&Draws::new(seed, Stream::Targets, 0, i as u64), point);
        }
        to_unit_length(&mut points, dim);
        NoiseTargets { points, dim, seed, of: (0..n as u32).collect() }
    }

    /// The number of each picture's point.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// With other owners; none where it is not one point for each picture.
    pub fn owned(&self, of: &[u32]) -> Option<NoiseTargets> {
        let mut owned = vec![false; self.of.len()];
        for point in of {
            let taken = owned.get_mut(*point as usize)?;
            if std::mem::replace(taken, true) {
                return None;
            }
        }
        (of.len() == owned.len()).then(|| NoiseTargets { of: of.to_vec(), ..self.clone() })
    }

    /// Each picture's point, one after the other.
    pub fn rows(&self) -> Vec<f32> {
        let rows = self.of.iter().flat_map(|point| self.point(*point));
        rows.copied().collect()
    }

    fn point(&self, number: u32) -> &[f32] {
        &self.points[number as usize * self.dim..][..self.dim]
    }

    /// Has pictures change points in groups of at most so many, drawn anew each time, by all
    /// pictures' features of unit length.
    pub fn reassign(&mut self, features: &[f32], group: usize, time: u64) -> Reassigned {
        let n = self.of.len();
        let order = Draws::new(self.seed, Stream::Targets, 1 + time, 0).permutation(n);
        let groups = order.par_chunks(group.max(1));
        let given: Vec<Given> = groups.flat_map_iter(|g| self.group(features, g)).collect();
        let share =
            |is: &dyn Fn(&&Given) -> bool| given.iter().filter(is).count() as f64 / n.max(1) as f64;
        let reassigned = Reassigned {
            nearest: share(&|g| g.nearest),
            kept: share(&|g| self.of[g.picture as usize] == g.point),
        };
        for Given { picture, point, .. } in given {
            self.of[picture as usize] = point;
        }
        reassigned
    }

    /// What the pictures of a group are given.
    fn group(&self, features: &[f32], pictures: &[u32]) -> Vec<Given> {
        let n = pictures.len();
        let point_of = |place: usize| self.of[pictures[place] as usize];
        let cost = |i: &u32| {
            let feature = &features[*i as usize * self.dim..][..self.dim];
            (0..n).map(move |place| -dot(feature, self.point(point_of(place))))
        };
        let costs: Vec<f32> = pictures.iter().flat_map(cost).collect();
        let nearest = |place: usize| {
            let row = &costs[place * n..][..n];
            let others = (0..n).filter(|other| *other != place);
            others.into_iter().all(|other| row[place] < row[other])
        };
        let given = assign(&costs, n).into_iter().enumerate();
        let given = given.map(|(place, point)| Given {
            picture: pictures[place],
            point: point_of(point),
            nearest: nearest(place),
        });
        given.collect()
    }
}

/// Normal numbers, two of two uniform ones (Box and Muller).
fn fill_normal(draws: &Draws, out: &mut [f32]) {
    for (number, chunk) in out.chunks_mut(2).enumerate() {
        let [a, b, ..] = draws.units(number as u32);
        let length = (-2.0 * (1.0 - a).ln()).sqrt();
        let angle = std::f32::consts::TAU * b;
        for (value, part) in chunk.iter_mut().zip([angle.cos(), angle.sin()]) {
            *value = length * part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_of_unit_length_and_everywhere() {
        let targets = NoiseTargets::new(500, 5, 3);
        let rows = targets.rows();
        let mut mean = [0.0; 5];
        for row in rows.chunks(5) {
            assert!((dot(row, row) - 1.0).abs() < 1e-5);
            mean.iter_mut().zip(row).for_each(|(m, v)| *m += v / 500.0);
        }
        assert!(mean.iter().all(|m| m.abs() < 0.1), "{mean:?}");
        assert_ne!(rows, NoiseTargets::new(500, 5, 4).rows());
    }

    /// Features that are the points, in another order: whoever is in one group with the owner of
    /// its point gets it.
    #[test]
    fn pictures_change_points_until_all_have_their_own() {
        let mut targets = NoiseTargets::new(60, 8, 0);
        let mut features = targets.rows();
        features.rotate_left(8);
        let apart = |targets: &NoiseTargets| -> f32 {
            let both = targets.rows();
            1.0 - dot(&both, &features) / 60.0
        };
        let begun = apart(&targets);
        let mut last = begun;
        for time in 0..100 {
            targets.reassign(&features, 20, time);
            assert!(apart(&targets) <= last + 1e-5, "never farther");
            last = apart(&targets);
        }
        assert!(last < 0.1 * begun, "{last} of {begun}");
        let found = targets.reassign(&features, 60, 100);
        assert!(apart(&targets).abs() < 1e-5 && found.kept > 0.5, "{found:?}");
        let all_own = Reassigned { nearest: 1.0, kept: 1.0 };
        assert_eq!(targets.reassign(&features, 60, 101), all_own);
        let mut all = targets.of().to_vec();
        all.sort();
        assert_eq!(all, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn owners_are_one_for_each_point() {
        let targets = NoiseTargets::new(3, 2, 0);
        assert_eq!(targets.owned(&[2, 0, 1]).unwrap().of(), [2, 0, 1]);
        for wrong in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 3]] {
            assert_eq!(targets.owned(wrong), None);
        }
    }
}
