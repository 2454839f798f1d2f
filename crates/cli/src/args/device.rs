//! Which device does a configuration mean?

use anchorhood::engine::{Cuda, Device};
use anchorhood::train::{DeviceChoice, MachineConfig};

use crate::terminal::failure::Failure;

/// The device that `machine` names. `auto` takes a GPU when one works.
pub fn open(machine: &MachineConfig) -> Result<Device, Failure> {
    let cpu = || Device::cpu(machine.thread_count());
    let gpu = |number| Device::cuda(number, machine.precision.into());
    Ok(match machine.device {
        DeviceChoice::Cuda(number) => gpu(number)?,
        DeviceChoice::Auto if Cuda::available() => gpu(0).unwrap_or_else(|why| {
            eprintln!("warning: no GPU is used: {why}");
            cpu()
        }),
        DeviceChoice::Auto | DeviceChoice::Cpu => cpu(),
    })
}
