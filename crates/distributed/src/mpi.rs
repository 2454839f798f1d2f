//! MPI, opened when it is asked for, in whichever of the three binary interfaces (ABIs) the
//! installed one has.
//!
//! What differs between MPIs is how they write constants ([`abi`]): Open MPI as addresses of
//! symbols of its own, MPICH and its kin (Intel MPI, MVAPICH) as whole numbers, and MPI 5's
//! standard, `libmpi_abi`, as small addresses. Ten functions are needed, and their arguments are
//! the same in all.

mod abi;
mod calls;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libloading::Library;

use crate::arrival::Clock;
use crate::library::open_global;
use crate::{Collectives, Launch, Launcher, RanksError};
use calls::Mpi;

/// The variable that names the library.
pub(crate) const VARIABLE: &str = "ANCHORHOOD_MPI";

/// How an MPI writes its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiKind {
    /// MPI 5's standard ABI.
    Standard,
    /// Open MPI's.
    OpenMpi,
    /// MPICH's, which Intel MPI and MVAPICH share.
    Mpich,
}

impl MpiKind {
    const ALL: [MpiKind; 3] = [MpiKind::OpenMpi, MpiKind::Mpich, MpiKind::Standard];

    /// What systems call such a library.
    fn names(self) -> &'static [&'static str] {
        match self {
            MpiKind::Standard => {
                &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so", "libmpi_abi.dylib"]
            }
            MpiKind::OpenMpi => {
                &["libmpi.so.40", "libmpi.40.dylib", "/opt/homebrew/lib/libmpi.40.dylib"]
            }
            MpiKind::Mpich => &["libmpi.so.12", "libmpich.so.12", "libmpi.12.dylib"],
        }
    }

    /// A library's own: Open MPI's by a symbol that no other has, the standard's by its name.
    fn of(file: &Path, library: &Library) -> Option<MpiKind> {
        let has = |name: &[u8]| {
            // SAFETY: the symbol's address is looked up, and nothing is done with it.
            unsafe { library.get::<*const u8>(name) }.is_ok()
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match (has(b"MPI_Init_thread\0"), has(b"ompi_mpi_comm_world\0")) {
            (false, _) => None,
            (true, _) if name.starts_with("libmpi_abi") => Some(MpiKind::Standard),
            (true, true) => Some(MpiKind::OpenMpi),
            (true, false) => Some(MpiKind::Mpich),
        }
    }

    /// Whose launcher it was: its library is the one that finds the other processes.
    fn order(launcher: Option<Launcher>) -> [MpiKind; 3] {
        match launcher {
            Some(Launcher::Pmi) => [MpiKind::Mpich, MpiKind::Standard, MpiKind::OpenMpi],
            Some(Launcher::OpenMpi | Launcher::Slurm | Launcher::Torchrun) | None => MpiKind::ALL,
        }
    }
}

impl fmt::Display for MpiKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            MpiKind::Standard => "MPI by its standard ABI",
            MpiKind::OpenMpi => "Open MPI",
            MpiKind::Mpich => "MPICH",
        })
    }
}

/// An MPI that was found, not yet begun.
struct FoundMpi {
    kind: MpiKind,
    place: PathBuf,
    library: Library,
}

/// Which MPI there is, and its library; or why none can be used. Nothing is begun by it.
pub fn find_mpi(launch: Option<&Launch>) -> Result<(MpiKind, PathBuf), RanksError> {
    let found = search(launch)?;
    let (kind, place) = (found.kind, found.place.clone());
    std::mem::forget(found.library); // closing a half-loaded MPI is asking for trouble
    Ok((kind, place))
}

/// Begins to work with the other processes of a launch. Each process does it once, and ends it by
/// dropping what it got.
///
/// It waits for all of them. Where some do not come in time, `late` is told who, on a thread of its
/// own: MPI cannot be made to wait no longer, so that all which is left is to say so and end the
/// process.
pub fn open_mpi(
    launch: &Launch,
    patience: Duration,
    late: impl FnOnce(RanksError) + Send + 'static,
) -> Result<Arc<dyn Collectives>, RanksError> {
    let FoundMpi { kind, place, library } = search(Some(launch))?;
    let name = format!("{kind}, {}", place.display());
    let clock = Clock::start(launch, patience, late);
    let mpi: Arc<dyn Collectives> = match kind {
        MpiKind::OpenMpi => Arc::new(Mpi::begin(abi::open_mpi(&library)?, library, name.clone())?),
        MpiKind::Mpich => Arc::new(Mpi::begin(abi::mpich(&library)?, library, name.clone())?),
        MpiKind::Standard => Arc::new(Mpi::begin(abi::standard(&library)?, library, name.clone())?),
    };
    drop(clock);
    if (mpi.rank(), mpi.ranks()) == (launch.rank, launch.ranks) {
        return Ok(mpi);
    }
    let Launch { launcher, rank, ranks, .. } = launch;
    Err(RanksError(format!(
        "{launcher} says that this is rank {rank} of {ranks}, and MPI ({name}) that it is rank {} \
         of {}: library and launcher belong to different MPIs, or the processes were not started \
         by an MPI launcher (mpirun, srun --mpi=pmix); {VARIABLE} names the library to use",
        mpi.rank(),
        mpi.ranks()
    )))
}

fn search(launch: Option<&Launch>) -> Result<FoundMpi, RanksError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return open_named(Path::new(&named));
    }
    let kinds = MpiKind::order(launch.map(|l| l.launcher));
    let names = kinds.iter().flat_map(|kind| kind.names());
    let mut named = names.clone().map(Path::new);
    let found = named.find_map(|name| open(name).ok());
    found.ok_or_else(|| no_mpi(&names.copied().collect::<Vec<_>>().join(", ")))
}

fn no_mpi(looked: &str) -> RanksError {
    RanksError(format!(
        "processes work together by MPI, and none was found ({looked}); install it (Debian: \
         openmpi-bin or mpich; Fedora: openmpi; macOS: brew install open-mpi), or name its \
         library by {VARIABLE}"
    ))
}

/// What the user named is used, or nothing is.
fn open_named(file: &Path) -> Result<FoundMpi, RanksError> {
    open(file).map_err(|why| RanksError(format!("{VARIABLE}={}: {why}", file.display())))
}

fn open(file: &Path) -> Result<FoundMpi, String> {
    let library = open_global(file).map_err(|e| format!("it cannot be opened: {e}"))?;
    let kind = MpiKind::of(file, &library).ok_or("it is no MPI: it has no MPI_Init_thread")?;
    Ok(FoundMpi { kind, place: file.into(), library })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launchers_own_library_is_tried_first() {
        assert_eq!(MpiKind::order(None)[0], MpiKind::OpenMpi);
        assert_eq!(MpiKind::order(Some(Launcher::Pmi))[0], MpiKind::Mpich);
        for launcher in [None, Some(Launcher::Pmi), Some(Launcher::OpenMpi)] {
            let order = MpiKind::order(launcher);
            assert!(MpiKind::ALL.iter().all(|kind| order.contains(kind)));
        }
    }

    #[test]
    fn what_is_no_mpi_is_named() {
        let said = open_named(Path::new("libno-such-mpi.so")).err().unwrap();
        let said = said.to_string();
        assert!(said.contains("ANCHORHOOD_MPI=libno-such-mpi.so: it cannot be opened"), "{said}");
        assert!(no_mpi("libmpi.so.40").to_string().contains("openmpi-bin"));
    }
}
