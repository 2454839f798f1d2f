//! Who has come? To begin, MPI waits for every rank, and for ever where one never comes: a clock
//! beside it says after a while who is missing.
//!
//! On Linux each rank that has come has a socket by a name of its own, in no file system and gone
//! with its process; the ranks of a machine find out by it who of them is there. Of ranks on other
//! machines nothing is known until MPI has begun.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::join::VARIABLE;
use crate::{Launch, RanksError};

/// How much longer a rank waits that is not the lowest of those who have come: the lowest has
/// spoken by then, and its end ends all.
const AFTER_THE_LOWEST: Duration = Duration::from_secs(4);

/// A clock that runs until it is dropped.
pub(crate) struct Clock {
    _all_here: Sender<()>,
}

impl Clock {
    /// Calls `late`, on a thread of its own, if it is not dropped in time.
    pub(crate) fn start(
        launch: &Launch,
        patience: Duration,
        late: impl FnOnce(RanksError) + Send + 'static,
    ) -> Clock {
        let (all_here, ended) = channel::<()>();
        let (launch, roll) = (launch.clone(), Roll::sign(launch));
        thread::spawn(move || {
            let is_late = |more| ended.recv_timeout(more) == Err(RecvTimeoutError::Timeout);
            if !is_late(patience) {
                return;
            }
            let came = roll.who_came();
            if came.iter().any(|rank| *rank < launch.rank) && !is_late(AFTER_THE_LOWEST) {
                return;
            }
            late(RanksError(format!(
                "{}: rank {} has waited {} s for all {} to begin; see what the missing ones say, \
                 or wait longer by {VARIABLE} (in seconds)",
                who(&launch, &came),
                launch.rank,
                patience.as_secs(),
                launch.ranks
            )));
        });
        Clock { _all_here: all_here }
    }
}

/// Who is missing, as far as it can be told.
fn who(launch: &Launch, came: &[usize]) -> String {
    let listed = |ranks: &[usize]| {
        let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
        match &ranks[..] {
            [one] => format!("rank {one}"),
            several => format!("ranks {}", several.join(", ")),
        }
    };
    let missing: Vec<usize> = (0..launch.ranks).filter(|r| !came.contains(r)).collect();
    match launch.local_ranks {
        _ if came.is_empty() => "not all ranks have come".into(),
        Some(here) if here < launch.ranks && came.len() >= here => {
            format!("all {here} ranks of this machine have come, and not all of the others")
        }
        Some(here) if here < launch.ranks => {
            format!("of the {here} ranks of this machine only {} came", listed(came))
        }
        Some(_) | None => format!("{} never came", listed(&missing)),
    }
}

/// What ranks of a machine know of each other.
struct Roll {
    ranks: usize,
    job: Option<String>,
    #[cfg(target_os = "linux")]
    _here: Option<std::os::unix::net::UnixListener>,
}

impl Roll {
    /// Says that this rank has come.
    fn sign(launch: &Launch) -> Roll {
        let job = job(&|name| std::env::var(name).ok());
        Roll {
            ranks: launch.ranks,
            #[cfg(target_os = "linux")]
            _here: job.as_deref().and_then(|job| linux::sign(job, launch.rank)),
            job,
        }
    }

    /// Those of this machine who have come; nobody where that cannot be told.
    fn who_came(&self) -> Vec<usize> {
        let Some(job) = &self.job else {
            return vec![];
        };
        (0..self.ranks).filter(|rank| has_come(job, *rank)).collect()
    }
}

/// What tells this launch from all others of the machine.
fn job(get: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let slurm = || Some(format!("{}.{}", get("SLURM_JOB_ID")?, get("SLURM_STEP_ID")?));
    get("PMIX_NAMESPACE").or_else(slurm)
}

#[cfg(target_os = "linux")]
use linux::has_come;

#[cfg(not(target_os = "linux"))]
fn has_come(_: &str, _: usize) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    fn address(job: &str, rank: usize) -> Option<SocketAddr> {
        SocketAddr::from_abstract_name(format!("anchorhood-{job}-{rank}")).ok()
    }

    pub(super) fn sign(job: &str, rank: usize) -> Option<UnixListener> {
        UnixListener::bind_addr(&address(job, rank)?).ok()
    }

    pub(super) fn has_come(job: &str, rank: usize) -> bool {
        address(job, rank).is_some_and(|a| UnixStream::connect_addr(&a).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::variables;
    use crate::{Launcher, Secret};

    fn launch(ranks: usize, local_ranks: Option<usize>) -> Launch {
        Launch {
            launcher: Launcher::OpenMpi,
            rank: 0,
            ranks,
            local_rank: Some(0),
            local_ranks,
            master: None,
            secret: Secret::default(),
            listener: None,
        }
    }

    #[test]
    fn whoever_is_missing_is_named_where_that_is_known() {
        let said = |ranks, local, came: &[usize]| who(&launch(ranks, local), came);
        assert_eq!(said(2, Some(2), &[0]), "rank 1 never came");
        assert_eq!(said(4, Some(4), &[0, 2]), "ranks 1, 3 never came");
        assert_eq!(said(4, Some(4), &[]), "not all ranks have come");
        let two_of_four = said(4, Some(2), &[0]);
        assert_eq!(two_of_four, "of the 2 ranks of this machine only rank 0 came");
        assert!(said(4, Some(2), &[0, 1]).starts_with("all 2 ranks of this machine"));
    }

    #[test]
    fn a_launch_has_a_name() {
        let of = |all: &str| job(&variables(all));
        assert_eq!(of("PMIX_NAMESPACE=7 SLURM_JOB_ID=1"), Some("7".into()));
        assert_eq!(of("SLURM_JOB_ID=1 SLURM_STEP_ID=2"), Some("1.2".into()));
        assert_eq!(of("SLURM_JOB_ID=1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_rank_is_there_as_long_as_it_is() {
        let job = format!("test-{}", std::process::id());
        assert!(!has_come(&job, 1));
        let here = linux::sign(&job, 1);
        assert!(here.is_some() && has_come(&job, 1) && !has_come(&job, 0));
        drop(here);
        assert!(!has_come(&job, 1));
    }
}
