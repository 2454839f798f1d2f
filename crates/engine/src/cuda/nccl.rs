//! NVIDIA's collectives, NCCL, opened when several processes have a GPU each: what they do together
//! on device memory, as work of a stream that can be captured.
//!
//! The binding is our own, of the few functions that are used: NVIDIA's packages call the library
//! `libnccl.so.2`. Every process makes the same calls in the same order, whatever the stream; NCCL
//! does them in that order.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anchorhood_distributed::open_global;
use cudarc::driver::{CudaContext, CudaStream, sys};

use super::launch::Pointer;
use super::{Doing, Library};
use crate::{Communicator, Error, Result};

/// The first version with all functions that are used: 2.14.
const OLDEST: i32 = 21400;

/// What a message is made of, by NCCL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub(super) enum Kind {
    U32 = 3,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
}

/// NCCL's number for a sum.
const SUM: c_int = 0;

/// Names a communicator that is to be made.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([c_char; 128]);

type Comm = *mut c_void;

/// From, to, how many, of what kind, summed, among whom, on which stream.
type Reduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    c_int,
    c_int,
    Comm,
    sys::CUstream,
) -> c_int;

/// The functions, which live as long as the process: a library that was opened is never closed.
struct Calls {
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int,
    finalize: unsafe extern "C" fn(Comm) -> c_int,
    destroy: unsafe extern "C" fn(Comm) -> c_int,
    abort: unsafe extern "C" fn(Comm) -> c_int,
    last_error: unsafe extern "C" fn(Comm) -> *const c_char,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: Reduce,
    reduce_scatter: Reduce,
    all_gather: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        Comm,
        sys::CUstream,
    ) -> c_int,
}

impl Calls {
    /// Opens the library and looks its functions up.
    fn open() -> Result<Calls> {
        let place = Library::Nccl.open()?.place;
        let unusable = |why: String| Error::Device(format!("NCCL ({place}) cannot be used: {why}"));
        let library = open_global(Path::new(&place)).map_err(|e| unusable(e.to_string()))?;
        macro_rules! find {
            ($name:literal) => {{
                // SAFETY: NCCL's function of this name has the type of the field that takes it, in
                // every version from 2.14 on.
                let found = unsafe { library.get(concat!($name, "\0").as_bytes()) };
                *found.map_err(|e| unusable(e.to_string()))?
            }};
        }
        let calls = Calls {
            get_version: find!("ncclGetVersion"),
            get_unique_id: find!("ncclGetUniqueId"),
            init_rank: find!("ncclCommInitRank"),
            finalize: find!("ncclCommFinalize"),
            destroy: find!("ncclCommDestroy"),
            abort: find!("ncclCommAbort"),
            last_error: find!("ncclGetLastError"),
            error_string: find!("ncclGetErrorString"),
            group_start: find!("ncclGroupStart"),
            group_end: find!("ncclGroupEnd"),
            all_reduce: find!("ncclAllReduce"),
            reduce_scatter: find!("ncclReduceScatter"),
            all_gather: find!("ncclAllGather"),
        };
        std::mem::forget(library); // the functions are of use as long as it is open
        match calls.version()? {
            OLDEST.. => Ok(calls),
            old => Err(unusable(format!(
                "it is version {}, and 2.14 or above is needed",
                in_words(old)
            ))),
        }
    }

    fn version(&self) -> Result<i32> {
        let mut version = 0;
        // SAFETY: there is room for the number.
        let status = unsafe { (self.get_version)(&mut version) };
        self.check("ncclGetVersion", status, std::ptr::null_mut())?;
        Ok(version)
    }

    fn unique_id(&self) -> Result<UniqueId> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: there is room for the name.
        let status = unsafe { (self.get_unique_id)(&mut id) };
        self.check("ncclGetUniqueId", status, std::ptr::null_mut())?;
        Ok(id)
    }

    /// NCCL's own words for what went wrong.
    fn check(&self, call: &str, status: c_int, comm: Comm) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = |words: *const c_char| match words.is_null() {
            true => String::new(),
            // SAFETY: NCCL's texts end, and outlive this.
            false => unsafe { CStr::from_ptr(words) }.to_string_lossy().trim().into(),
        };
        // SAFETY: any number is taken; a communicator that is not there may be asked about.
        let (what, last) =
            unsafe { (text((self.error_string)(status)), text((self.last_error)(comm))) };
        let more = if last.is_empty() { String::new() } else { format!(" ({last})") };
        Err(Error::Device(format!("NCCL, {call}: {what}{more}")))
    }
}

/// 2.30.7 is 23007.
fn in_words(version: i32) -> String {
    let (major, rest) = (version / 10_000, version % 10_000);
    format!("{major}.{}.{}", rest / 100, rest % 100)
}

/// Which NCCL there is: its version, and its library; or why none can be used.
pub fn find_nccl() -> Result<(String, String)> {
    let place = Library::Nccl.open()?.place;
    let version = Calls::open()?.version()?;
    Ok((in_words(version), place))
}

/// The GPUs of several processes, seen from one of them.
///
/// Dropped, it lets go of the others at once, wherever they are ([`Nccl::end_well`] does
/// otherwise). Graphs that it was captured in must have gone before.
pub(super) struct Nccl {
    calls: Calls,
    rank: usize,
    ranks: usize,
    /// One call at a time.
    comm: Mutex<CommHandle>,
    ends_well: AtomicBool,
    context: Arc<CudaContext>,
}

