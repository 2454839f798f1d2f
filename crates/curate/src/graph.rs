//! Groups in the neighbourhood graph: pictures that are each other's neighbours belong together,
//! and so do theirs.

use anchorhood_engine::{Device, Scan};

use crate::CurateError;

/// Divides vectors of unit length into the connected components of a graph: two are joined where
/// each is among the other's `k` nearest and their similarity is at least `above`. Groups of at
/// least `least`, largest first; members by index.
pub fn components(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    k: usize,
    above: f32,
    least: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<usize>>, CurateError> {
    let n = vectors.len() / dim;
    let scan = Scan { dim, entropy_temperature: None, k, same: true };
    let rows = device.upload(vectors)?;
    let found = device.scan(&rows, &rows, &scan, progress)?.neighbours;
    let mut sets = Sets::new(n);
    for i in 0..n {
        for (j, similarity) in found.of(i).iter().zip(found.similarities_of(i)) {
            let j = *j as usize;
            if *similarity >= above && found.of(j).contains(&(i as u32)) {
                sets.join(i, j);
            }
        }
    }
    Ok(sets.groups(least))
}

/// Disjoint sets of numbers (union-find, by the lowest number).
pub(crate) struct Sets(Vec<u32>);

impl Sets {
    pub fn new(n: usize) -> Self {
        Sets((0..n as u32).collect())
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.0[i] as usize != i {
            self.0[i] = self.0[self.0[i] as usize]; // half the way, for whoever comes next
            i = self.0[i] as usize;
        }
        i
    }

    pub fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b) as u32;
    }

    pub fn are_joined(&self, a: usize, b: usize) -> bool {
        let root = |mut i: usize| {
            while self.0[i] as usize != i {
                i = self.0[i] as usize;
            }
            i
        };
        root(a) == root(b)
    }

    /// Sets of at least `least`, the largest first, of equal ones that with the lowest number.
    pub fn groups(mut self, least: usize) -> Vec<Vec<usize>> {
        let mut groups = vec![vec![]; self.0.len()];
        for i in 0..self.0.len() {
            let root = self.root(i);
            groups[root].push(i);
        }
        groups.retain(|g: &Vec<usize>| !g.is_empty() && g.len() >= least);
        groups.sort_by(|a, b| b.len().cmp(&a.len()).then(a[0].cmp(&b[0])));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_hold_together_and_the_lonely_are_alone() {
        // Angles: a chain of small steps, a pair, a loner.
        let angles = [0.0_f32, 0.1, 0.2, 0.3, 2.0, 2.05, 4.0];
        let vectors: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        let groups = components(&Device::cpu(1), &vectors, 2, 2, 0.99, 1, &|_| {}).unwrap();
        assert_eq!(groups, [vec![0, 1, 2, 3], vec![4, 5], vec![6]]);
        let groups = components(&Device::cpu(1), &vectors, 2, 2, 0.99, 2, &|_| {}).unwrap();
        assert_eq!(groups.len(), 2);
    }
}
