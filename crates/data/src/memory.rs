//! How much memory there is: of the machine, of the group that the process was put in, and of what
//! it may address.
//!
//! Kept by hand: `sysinfo` asks the root group alone, not those that a scheduler puts a job in, and
//! not what may be addressed.

use std::path::Path;

/// Where the system does not tell how much is free.
const GUESS: u64 = 8 << 30;

/// Bytes that decoded pictures may take: half of what is free now. The rest is the network's, and
/// everyone else's.
pub(crate) fn for_pictures() -> u64 {
    host_memory().free / 2
}

/// Bytes that decoding may take at a time, beside the pictures that it leaves.
pub(crate) fn for_decoding() -> u64 {
    host_memory().free / 4
}

/// Memory of this machine, as far as this process may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// Bytes that the process could still get.
    pub free: u64,
    /// Bytes there are.
    pub total: u64,
}

/// What the machine has, what the process's group (a container) may have, or what it may address,
/// whichever is least.
pub fn host_memory() -> HostMemory {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (machine, used) = (read("/proc/meminfo"), read("/proc/self/status"));
    let group = of_groups(&read("/proc/self/cgroup"));
    let space = address_space(&read("/proc/self/limits"));
    let mapped = figure(&used, "VmSize:").unwrap_or(0);
    let least = |of: [Option<u64>; 3]| of.into_iter().flatten().min().unwrap_or(GUESS);
    let left = space.map(|most| most.saturating_sub(mapped));
    HostMemory {
        free: least([figure(&machine, "MemAvailable:"), group, left]),
        total: least([figure(&machine, "MemTotal:"), group, space]),
    }
}

/// A line of one of Linux's reports, in bytes.
fn figure(report: &str, name: &str) -> Option<u64> {
    let line = report.lines().find(|l| l.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The least that a group on the way to this process's may have. What it uses is not asked: that
/// counts cached files, which give way.
fn of_groups(groups: &str) -> Option<u64> {
    let limit = |file: &Path| std::fs::read_to_string(file).ok()?.trim().parse().ok();
    let limits = groups.lines().filter_map(|line| {
        let [_, kind, place] = line.splitn(3, ':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (root, file) = match kind {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // In a container the way from the root may not be there: its own group is the root.
        let within = Path::new(place.trim_start_matches('/')).ancestors();
        let within = within.map(|folder| Path::new(root).join(folder).join(file));
        within.filter_map(|file| limit(&file)).min()
    });
    limits.min()
}

/// Bytes that the process may address, where that is limited (`ulimit -v`).
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find(|l| l.starts_with("Max address space"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_reports_are_read() {
        let report = "MemTotal:  24000 kB\nMemAvailable:   1000 kB\n";
        assert_eq!(figure(report, "MemAvailable:"), Some(1_024_000));
        assert_eq!(figure("MemTotal: 5 kB", "MemAvailable:"), None);
        let limits = "Max stack size   8388608  unlimited  bytes\n\
                      Max address space         4096000000           unlimited            bytes\n";
        assert_eq!(address_space(limits), Some(4_096_000_000));
        assert_eq!(address_space("Max address space  unlimited  unlimited  bytes"), None);
        let host = host_memory();
        assert!(for_pictures() > 0 && host.free > 1 << 20 && host.total >= host.free);
    }

    #[test]
    fn groups_that_do_not_exist_limit_nothing() {
        assert_eq!(of_groups("7:cpu:/\nnonsense\n"), None);
    }
}
