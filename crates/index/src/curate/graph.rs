//! Disjoint sets of pictures that belong together.

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
