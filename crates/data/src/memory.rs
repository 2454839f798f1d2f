//! How much memory there is for pictures.

/// Where the system does not tell how much is free.
const GUESS: u64 = 8 << 30;

/// Bytes that decoded pictures may take: half of what is free now. The rest is the network's, and everyone else's.
pub(crate) fn for_pictures() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|report| available(&report));
    // A container may have less than its machine. What it uses is not asked: that counts cached files, which give way.
    let group = read("/sys/fs/cgroup/memory.max").and_then(|most| most.trim().parse().ok());
    let free = machine.into_iter().chain(group).min();
    free.unwrap_or(GUESS) / 2
}

/// `MemAvailable` of Linux's report, in bytes.
fn available(report: &str) -> Option<u64> {
    let line = report.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_report_is_read() {
        let report = "MemTotal:  24000 kB\nMemAvailable:   1000 kB\n";
        assert_eq!(available(report), Some(1_024_000));
        assert_eq!(available("MemTotal: 5 kB"), None);
        assert!(for_pictures() > 0);
    }
}
