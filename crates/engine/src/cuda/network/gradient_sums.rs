//! Gradients summed over processes, in buckets, while the backward pass goes on.
//!
//! Matrices lie in the order of layers, and the pass goes from the last to the first: as soon as
//! all gradients of a bucket have been asked for, the carrier waits for them and sums the bucket,
//! beside what the pass does next. What is no matrix, a little, comes at the end, and after it the
//! first matrix, whose gradient is the last to be there: all others can be updated meanwhile.
//! Buckets and their order depend on the network alone, so every process asks for the same. Where
//! the gradients of matrices are bf16, so are their sums.

use cudarc::driver::CudaEvent;

use super::State;
use crate::cuda::Doing;
use crate::cuda::nccl::Kind;
use crate::cuda::profile::Part;
use crate::cuda::stream::Carrier;
use crate::cuda::together::after;
use crate::{Graph, Result};

/// Bytes of a bucket, or more where one matrix has more: enough for a link's full speed, and few
/// enough for several in a pass.
const BUCKET: usize = 8 << 20;

/// A run of matrices, and the first layer that has one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) layer: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// From runs of values with their layers, in order of places, to buckets from the last to the
/// first, which has one matrix.
pub(super) fn buckets(matrices: &[Bucket], bytes_each: usize) -> Vec<Bucket> {
    let Some((first, others)) = matrices.split_first() else {
        return vec![];
    };
    let mut buckets: Vec<Bucket> = vec![];
    for matrix in others.iter().rev() {
        match buckets.last_mut() {
            Some(last) if (last.end - last.start) * bytes_each < BUCKET => {
                last.start = matrix.start;
                last.layer = last.layer.min(matrix.layer);
            }
            Some(_) | None => buckets.push(matrix.clone()),
        }
    }
    buckets.push(first.clone());
    buckets
}

/// The buckets of a pass that are not summed yet.
pub(super) struct GradientSums<'a> {
    state: &'a State,
    carrier: &'a Carrier,
    left: std::slice::Iter<'a, Bucket>,
}

impl<'a> GradientSums<'a> {
    /// Nothing where nobody else takes the step.
    pub(super) fn begin(state: &'a State) -> Result<Option<Self>> {
        let Some(carrier) = &state.carrier else {
            return Ok(None);
        };
        // Both are part of what is recorded, whatever of it runs.
        after(&state.side.inner, &state.stream.inner)?;
        after(&carrier.stream, &state.stream.inner)?;
        Ok(Some(GradientSums { state, carrier, left: state.buckets.iter() }))
    }

    /// The pass has come to this layer: what is complete is summed.
    pub(super) fn come_to(&mut self, layer: usize) -> Result<()> {
        // The first matrix waits for what is no matrix.
        while let [bucket, _, ..] = self.left.as_slice()
            && bucket.layer > layer
        {
            self.left.next();
            self.sum(bucket)?;
        }
        Ok(())
    }

    /// The pass has ended: so is all the rest, and what is no matrix. When the event has come, all
    /// but the first matrix is summed.
    pub(super) fn end(self) -> Result<CudaEvent> {
        let left = self.left.as_slice();
        let (last, others) = match left.split_last() {
            Some((last, others)) => (Some(last), others),
            None => (None, left),
        };
        others.iter().try_for_each(|bucket| self.sum(bucket))?;
        let (state, carrier) = (self.state, self.carrier);
        state.part(Part::Communication, || {
            after(&carrier.stream, &state.stream.inner)?;
            if state.first_has_bias {
                after(&carrier.stream, &state.side.inner)?;
            }
            let (at, count) = state.parameters.other_gradients();
            match count {
                0 => Ok(()),
                count => {
                    let (nccl, stream) = (&carrier.nccl, &carrier.stream);
                    nccl.all_reduce(stream, at, count, Kind::F32)
                }
            }
        })?;
        let event = carrier.stream.record_event(None).doing("work on two streams")?;
        last.map_or(Ok(()), |bucket| self.sum(bucket))?;
        Ok(event)
    }

    fn sum(&self, bucket: &Bucket) -> Result<()> {
        let (state, carrier) = (self.state, self.carrier);
        state.part(Part::Communication, || {
            after(&carrier.stream, &state.side.inner)?;
            let (at, kind) = state.parameters.matrix_gradients(bucket.start);
            let count = bucket.end - bucket.start;
            carrier.nccl.all_reduce(&carrier.stream, at, count, kind)
        })
    }
}

impl State {
    /// Where a network's matrices are cut.
    pub(super) fn cut_buckets(&mut self, graph: &Graph) {
        let layers = graph.nodes().iter().enumerate();
        let matrix = |(layer, index): (usize, &usize)| {
            let place = self.parameters.matrix_range(*index)?;
            Some(Bucket { layer, start: place.start, end: place.end })
        };
        let of = layers.flat_map(|(layer, n)| n.parameters.iter().map(move |i| (layer, i)));
        let mut matrices: Vec<Bucket> = of.filter_map(matrix).collect();
        matrices.sort_by_key(|m| m.start);
        matrices.dedup_by_key(|m| m.start);
        self.buckets = buckets(&matrices, self.parameters.matrix_gradient_bytes());
        let first = matrices.first().map(|m| &graph.nodes()[m.layer]);
        self.first_has_bias = first.is_some_and(|n| n.bias_parameter().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_matrices_from_the_last_to_the_first() {
        let mib = 1 << 20;
        let matrix = |layer, start, len| Bucket { layer, start, end: start + len };
        let matrices = [
            matrix(1, 0, 100),
            matrix(2, 100, 5 * mib),
            // A shortcut's comes before its block's in the walk, and after it in memory.
            matrix(4, 100 + 5 * mib, 2 * mib),
            matrix(3, 100 + 7 * mib, 3 * mib),
            matrix(5, 100 + 10 * mib, 9 * mib),
        ];
        for bytes in [1, 2, 4] {
            let cut = buckets(&matrices, bytes);
            assert_eq!(cut[0].end, 100 + 19 * mib);
            assert_eq!(cut.last().unwrap().start, 0);
            assert!(cut.windows(2).all(|w| w[1].end == w[0].start), "{cut:?}");
            let last = cut.len() - 1;
            assert!(cut[..last].iter().all(|b| (b.end - b.start) * bytes >= BUCKET));
            for bucket in &cut {
                let within = |m: &&Bucket| m.start >= bucket.start && m.end <= bucket.end;
                let layers = matrices.iter().filter(within).map(|m| m.layer);
                assert_eq!(layers.min(), Some(bucket.layer), "{cut:?}");
            }
        }
        assert_eq!(buckets(&matrices, 1).len(), 3, "9, 3 + 2 + 5, and the first");
        assert_eq!(buckets(&[], 4), []);
    }
}
