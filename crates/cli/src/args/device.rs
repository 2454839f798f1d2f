//! Which device does a configuration mean?

use anchorhood::engine::{Cuda, Device, SimdLevel};
use anchorhood::train::{DeviceChoice, MachineConfig};

use crate::terminal::failure::Failure;

/// More threads than this are a machine for larger pictures.
const MANY_THREADS: usize = 16;

/// Pixels a side of a folder's photographs where nobody says how many: what `machine` learns from
/// in a reasonable time.
pub fn largest_pictures(machine: &MachineConfig) -> usize {
    let gpu = match machine.device {
        DeviceChoice::Cuda(_) | DeviceChoice::Several(_) | DeviceChoice::AllGpus => true,
        DeviceChoice::Auto => Cuda::available(),
        DeviceChoice::Cpu => false,
    };
    if gpu || machine.thread_count() >= MANY_THREADS { 96 } else { 64 }
}

/// The device that `machine` names. `auto` takes a GPU when one works, one process the first of
/// several.
pub fn open(machine: &MachineConfig) -> Result<Device, Failure> {
    let gpu = |number| Device::cuda(number, machine.precision.into());
    Ok(match machine.device {
        DeviceChoice::Cuda(number) => gpu(number)?,
        DeviceChoice::Several(_) | DeviceChoice::AllGpus => {
            gpu(several(machine.device)?.first().copied().unwrap_or(0))?
        }
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

/// The device for what a run has left: a GPU need not be the one it was trained on, which may not
/// be here.
pub fn open_again(machine: &MachineConfig) -> Result<Device, Failure> {
    let device = match machine.device {
        DeviceChoice::Cpu => DeviceChoice::Cpu,
        _ => DeviceChoice::Auto,
    };
    open(&MachineConfig { device, ..machine.clone() })
}

/// The GPUs that are to be used by a process each; none where a choice is of one device.
pub fn several(choice: DeviceChoice) -> Result<Vec<usize>, Failure> {
    Ok(match choice {
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Cuda(_) => vec![],
        DeviceChoice::Several(gpus) => gpus.numbers(),
        DeviceChoice::AllGpus => (0..Cuda::count()?).collect(),
    })
}

/// Which of a choice's devices is that of one of several processes: of several GPUs its own, and
/// where the choice is one for all, that of its number among the processes of the machine.
pub fn of_process(
    choice: DeviceChoice,
    local_rank: Option<usize>,
) -> Result<DeviceChoice, Failure> {
    let rank = local_rank.unwrap_or(0);
    match choice {
        DeviceChoice::Cpu | DeviceChoice::Cuda(1..) => Ok(choice),
        // A launcher may show each process a GPU of its own, and no other.
        DeviceChoice::Auto | DeviceChoice::Cuda(0) => match Cuda::count() {
            Ok(count @ 1..) if Cuda::available() => Ok(DeviceChoice::Cuda(rank % count)),
            Ok(_) | Err(_) => Ok(choice),
        },
        DeviceChoice::Several(_) | DeviceChoice::AllGpus => {
            let gpus = several(choice)?;
            let own = gpus.get(rank).map(|gpu| DeviceChoice::Cuda(*gpu));
            own.ok_or_else(|| {
                usage!(
                    "--device {choice} names {} GPUs, and process {rank} of this machine (counted \
                     from 0) would be one more; start as many processes as GPUs",
                    gpus.len()
                )
            })
        }
    }
}

fn cpu(machine: &MachineConfig) -> Result<Device, Failure> {
    SimdLevel::wanted().map_err(|why| Failure::usage(why.to_string()))?;
    Ok(Device::cpu(machine.thread_count()))
}
