//! The collectives by an opened MPI. Calls come from any thread, one at a time.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;

use super::abi::Abi;
use crate::{Collectives, RanksError, Reduce};

/// Values of one message at most: MPI counts in ints.
const MOST: usize = 1 << 28;

/// An MPI that has begun; dropping it ends it.
pub(super) struct Mpi<H> {
    abi: Abi<H>,
    rank: usize,
    ranks: usize,
    name: String,
    /// One call at a time.
    turn: Mutex<()>,
    /// Never closed: what MPI has at work may outlive it.
    _library: ManuallyDrop<Library>,
}

// SAFETY: an ABI is constants and functions. MPI was asked for calls by any thread, one at a time
// (MPI_THREAD_SERIALIZED), and every call takes its `turn`.
unsafe impl<H: Send> Send for Mpi<H> {}
// SAFETY: as above.
unsafe impl<H: Sync> Sync for Mpi<H> {}

impl<H: Copy> Mpi<H> {
    /// Begins, and learns rank and number.
    pub(super) fn begin(abi: Abi<H>, library: Library, name: String) -> Result<Self, RanksError> {
        let (mut provided, mut rank, mut ranks) = (0, 0, 0);
        // SAFETY: MPI takes null for arguments that it is not to look at; the numbers have room for
        // what is written.
        let status = unsafe {
            (abi.calls.init)(ptr::null_mut(), ptr::null_mut(), abi.serialized, &mut provided)
        };
        let call = "MPI_Init_thread";
        check(&abi, call, status)?;
        if provided < abi.serialized {
            let why = format!("{name} was built for programs of one thread");
            return Err(RanksError::of(call, why));
        }
        // SAFETY: MPI has begun; the handles are its own, the numbers have room for what is
        // written.
        unsafe {
            let status = (abi.calls.set_errhandler)(abi.world, abi.errors_return);
            check(&abi, "MPI_Comm_set_errhandler", status)?;
            check(&abi, "MPI_Comm_rank", (abi.calls.rank)(abi.world, &mut rank))?;
            check(&abi, "MPI_Comm_size", (abi.calls.size)(abi.world, &mut ranks))?;
        }
        Ok(Mpi {
            abi,
            rank: rank as usize,
            ranks: ranks as usize,
            name,
            turn: Mutex::new(()),
            _library: ManuallyDrop::new(library),
        })
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), RanksError> {
        check(&self.abi, call, status)
    }

    fn operation(&self, how: Reduce) -> H {
        match how {
            Reduce::Sum => self.abi.sum,
            Reduce::Max => self.abi.max,
        }
    }

    /// All-reduces values of a type that MPI knows.
    fn reduce<T>(&self, values: &mut [T], of: H, how: Reduce) -> Result<(), RanksError> {
        let _turn = self.turn();
        for part in values.chunks_mut(MOST) {
            // SAFETY: the values are as many as is said, of the type `of` names; every rank makes
            // the same calls.
            let status = unsafe {
                (self.abi.calls.all_reduce)(
                    self.abi.in_place,
                    part.as_mut_ptr().cast(),
                    part.len() as c_int,
                    of,
                    self.operation(how),
                    self.abi.world,
                )
            };
            self.check("MPI_Allreduce", status)?;
        }
        Ok(())
    }
}

impl<H: Copy + Send + Sync> Collectives for Mpi<H> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn all_reduce(&self, values: &mut [f32], how: Reduce) -> Result<(), RanksError> {
        self.reduce(values, self.abi.float, how)
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<(), RanksError> {
        self.reduce(values, self.abi.double, how)
    }

    fn reduce_scatter(&self, all: &[f32], own: &mut [f32]) -> Result<(), RanksError> {
        let call = "MPI_Reduce_scatter_block";
        check_lengths(call, own.len(), all.len(), self.ranks)?;
        let _turn = self.turn();
        // SAFETY: `all` holds as many values as all ranks' parts together, `own` those of one, both
        // f32.
        let status = unsafe {
            (self.abi.calls.reduce_scatter)(
                all.as_ptr().cast(),
                own.as_mut_ptr().cast(),
                own.len() as c_int,
                self.abi.float,
                self.abi.sum,
                self.abi.world,
            )
        };
        self.check(call, status)
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) -> Result<(), RanksError> {
        let call = "MPI_Allgather";
        check_lengths(call, own.len(), all.len(), self.ranks)?;
        let (count, byte) = (own.len() as c_int, self.abi.byte);
        let (from, to): (*const c_void, *mut c_void) =
            (own.as_ptr().cast(), all.as_mut_ptr().cast());
        let _turn = self.turn();
        // SAFETY: `own` holds as many bytes as is said, `all` so many for each rank.
        let status = unsafe {
            (self.abi.calls.all_gather)(from, count, byte, to, count, byte, self.abi.world)
        };
        self.check(call, status)
    }

    fn broadcast(&self, bytes: &mut [u8], from: usize) -> Result<(), RanksError> {
        let _turn = self.turn();
        for part in bytes.chunks_mut(MOST) {
            // SAFETY: the bytes are as many as is said.
            let status = unsafe {
                (self.abi.calls.broadcast)(
                    part.as_mut_ptr().cast(),
                    part.len() as c_int,
                    self.abi.byte,
                    from as c_int,
                    self.abi.world,
                )
            };
            self.check("MPI_Bcast", status)?;
        }
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        let _turn = self.turn();
        // SAFETY: the handle is MPI's own.
        let status = unsafe { (self.abi.calls.barrier)(self.abi.world) };
        self.check("MPI_Barrier", status)
    }

    fn abort(&self, code: i32) {
        // SAFETY: the handle is MPI's own. It takes no turn: whoever has it may be waiting for a
        // rank that will not come.
        unsafe { (self.abi.calls.abort)(self.abi.world, code) };
    }
}

impl<H> Drop for Mpi<H> {
    /// Waits for the other ranks to end, too.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: nobody else has it any more, so no call is under way, and none follows.
            unsafe { (self.abi.calls.finalize)() };
        }
    }
}

/// A message for each rank, of a length that MPI can count.
fn check_lengths(
    call: &'static str,
    own: usize,
    all: usize,
    ranks: usize,
) -> Result<(), RanksError> {
    let why = match own {
        _ if all != own * ranks => format!("{all} values for {ranks} ranks of {own}"),
        MOST.. => format!("{own} values are too many for one message"),
        _ => return Ok(()),
    };
    Err(RanksError::of(call, why))
}

fn check<H>(abi: &Abi<H>, call: &'static str, status: c_int) -> Result<(), RanksError> {
    if status == 0 {
        return Ok(());
    }
    // The standard's and MPICH's messages are the longest, of 512 bytes.
    let mut text: [c_char; 1024] = [0; 1024];
    let mut len = 0;
    // SAFETY: there is room for the longest message that an MPI has, and for its end.
    let why = unsafe {
        (abi.calls.error_string)(status, text.as_mut_ptr(), &mut len);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Err(RanksError::of(call, why))
}
