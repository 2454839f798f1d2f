//! Losses over rows of f32, each with the gradient of weight · mean(losses); the maths is in [`crate::naive`].
//!
//! Losses and gradients are written (`=`). A row is summed by one thread in one order, so the bits are the same for any
//! number of threads. Nothing allocates. Everything here runs in the current rayon pool.
//! The contrastive loss compares rows with each other and lives beside the other similarities.

mod cosine;
mod cross_entropy;
mod mean_squared;

pub(crate) use cosine::{cosine, mean_of_others};
pub(crate) use cross_entropy::cross_entropy;
pub(crate) use mean_squared::mean_squared;

use crate::{Error, Result};

/// Rows that a task takes at least, so that short rows are worth a task.
const LEAST_ROWS: usize = 8;

/// Adds weight · mean(losses) to the loss of the step so far (`+=`), keeps it in the ring of the last steps' losses at
/// the slot of this step (`=`), and raises the flag, which stays up, where the sum is not finite.
///
/// `current` is the step in the epoch, the epoch, and the number of all steps before this one.
pub(crate) fn accumulate_loss(
    losses: &[f32],
    weight: f32,
    sum: &mut f64,
    ring: &mut [f32],
    current: &[u64; 3],
    flag: &mut u32,
) {
    let mean = losses.iter().map(|l| f64::from(*l)).sum::<f64>() / losses.len() as f64;
    *sum += f64::from(weight) * mean;
    let slot = (current[2] % ring.len() as u64) as usize;
    ring[slot] = *sum as f32;
    if !sum.is_finite() {
        *flag = 1;
    }
}

/// All matrices have so many rows of length `dim`, which is not 0.
fn check_rows<const N: usize>(rows: usize, dim: usize, matrices: [&[f32]; N]) -> Result<()> {
    if dim == 0 {
        return Err(Error::Plan("rows of length 0".into()));
    }
    let check = |m: &[f32]| Error::check_length("rows of a loss", rows * dim, m.len());
    matrices.into_iter().try_for_each(check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_step_add_up_in_its_slot() {
        let (mut sum, mut ring, mut flag) = (0.0, [9.0; 3], 0);
        accumulate_loss(&[1.0, 2.0], 1.0, &mut sum, &mut ring, &[1, 0, 7], &mut flag);
        accumulate_loss(&[4.0], 0.5, &mut sum, &mut ring, &[1, 0, 7], &mut flag);
        assert_eq!((sum, ring, flag), (3.5, [9.0, 3.5, 9.0], 0));
    }

    #[test]
    fn a_loss_that_is_not_finite_raises_the_flag_for_good() {
        for bad in [f32::NAN, f32::INFINITY] {
            let (mut sum, mut ring, mut flag) = (0.0, [0.0; 1], 0);
            accumulate_loss(&[1.0, bad], 1.0, &mut sum, &mut ring, &[0; 3], &mut flag);
            assert_eq!((flag, ring[0].is_finite()), (1, false));
            sum = 0.0;
            accumulate_loss(&[1.0], 1.0, &mut sum, &mut ring, &[0; 3], &mut flag);
            assert_eq!((flag, ring[0]), (1, 1.0));
        }
    }
}
