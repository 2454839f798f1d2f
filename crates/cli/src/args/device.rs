//! Which device does a configuration mean?

use anchorhood::{Device, MachineConfig, open_device};

use crate::terminal;
use crate::terminal::failure::Failure;

/// The device that `machine` names; why no GPU is used where one was hoped for is said.
pub fn open(machine: &MachineConfig) -> Result<Device, Failure> {
    Ok(open_device(machine, &mut terminal::tell)?)
}
