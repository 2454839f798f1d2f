//! Which device does a configuration mean?

use std::thread;

use anchorhood_distributed::Launch;
use anchorhood_engine::{Cuda, Device, SimdLevel};
use anchorhood_train::{DeviceChoice, Event, MachineConfig};

use crate::error::usage;
use crate::{Error, OnEvent};

/// More threads than this are a machine for larger pictures.
const MANY_THREADS: usize = 16;

/// Pixels a side of a folder's photographs where nobody says how many: what `machine` learns from
/// in a reasonable time.
pub fn largest_images(machine: &MachineConfig) -> usize {
    let gpu = match machine.device {
        DeviceChoice::Cuda(_) | DeviceChoice::Several(_) | DeviceChoice::AllGpus => true,
        DeviceChoice::Auto => Cuda::available(),
        DeviceChoice::Cpu => false,
    };
    if gpu || machine.thread_count() >= MANY_THREADS { 96 } else { 64 }
}

/// The device that `machine` names. `auto` takes a GPU when one works, one process the first of
/// several.
pub fn open_device(machine: &MachineConfig, on_event: OnEvent) -> Result<Device, Error> {
    let gpu = |number| Device::cuda(number, machine.precision.into());
    Ok(match machine.device {
        DeviceChoice::Cuda(number) => gpu(number)?,
        DeviceChoice::Several(_) | DeviceChoice::AllGpus => {
            gpu(gpus_of(machine.device)?.first().copied().unwrap_or(0))?
        }
        DeviceChoice::Auto if Cuda::available() => match gpu(0) {
            Ok(gpu) => gpu,
            Err(why) => {
                on_event(&Event::warning(format!("no GPU is used: {why}")));
                cpu(machine)?
            }
        },
        DeviceChoice::Auto | DeviceChoice::Cpu => cpu(machine)?,
    })
}

/// The same for what a run has left: a GPU need not be the one it was trained on, which may not be
/// here.
pub fn open_device_again(machine: &MachineConfig, on_event: OnEvent) -> Result<Device, Error> {
    let device = match machine.device {
        DeviceChoice::Cpu => DeviceChoice::Cpu,
        _ => DeviceChoice::Auto,
    };
    open_device(&MachineConfig { device, ..machine.clone() }, on_event)
}

/// The machine's settings for one of several processes: threads are divided, unless their number
/// was given, and each has a GPU of its own.
pub fn machine_of(
    launch: Option<&Launch>,
    mut machine: MachineConfig,
) -> Result<MachineConfig, Error> {
    let Some(launch) = launch else {
        return Ok(machine);
    };
    if let (0, Some(threads)) = (machine.threads, threads_of(launch)) {
        machine.threads = threads;
    }
    machine.device = of_process(machine.device, launch.local_rank)?;
    Ok(machine)
}

/// Cores for each process of this machine, where the launcher has not given each its own and says
/// how many there are.
fn threads_of(launch: &Launch) -> Option<usize> {
    let here = launch.local_ranks.filter(|n| *n > 1)?;
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    if is_bound() { None } else { Some((cores / here).max(1)) }
}

/// Whether this process was given some of the machine's cores.
fn is_bound() -> bool {
    let allowed = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list:"))?;
        listed(line.split_once(':')?.1)
    };
    let all = || listed(&std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?);
    allowed().zip(all()).is_some_and(|(some, all)| some < all)
}

/// How many a list like 0-3,7 has.
fn listed(text: &str) -> Option<usize> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first).map(|n| n + 1)
    };
    text.trim().split(',').map(count).sum()
}

/// The GPUs that are to be used by a process each; none where a choice is of one device.
pub fn gpus_of(choice: DeviceChoice) -> Result<Vec<usize>, Error> {
    Ok(match choice {
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Cuda(_) => vec![],
        DeviceChoice::Several(gpus) => gpus.numbers(),
        DeviceChoice::AllGpus => (0..Cuda::count()?).collect(),
    })
}

/// Which of a choice's devices is that of one of several processes: of several GPUs its own, and
/// where the choice is one for all, that of its number among the processes of the machine.
fn of_process(choice: DeviceChoice, local_rank: Option<usize>) -> Result<DeviceChoice, Error> {
    let rank = local_rank.unwrap_or(0);
    match choice {
        DeviceChoice::Cpu | DeviceChoice::Cuda(1..) => Ok(choice),
        // A launcher may show each process a GPU of its own, and no other.
        DeviceChoice::Auto | DeviceChoice::Cuda(0) => match Cuda::count() {
            Ok(count @ 1..) if Cuda::available() => Ok(DeviceChoice::Cuda(rank % count)),
            Ok(_) | Err(_) => Ok(choice),
        },
        DeviceChoice::Several(_) | DeviceChoice::AllGpus => {
            let gpus = gpus_of(choice)?;
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

fn cpu(machine: &MachineConfig) -> Result<Device, Error> {
    SimdLevel::wanted().map_err(|why| Error::usage(why.to_string()))?;
    Ok(Device::cpu(machine.thread_count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_counted() {
        assert_eq!(listed("\t0-3,7\n"), Some(5));
        assert_eq!(listed("2"), Some(1));
        assert_eq!(listed("x"), None);
    }
}
