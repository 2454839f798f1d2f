//! How often something happened, counted on the device, by each of several processes for itself.

use anchorhood_engine::{Buffer, Device, Result};

/// What all processes have counted.
pub(crate) fn counted(device: &Device, tally: &Buffer<u32>) -> Result<Vec<u32>> {
    let own = device.download_indices(tally)?;
    let mut all: Vec<f64> = own.iter().map(|count| f64::from(*count)).collect();
    device.communicator().sum_f64(&mut all)?;
    Ok(all.iter().map(|count| *count as u64 as u32).collect())
}

/// Goes on counting from there: the first process does, and the others begin at zero.
pub(crate) fn go_on(device: &Device, counted: &[u32]) -> Result<Buffer<u32>> {
    if device.communicator().is_first() {
        device.upload_indices(counted)
    } else {
        device.upload_indices(&vec![0; counted.len()])
    }
}
