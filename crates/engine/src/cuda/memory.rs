//! Device memory that is asked for before the first batch: zeroed vectors, scratch that grows while
//! a network is built, and page-locked host memory through which pictures travel.

use std::sync::Arc;

use cudarc::driver::{
    CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DriverError,
    PinnedHostSlice, ValidAsZeroBits, sys,
};

use super::launch::Pointer;
use super::{Cuda, Doing};
use crate::{Buffer, Error, Fits, Precision, Result};

impl Cuda {
    /// Zeroed memory; the error says what was asked for and what was free.
    pub(crate) fn zeros<T>(&self, len: usize, what: &str) -> Result<CudaSlice<T>>
    where
        T: DeviceRepr + ValidAsZeroBits,
    {
        let bytes = len * size_of::<T>();
        // An empty allocation is not one to every driver.
        let slice = self.stream().alloc_zeros(len.max(1));
        slice.or_else(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = self.stream().context().mem_get_info().unwrap_or((0, 0));
                Err(Error::Memory { what: what.into(), asked: bytes, free, total, fits: None })
            }
            _ => Err(e).doing(what),
        })
    }

    /// A buffer of zeros.
    pub(super) fn buffer(&self, len: usize, what: &str) -> Result<Buffer> {
        Ok(Buffer::new(len, self.zeros::<f32>(len, what)?))
    }

    /// Where a vector begins.
    pub(super) fn pointer<T>(&self, slice: &CudaSlice<T>) -> Pointer {
        slice.device_ptr(self.stream()).0
    }
}

/// Says which batch would fit where this many pictures did not; each takes so many bytes.
pub(super) fn batch_that_fits(
    mut error: Error,
    batch: usize,
    each: usize,
    precision: Precision,
) -> Error {
    if let Error::Memory { free, fits, .. } = &mut error {
        // A fifth is left to what does not grow with the batch.
        let most = *free / 5 * 4 / each.max(1);
        *fits = Some(Fits::Batch {
            pictures: most.min(batch - 1),
            halved: precision != Precision::Bf16,
        });
    }
    error
}

/// Says how many rows of features would fit.
pub(super) fn rows_that_fit(mut error: Error) -> Error {
    if let Error::Memory { asked, free, fits, .. } = &mut error {
        let percent = *free as u128 * 90 / (*asked).max(1) as u128;
        *fits = Some(Fits::Rows { percent: percent.min(99) as u8 });
    }
    error
}

/// Working memory that layers take turns with.
pub(super) struct Workspace(CudaSlice<u8>);

impl Workspace {
    pub(super) fn new(cuda: &Cuda, bytes: usize, what: &str) -> Result<Self> {
        Ok(Workspace(cuda.zeros(bytes, what)?))
    }

    /// Grows to at least so many bytes; what it held is lost.
    pub(super) fn reserve(&mut self, cuda: &Cuda, bytes: usize, what: &str) -> Result<()> {
        if bytes > self.0.len() {
            self.0 = cuda.zeros(bytes, what)?;
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(super) fn pointer(&self, cuda: &Cuda) -> Pointer {
        cuda.pointer(&self.0)
    }
}

/// Page-locked memory on the host, which the device reads while the host goes on.
pub(super) struct PageLocked<T> {
    memory: PinnedHostSlice<T>,
    /// What tells that it may be filled again. (cudarc would wait by events of its own, but those
    /// are off.)
    free: Option<CudaEvent>,
}

impl<T: DeviceRepr + ValidAsZeroBits> PageLocked<T> {
    pub(super) fn new(cuda: &Cuda, len: usize) -> Result<Self> {
        // SAFETY: a batch is written before it is sent.
        let memory = unsafe { cuda.stream().context().alloc_pinned(len) }
            .doing("page-locked memory for a batch")?;
        Ok(PageLocked { memory, free: None })
    }

    /// The memory to be written to, when it is free.
    pub(super) fn fill(&mut self) -> Result<&mut [T]> {
        self.wait().doing("sending a batch")?;
        self.memory.as_mut_slice().doing("sending a batch")
    }

    /// Has a stream bring all of it to a place on the device. It is free, and the place is filled,
    /// when this has happened.
    pub(super) fn send(
        &mut self,
        stream: &Arc<CudaStream>,
        to: &mut impl DevicePtrMut<T>,
    ) -> Result<&CudaEvent> {
        stream.memcpy_htod(&self.memory, to).doing("sending a batch")?;
        self.keep_for(stream)
    }

    /// It is free when a stream has done all that it was given so far.
    pub(super) fn keep_for(&mut self, stream: &CudaStream) -> Result<&CudaEvent> {
        let event = stream.record_event(None).doing("sending a batch")?;
        Ok(self.free.insert(event))
    }
}

impl<T> PageLocked<T> {
    fn wait(&mut self) -> std::result::Result<(), DriverError> {
        self.free.take().map_or(Ok(()), |free| free.synchronize())
    }
}

impl<T> Drop for PageLocked<T> {
    fn drop(&mut self) {
        // A device that has failed reads nothing any more.
        let _ = self.wait();
    }
}

/// Two page-locked buffers in turn: one is filled while the other travels.
pub(super) struct Staging {
    buffers: [PageLocked<f32>; 2],
    device: CudaSlice<f32>,
    turn: usize,
}

impl Staging {
    pub(super) fn new(cuda: &Cuda, len: usize) -> Result<Self> {
        Ok(Staging {
            buffers: [PageLocked::new(cuda, len)?, PageLocked::new(cuda, len)?],
            device: cuda.zeros(len, "a batch of pixels")?,
            turn: 0,
        })
    }

    /// Sends values (at most a batch) and says where they arrive; waits for the transfer before the
    /// last only.
    pub(super) fn send(&mut self, cuda: &Cuda, values: &[f32]) -> Result<Pointer> {
        let buffer = &mut self.buffers[self.turn];
        self.turn = 1 - self.turn;
        buffer.fill()?[..values.len()].copy_from_slice(values);
        buffer.send(cuda.stream(), &mut self.device)?;
        Ok(self.arrival(cuda))
    }

    /// Where values arrive, for those that are on the device already.
    pub(super) fn arrival(&self, cuda: &Cuda) -> Pointer {
        cuda.pointer(&self.device)
    }

    /// Values of a batch.
    pub(super) fn len(&self) -> usize {
        self.device.len()
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(asked: usize) -> Error {
        Error::Memory {
            what: "activations of 1000 pictures".into(),
            asked: asked << 20,
            free: 1000 << 20,
            total: 2000 << 20,
            fits: None,
        }
    }

    fn fits(error: Error) -> Option<Fits> {
        match error {
            Error::Memory { fits, .. } => fits,
            _ => None,
        }
    }

    #[test]
    fn out_of_memory_says_what_would_fit() {
        let too_many = batch_that_fits(error(4000), 1000, 4 << 20, Precision::F32);
        assert_eq!(
            too_many.to_string(),
            "activations of 1000 pictures: 4000 MiB asked for, 1000 of the device's 2000 MiB are \
             free"
        );
        let (pictures, halved) = (200, true);
        assert_eq!(fits(too_many), Some(Fits::Batch { pictures, halved }));
        let not_one = batch_that_fits(error(4_000_000), 1000, 4 << 30, Precision::Bf16);
        let (pictures, halved) = (0, false);
        assert_eq!(fits(not_one), Some(Fits::Batch { pictures, halved }));
        let rows = rows_that_fit(error(2000));
        assert_eq!(fits(rows), Some(Fits::Rows { percent: 45 }));
    }
}
