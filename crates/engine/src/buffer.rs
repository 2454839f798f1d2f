//! Memory of a device: a vector of f32 (features, a memory bank, losses) or of u32 (item indices,
//! class labels).
//!
//! What holds the values is the device's own; whoever passes a buffer on never looks inside, and a
//! device that is handed another one's says so.

use std::any::Any;
use std::marker::PhantomData;

use crate::{Error, Result};

/// A vector on a device.
pub struct Buffer<T = f32> {
    len: usize,
    limit: usize,
    shard: Option<Shard>,
    memory: Box<dyn Any + Send + Sync>,
    of: PhantomData<fn() -> T>,
}

impl<T> Buffer<T> {
    /// A vector of so many values, in memory of a device's own kind.
    pub fn new(len: usize, memory: impl Any + Send + Sync) -> Self {
        Buffer { len, limit: usize::MAX, shard: None, memory: Box::new(memory), of: PhantomData }
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory, for the device it belongs to.
    pub fn memory<M: Any>(&self) -> Result<&M> {
        self.memory.downcast_ref().ok_or_else(of_another_device)
    }

    /// The same, to be written to.
    pub fn memory_mut<M: Any>(&mut self) -> Result<&mut M> {
        self.memory.downcast_mut().ok_or_else(of_another_device)
    }
}

/// Some of the rows of a matrix that lies in parts on several processes, each with its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The first row that is here.
    pub first: usize,
    /// Rows on all processes.
    pub rows: usize,
}

impl Buffer {
    /// As this process's part of the rows of a matrix: operations that compare with its rows
    /// compare with those of all processes.
    pub fn sharded(self, shard: Shard) -> Self {
        Buffer { shard: Some(shard), ..self }
    }

    /// Which part of a matrix it is; nothing where it is a whole one.
    pub fn shard(&self) -> Option<Shard> {
        self.shard
    }
}

impl Buffer<u32> {
    /// With a higher limit, below which every value is: now, and whenever the device writes to it.
    /// A lower one than it has is refused.
    pub fn below(self, limit: usize) -> Result<Self> {
        match limit >= self.limit {
            true => Ok(Buffer { limit, ..self }),
            false => Err(Error::Plan(match self.limit {
                usize::MAX => format!("numbers that may be anything, as ones below {limit}"),
                own => format!("numbers up to {}, as ones below {limit}", own - 1),
            })),
        }
    }

    /// With a limit that nothing is checked against.
    ///
    /// # Safety
    ///
    /// Every value is below the limit, now and whenever a device writes to it: kernels take them
    /// for rows that are there.
    pub unsafe fn assume_below(self, limit: usize) -> Self {
        Buffer { limit, ..self }
    }

    /// What every value is below.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// That it names rows of so many, which no kernel could find out in time.
    pub(crate) fn check_below(&self, what: &str, count: usize) -> Result<()> {
        Error::refuse(self.limit > count, || match self.limit {
            usize::MAX => format!("{what}: numbers that may be anything, of {count}"),
            limit => format!("{what}: numbers up to {}, of {count}", limit - 1),
        })
    }
}

/// What a device says to a buffer, network, stream or batch that is not its own.
pub(crate) fn of_another_device() -> Error {
    Error::Device("given something that belongs to another device".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn a_limit_can_be_raised_and_not_lowered() {
        let device = Device::cpu(1);
        let sent = |values: &[u32]| device.upload_indices(values).unwrap();
        assert_eq!(sent(&[]).limit(), 0);
        assert_eq!(sent(&[3, 9, 0]).limit(), 10);
        assert_eq!(sent(&[3, 9, 0]).below(10).unwrap().limit(), 10);
        let raised = sent(&[3, 9, 0]).below(12).unwrap();
        assert_eq!(raised.limit(), 12);
        // The device may have written 11 meanwhile.
        for (buffer, limit) in [(raised, 11), (sent(&[3, 9, 0]), 9), (sent(&[0]), 0)] {
            assert!(matches!(buffer.below(limit), Err(Error::Plan(_))), "{limit}");
        }
        let unknown = Buffer::<u32>::new(1, vec![0_u32]);
        assert!(matches!(unknown.below(5), Err(Error::Plan(_))));
    }
}
