//! Similarities between rows of two matrices on the GPU.

use super::{Cuda, CudaBuffer};
use crate::{Error, Positives, Result, Scan, ScanResult};

fn missing() -> Error {
    Error::Device("similarities are not computed on the GPU yet; use the CPU".into())
}

/// See [`crate::Device::softmax_loss`].
pub(super) fn softmax_loss(
    _cuda: &Cuda,
    _queries: &CudaBuffer,
    _keys: &CudaBuffer,
    _dim: usize,
    _temperature: f32,
    _positives: &Positives,
    _losses: &mut [f32],
    _gradient: &mut CudaBuffer,
) -> Result<()> {
    Err(missing())
}

/// See [`crate::Device::blend_rows`].
pub(super) fn blend_rows(
    _cuda: &Cuda,
    _keys: &mut CudaBuffer,
    _dim: usize,
    _indices: &[u32],
    _queries: &CudaBuffer,
    _rate: f32,
) -> Result<()> {
    Err(missing())
}

/// See [`crate::Device::scan`].
pub(super) fn scan(
    _cuda: &Cuda,
    _queries: &CudaBuffer,
    _keys: &CudaBuffer,
    _scan: &Scan,
    _progress: &(dyn Fn(usize) + Sync),
) -> Result<ScanResult> {
    Err(missing())
}
