//! How many connections has the system room for? Each is an open file, of which many systems allow
//! a program 1,024 unless it asks for more.

/// Files that are open beside connections, at most: pictures being read, the index, the program's
/// own.
const OTHERS: usize = 256;

/// Asks for as many open files as `connections` need; gives the number of connections for which
/// there are enough.
#[cfg(unix)]
pub(crate) fn room_for(connections: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.unwrap_or(u64::MAX);
    let needed = (connections + OTHERS) as u64;
    let wanted = Rlimit { current: Some(needed.min(most)), maximum: now.maximum };
    let allowed = match now.current {
        None => return connections,
        Some(enough) if enough >= needed => enough,
        // Where the system refuses it stays as it was.
        Some(before) => setrlimit(Resource::Nofile, wanted).map_or(before, |()| needed.min(most)),
    };
    let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
    connections.min(allowed.saturating_sub(OTHERS).max(16))
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
pub(crate) fn room_for(connections: usize) -> usize {
    connections
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_asked_for_or_allowed() {
        assert_eq!(room_for(8), 8);
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let many = room_for(1 << 40);
        assert!(most.is_none_or(|most| many as u64 <= most.max(16)), "{many}");
    }
}
