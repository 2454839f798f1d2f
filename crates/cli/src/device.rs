//! Which device does a configuration mean?

use anchorhood::engine::{Cpu, Cuda, Device};
use anchorhood::train::{DeviceChoice, MachineConfig};

use crate::failure::Failure;

/// Something to do on a device, whichever it is.
pub trait Work {
    /// What comes of it.
    type Output;

    /// Does it.
    fn on<D: Device>(self, device: &D) -> Result<Self::Output, Failure>;
}

/// Does it on the device that `machine` names. `auto` takes a GPU when one works.
pub fn run<W: Work>(machine: &MachineConfig, work: W) -> Result<W::Output, Failure> {
    let gpu = |number| Cuda::new(number, machine.precision.into());
    match machine.device {
        DeviceChoice::Cuda(number) => work.on(&gpu(number)?),
        DeviceChoice::Auto if Cuda::available() => match gpu(0) {
            Ok(gpu) => work.on(&gpu),
            Err(why) => {
                eprintln!("warning: no GPU is used: {why}");
                work.on(&Cpu::new(machine.thread_count()))
            }
        },
        _ => work.on(&Cpu::new(machine.thread_count())),
    }
}
