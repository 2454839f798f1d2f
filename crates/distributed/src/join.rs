//! By what do the processes of a launch work together? By MPI where an MPI launcher started them;
//! by TCP where they were only told where the first one is.

use std::sync::Arc;
use std::time::Duration;

use crate::{Collectives, Launch, LaunchError, Launcher, RanksError, open_mpi, open_tcp};

/// The variable that says for how many seconds processes wait for each other.
pub(crate) const VARIABLE: &str = "ANCHORHOOD_JOIN_SECONDS";
/// Where it says nothing: time enough for the slowest file system to give a program.
const PATIENCE: Duration = Duration::from_secs(300);

/// Begins to work with the other processes of a launch. Each process does it once, and ends it by
/// dropping what it got.
///
/// It waits for all of them. Where some do not come in time it fails, or, since MPI cannot be made
/// to wait no longer, has `late` say so on a thread of its own and end the process.
pub fn join(
    launch: &Launch,
    late: impl FnOnce(RanksError) + Send + 'static,
) -> Result<Arc<dyn Collectives>, RanksError> {
    let patience = patience()?;
    match (launch.launcher, &launch.master) {
        (Launcher::Torchrun, Some(_)) => open_tcp(launch, patience),
        (Launcher::Torchrun, None) | (Launcher::OpenMpi | Launcher::Slurm | Launcher::Pmi, _) => {
            open_mpi(launch, patience, late)
        }
    }
}

fn patience() -> Result<Duration, RanksError> {
    let Ok(value) = std::env::var(VARIABLE) else {
        return Ok(PATIENCE);
    };
    match value.trim().parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        Ok(0) | Err(_) => Err(RanksError(LaunchError::number(VARIABLE, &value).to_string())),
    }
}
