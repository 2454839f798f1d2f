//! What did each picture look like last time?
//!
//! One row a picture, on the device; on several processes that work together, a part of the rows on
//! each. The bank begins as noise, uniform in ±1/√(dim/3) and not normalised, as the authors' code
//! has it; a row has unit length from its first update on, and inner products of rows are then
//! cosines.

use anchorhood_engine::{Buffer, Device, Error, Result, Stream};
use anchorhood_storage::random::{Draws, Stream as Purpose};

/// Features of all pictures, as they were last seen.
pub struct MemoryBank {
    rows: Buffer,
    len: usize,
    dim: usize,
}

impl MemoryBank {
    /// A bank of `n` pictures that were never seen.
    pub fn new(device: &Device, n: usize, dim: usize, seed: u64) -> Result<Self> {
        check_dim(dim)?;
        let limit = (3.0 / dim as f32).sqrt();
        let part = device.communicator().part(n);
        let mut values = vec![0.0; part.len() * dim];
        for (i, row) in part.zip(values.chunks_exact_mut(dim)) {
            Draws::new(seed, Purpose::Memory, 0, i as u64).fill_symmetric(row, limit);
        }
        MemoryBank::from_part(device, n, values, dim)
    }

    /// A bank of given features, one after the other: a saved bank, or features computed anew. For
    /// discovery by cosine they must have unit length.
    pub fn from_values(device: &Device, values: &[f32], dim: usize) -> Result<Self> {
        check_dim(dim)?;
        let len = values.len() / dim;
        Error::check_length("memory bank", len * dim, values.len())?;
        let part = device.communicator().part(len);
        let own = values[part.start * dim..part.end * dim].to_vec();
        MemoryBank::from_part(device, len, own, dim)
    }

    /// The same of so many pictures, from the rows of this process's
    /// [part](anchorhood_engine::Communicator::part) of them.
    pub fn from_part(device: &Device, len: usize, own: Vec<f32>, dim: usize) -> Result<Self> {
        check_dim(dim)?;
        let part = device.communicator().part(len);
        Error::check_length("memory bank", part.len() * dim, own.len())?;
        let rows = device.hand_over_part(own, len)?;
        Ok(MemoryBank { rows, len, dim })
    }

    /// How many pictures.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of a feature.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The rows where they are; of several processes, this one's.
    pub fn buffer(&self) -> &Buffer {
        &self.rows
    }

    /// All rows, copied back; on several processes to the first, and nothing on the others.
    pub fn values(&self, device: &Device) -> Result<Vec<f32>> {
        let own = device.download(&self.rows)?;
        let communicator = device.communicator();
        communicator.gather_to_first(&own, self.len, self.dim)
    }

    /// Eq. 8, x̃ ← (1 − η)·x̃ + η·x, and back to unit length: row `indices[b]` takes in feature b
    /// of the batch.
    pub fn update(
        &mut self,
        stream: &mut Stream,
        indices: &Buffer<u32>,
        features: &Buffer,
        eta: f32,
    ) -> Result<()> {
        stream.blend_rows(&mut self.rows, self.dim, indices, features, eta)
    }
}

fn check_dim(dim: usize) -> Result<()> {
    match dim {
        0 => Err(Error::Plan("memory bank: features of length 0".into())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_as_bounded_noise_of_the_seed() {
        let device = Device::cpu(1);
        let values = |n, seed| {
            let bank = MemoryBank::new(&device, n, 48, seed).unwrap();
            assert_eq!((bank.len(), bank.dim()), (n, 48));
            bank.values(&device).unwrap()
        };
        let a = values(200, 1);
        assert!(a.iter().all(|v| v.abs() <= 0.25));
        assert!(a.iter().any(|v| *v > 0.24) && a.iter().any(|v| *v < -0.24));
        // A picture's row does not depend on how many there are.
        assert_eq!(a[..100 * 48], values(100, 1));
        assert_ne!(a, values(200, 2));
        assert_ne!(a[..48], a[48..96]);
    }

    #[test]
    fn an_update_moves_its_rows_alone() {
        let device = Device::cpu(1);
        let mut bank =
            MemoryBank::from_values(&device, &[1.0, 0.0, 0.0, 1.0, 0.6, 0.8], 2).unwrap();
        let features = device.upload(&[0.0, 1.0]).unwrap();
        let which = device.upload_indices(&[0]).unwrap();
        let mut stream = device.stream().unwrap();
        bank.update(&mut stream, &which, &features, 0.5).unwrap();
        let half = 0.5_f32.sqrt();
        let values = bank.values(&device).unwrap();
        for (got, expected) in values.iter().zip([half, half, 0.0, 1.0, 0.6, 0.8]) {
            assert!((got - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn refuses_broken_rows() {
        let device = Device::cpu(1);
        let message = |r: Result<MemoryBank>| r.err().unwrap().to_string();
        assert!(message(MemoryBank::from_values(&device, &[0.0; 5], 2)).contains("memory bank"));
        assert!(message(MemoryBank::new(&device, 5, 0, 0)).contains("length 0"));
    }
}
