//! The constants of the three ABIs, and the functions, which are the same but for the type of a
//! handle.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libloading::Library;

use crate::RanksError;

/// An MPI's functions and constants; `H` is how it writes a handle.
pub(super) struct Abi<H> {
    pub(super) world: H,
    pub(super) float: H,
    pub(super) double: H,
    pub(super) byte: H,
    pub(super) sum: H,
    pub(super) max: H,
    /// Has calls return what is wrong rather than end the process.
    pub(super) errors_return: H,
    /// In place of a buffer: the other one is both.
    pub(super) in_place: *const c_void,
    /// Calls by any thread, one at a time.
    pub(super) serialized: c_int,
    pub(super) calls: Calls<H>,
}

type Reduction<H> = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, H, H, H) -> c_int;

/// As `mpi.h` declares them.
pub(super) struct Calls<H> {
    pub(super) init: unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int,
    pub(super) finalize: unsafe extern "C" fn() -> c_int,
    pub(super) abort: unsafe extern "C" fn(H, c_int) -> c_int,
    pub(super) rank: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    pub(super) size: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    pub(super) set_errhandler: unsafe extern "C" fn(H, H) -> c_int,
    pub(super) error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    pub(super) all_reduce: Reduction<H>,
    pub(super) reduce_scatter: Reduction<H>,
    pub(super) all_gather:
        unsafe extern "C" fn(*const c_void, c_int, H, *mut c_void, c_int, H, H) -> c_int,
    pub(super) broadcast: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, H) -> c_int,
    pub(super) barrier: unsafe extern "C" fn(H) -> c_int,
}

/// The address of a symbol.
fn symbol<T: Copy>(library: &Library, name: &'static str) -> Result<T, RanksError> {
    // SAFETY: the callers below ask for functions by the names and types of `mpi.h`, and for
    // addresses.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    let missing = |e| RanksError::of(name, format!("MPI's library does not have it: {e}"));
    found.map(|f| *f).map_err(missing)
}

impl<H> Calls<H> {
    fn of(library: &Library) -> Result<Self, RanksError> {
        Ok(Calls {
            init: symbol(library, "MPI_Init_thread")?,
            finalize: symbol(library, "MPI_Finalize")?,
            abort: symbol(library, "MPI_Abort")?,
            rank: symbol(library, "MPI_Comm_rank")?,
            size: symbol(library, "MPI_Comm_size")?,
            set_errhandler: symbol(library, "MPI_Comm_set_errhandler")?,
            error_string: symbol(library, "MPI_Error_string")?,
            all_reduce: symbol(library, "MPI_Allreduce")?,
            reduce_scatter: symbol(library, "MPI_Reduce_scatter_block")?,
            all_gather: symbol(library, "MPI_Allgather")?,
            broadcast: symbol(library, "MPI_Bcast")?,
            barrier: symbol(library, "MPI_Barrier")?,
        })
    }
}

/// Open MPI: a handle is the address of a structure that the library has a symbol for.
pub(super) fn open_mpi(library: &Library) -> Result<Abi<usize>, RanksError> {
    let handle = |name| symbol::<*const u8>(library, name).map(|address| address as usize);
    Ok(Abi {
        world: handle("ompi_mpi_comm_world")?,
        float: handle("ompi_mpi_float")?,
        double: handle("ompi_mpi_double")?,
        byte: handle("ompi_mpi_byte")?,
        sum: handle("ompi_mpi_op_sum")?,
        max: handle("ompi_mpi_op_max")?,
        errors_return: handle("ompi_mpi_errors_return")?,
        in_place: ptr::without_provenance(1),
        serialized: 2,
        calls: Calls::of(library)?,
    })
}

/// MPICH: a handle is an int, of the values of its `mpi.h`, which have been the same since 2014.
pub(super) fn mpich(library: &Library) -> Result<Abi<c_int>, RanksError> {
    Ok(Abi {
        world: 0x4400_0000,
        float: 0x4c00_040a,
        double: 0x4c00_080b,
        byte: 0x4c00_010d,
        sum: 0x5800_0003,
        max: 0x5800_0001,
        errors_return: 0x5400_0001,
        in_place: ptr::without_provenance(usize::MAX),
        serialized: 2,
        calls: Calls::of(library)?,
    })
}

/// MPI 5's standard ABI: a handle is an address that nothing lies at, of the values of the
/// standard's appendix A.
pub(super) fn standard(library: &Library) -> Result<Abi<usize>, RanksError> {
    Ok(Abi {
        world: 0x101,
        float: 0x210,
        double: 0x214,
        byte: 0x247,
        sum: 0x21,
        max: 0x23,
        errors_return: 0x142,
        in_place: ptr::without_provenance(1),
        serialized: 2048,
        calls: Calls::of(library)?,
    })
}
