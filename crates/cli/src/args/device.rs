//! Which device does a configuration mean?

use anchorhood::engine::{Cuda, Device, SimdLevel};
use anchorhood::train::{DeviceChoice, MachineConfig};

use crate::terminal::failure::Failure;

/// More threads than this are a machine for larger pictures.
const MANY_THREADS: usize = 16;

/// Pixels a side of a folder's photographs where nobody says how many: what `machine` learns from in a reasonable time.
pub fn largest_pictures(machine: &MachineConfig) -> usize {
    let gpu = match machine.device {
        DeviceChoice::Cuda(_) => true,
        DeviceChoice::Auto => Cuda::available(),
        DeviceChoice::Cpu => false,
    };
    match gpu || machine.thread_count() >= MANY_THREADS {
        true => 96,
        false => 64,
    }
}

/// The device that `machine` names. `auto` takes a GPU when one works.
pub fn open(machine: &MachineConfig) -> Result<Device, Failure> {
    let gpu = |number| Device::cuda(number, machine.precision.into());
    Ok(match machine.device {
        DeviceChoice::Cuda(number) => gpu(number)?,
        DeviceChoice::Auto if Cuda::available() => match gpu(0) {
            Ok(gpu) => gpu,
            Err(why) => {
                eprintln!("warning: no GPU is used: {why}");
                cpu(machine)?
            }
        },
        DeviceChoice::Auto | DeviceChoice::Cpu => cpu(machine)?,
    })
}

fn cpu(machine: &MachineConfig) -> Result<Device, Failure> {
    SimdLevel::wanted().map_err(|why| Failure::usage(why.to_string()))?;
    Ok(Device::cpu(machine.thread_count()))
}
