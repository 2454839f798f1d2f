//! What the tests that need a GPU share: vectors to and from the device.

use cudarc::driver::{CudaSlice, DeviceRepr, ValidAsZeroBits};

use super::launch::Pointer;
use super::{Cuda, Precision};

/// The first GPU.
pub(super) fn open() -> Cuda {
    Cuda::new(0, Precision::Bf16).unwrap()
}

/// A vector on the device, and where it is.
pub(super) struct OnDevice<T> {
    values: CudaSlice<T>,
    pub(super) at: Pointer,
}

impl<T: DeviceRepr + ValidAsZeroBits + Default + Clone> OnDevice<T> {
    pub(super) fn new(cuda: &Cuda, host: &[T]) -> Self {
        let mut values = cuda.zeros(host.len(), "a test's vector").unwrap();
        cuda.stream().memcpy_htod(host, &mut values).unwrap();
        let at = cuda.pointer(&values);
        OnDevice { values, at }
    }

    /// What it holds when all work asked for is done.
    pub(super) fn read(&self, cuda: &Cuda) -> Vec<T> {
        cuda.synchronise().unwrap();
        cuda.stream().clone_dtoh(&self.values).unwrap()
    }
}

/// f32 that must be written to be anything.
pub(super) fn unwritten(cuda: &Cuda, len: usize) -> OnDevice<f32> {
    OnDevice::new(cuda, &vec![f32::NAN; len])
}
