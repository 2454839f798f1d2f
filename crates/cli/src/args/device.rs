//! Which device does a configuration mean?

use anchorhood::engine::Device;
use anchorhood::open_device;
use anchorhood::train::MachineConfig;

use crate::terminal;
use crate::terminal::failure::Failure;

/// The device that `machine` names; why no GPU is used where one was hoped for is said.
pub fn open(machine: &MachineConfig) -> Result<Device, Failure> {
    Ok(open_device(machine, &mut terminal::tell)?)
}
