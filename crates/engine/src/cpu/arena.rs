//! One allocation for all activations and gradients; the plan says which part is whose.

use std::ops::Range;

/// Memory that several layers' buffers live in.
pub(super) struct Arena {
    values: Vec<f32>,
}

impl Arena {
    pub(super) fn new(len: usize) -> Self {
        Arena { values: vec![0.0; len] }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn read(&self, range: Range<usize>) -> &[f32] {
        &self.values[range]
    }

    pub(super) fn write(&mut self, range: Range<usize>) -> &mut [f32] {
        &mut self.values[range]
    }

    /// Parts to read, which may overlap each other, and parts to write, which may overlap nothing.
    pub(super) fn views<const R: usize, const W: usize>(
        &mut self,
        read: [Range<usize>; R],
        write: [Range<usize>; W],
    ) -> ([&[f32]; R], [&mut [f32]; W]) {
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        for (i, w) in write.iter().enumerate() {
            assert!(!read.iter().any(|r| meet(w, r)), "written while read");
            assert!(!write[..i].iter().any(|o| meet(w, o)), "written twice");
        }
        for r in read.iter().chain(&write) {
            assert!(r.start <= r.end && r.end <= self.values.len());
        }
        let base = self.values.as_mut_ptr();
        // SAFETY: all ranges lie within the vector; no written one meets any other, both checked
        // just above; the borrow of self lasts as long as the slices.
        unsafe {
            (
                read.map(|r| std::slice::from_raw_parts(base.add(r.start), r.len())),
                write.map(|w| std::slice::from_raw_parts_mut(base.add(w.start), w.len())),
            )
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn views_are_the_parts_asked_for() {
        let mut arena = Arena::new(8);
        arena.write(0..3).fill(1.0);
        let ([a, b], [w]) = arena.views([0..3, 1..3], [3..5]);
        assert_eq!((a.len(), b.len()), (3, 2));
        w.fill(a[0] + b[0]);
        assert_eq!(arena.read(2..6), [1.0, 2.0, 2.0, 0.0]);
    }

    #[test]
    #[should_panic(expected = "written while read")]
    fn overlap_is_refused() {
        Arena::new(8).views([0..4], [3..5]);
    }
}