struct CommHandle(Comm);

// SAFETY: a communicator may be used from any thread, by one at a time.
unsafe impl Send for CommHandle {}

impl Nccl {
    /// Meets the other processes: the first one names the meeting, and tells all by the collectives
    /// of the host.
    pub(super) fn meet(context: &Arc<CudaContext>, others: &Communicator) -> Result<Nccl> {
        let calls = Calls::open()?;
        let mut name = [0_u8; 128];
        if others.is_first() {
            name = calls.unique_id()?.0.map(|c| c as u8);
        }
        others.broadcast(&mut name, 0)?;
        let id = UniqueId(name.map(|b| b as c_char));
        context.bind_to_thread().doing("an earlier error of the GPU")?;
        let mut comm = std::ptr::null_mut();
        let (rank, ranks) = (others.rank(), others.ranks());
        // SAFETY: there is room for the communicator; the device's context is this thread's.
        let status = unsafe { (calls.init_rank)(&mut comm, ranks as c_int, id, rank as c_int) };
        calls.check("ncclCommInitRank", status, std::ptr::null_mut())?;
        Ok(Nccl {
            calls,
            rank,
            ranks,
            comm: Mutex::new(CommHandle(comm)),
            ends_well: AtomicBool::new(false),
            context: context.clone(),
        })
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// All processes are done: dropped, it waits for the others.
    pub(super) fn end_well(&self) {
        self.ends_well.store(true, Ordering::Relaxed);
    }

    fn turn(&self) -> MutexGuard<'_, CommHandle> {
        self.comm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `count` values become the sum of all processes' in their places, the same bits everywhere.
    pub(super) fn all_reduce(
        &self,
        stream: &CudaStream,
        values: Pointer,
        count: usize,
        kind: Kind,
    ) -> Result<()> {
        let comm = self.turn();
        let at = values as *mut c_void;
        // SAFETY: the caller's pointer covers the values; here and below.
        let status = unsafe {
            (self.calls.all_reduce)(at, at, count, kind as c_int, SUM, comm.0, stream.cu_stream())
        };
        self.calls.check("ncclAllReduce", status, comm.0)
    }

    /// `from` has a part of `count` values for each process; `to` takes the sum of all processes'
    /// parts for this one.
    pub(super) fn reduce_scatter(
        &self,
        stream: &CudaStream,
        [from, to]: [Pointer; 2],
        count: usize,
        kind: Kind,
    ) -> Result<()> {
        let comm = self.turn();
        let (from, to) = (from as *const c_void, to as *mut c_void);
        // SAFETY: as above.
        let status = unsafe {
            let (kind, stream) = (kind as c_int, stream.cu_stream());
            (self.calls.reduce_scatter)(from, to, count, kind, SUM, comm.0, stream)
        };
        self.calls.check("ncclReduceScatter", status, comm.0)
    }

    /// `to` takes every process's `count` values, in rank order.
    pub(super) fn all_gather(
        &self,
        stream: &CudaStream,
        [from, to]: [Pointer; 2],
        count: usize,
        kind: Kind,
    ) -> Result<()> {
        let comm = self.turn();
        let (from, to) = (from as *const c_void, to as *mut c_void);
        // SAFETY: as above.
        let status = unsafe {
            (self.calls.all_gather)(from, to, count, kind as c_int, comm.0, stream.cu_stream())
        };
        self.calls.check("ncclAllGather", status, comm.0)
    }

    /// Several calls as one.
    pub(super) fn grouped(&self, calls: impl FnOnce() -> Result<()>) -> Result<()> {
        // SAFETY: nothing is asked of it but to begin, and in any case to end.
        let begun = unsafe { (self.calls.group_start)() };
        self.calls.check("ncclGroupStart", begun, std::ptr::null_mut())?;
        let made = calls();
        // SAFETY: as above.
        let ended = unsafe { (self.calls.group_end)() };
        made?;
        self.calls.check("ncclGroupEnd", ended, self.turn().0)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // A context that has failed lets nothing be done; its process is about to end.
        if self.context.bind_to_thread().is_err() {
            return;
        }
        let comm = self.turn().0;
        let well = self.ends_well.load(Ordering::Relaxed) && !std::thread::panicking();
        // SAFETY: nobody else has the communicator any more. What cannot be ended goes with the
        // process.
        unsafe {
            match well {
                true => {
                    (self.calls.finalize)(comm);
                    (self.calls.destroy)(comm);
                }
                false => {
                    (self.calls.abort)(comm);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(in_words(23_007), "2.30.7");
        assert_eq!(in_words(21_400), "2.14.0");
    }

    /// Neither its version nor the name of a meeting needs a GPU.
    #[test]
    fn a_library_that_is_there_is_understood() {
        let calls = match Library::Nccl.open().and_then(|_| Calls::open()) {
            Ok(calls) => calls,
            Err(why) => {
                assert!(why.to_string().contains("pip: nvidia-nccl-cu13"), "{why}");
                return anchorhood_testing::skip("no NCCL");
            }
        };
        assert!(calls.version().unwrap() >= OLDEST);
        let names = [(); 2].map(|()| calls.unique_id().unwrap().0);
        assert_ne!(names[0], names[1]);
        let said = calls.check("a call", 4, std::ptr::null_mut()).unwrap_err();
        assert!(said.to_string().contains("NCCL, a call: invalid argument"), "{said}");
    }
}
