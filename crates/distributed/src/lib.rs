//! Which process of how many is this one, and how do they work together?
//!
//! A [`Launch`] is what the environment says: `mpirun`, `srun` and `torchrun` tell each process its
//! number among all, its rank. [`Collectives`] are what processes do together; [`open_mpi`] has the
//! installed MPI do them, opened when it is asked for, so that a build needs none, and [`open_tcp`]
//! a connection with the first process. [`Processes`] are started by the program itself. Without a
//! launcher there is one process, and nothing here is asked. A rank that never comes is
//! [named](arrival) after a while.

mod arrival;
mod collectives;
mod handed_over;
mod join;
mod launch;
mod library;
mod mpi;
mod processes;
mod tcp;
mod threads;

pub use collectives::{Collectives, RanksError, Reduce};
pub use join::join;
pub use launch::{Launch, LaunchError, Launcher, Secret};
pub use library::open_global;
pub use mpi::{MpiKind, find_mpi, open_mpi};
pub use processes::Processes;
pub use tcp::open_tcp;
pub use threads::ThreadRank;
