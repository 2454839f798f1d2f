//! Work without the GIL: on a thread of its own, while the caller's thread looks for Ctrl-C and
//! hands on what is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anchorhood::Error;
use pyo3::prelude::*;

use crate::errors::{WorkError, exception};
use crate::fork;

/// How often it is looked for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// How long work may take to keep what is done, once it is asked to stop.
pub const KEEPS: Duration = Duration::from_millis(600);

/// From the thread that works.
enum Told<T, M> {
    Message(M),
    Done(Result<T, Error>),
}

/// What a job is given.
pub struct Worker<T, M> {
    stop: Arc<AtomicBool>,
    send: Sender<Told<T, M>>,
}

impl<T, M> Worker<T, M> {
    /// Set once nobody waits for the result any more, or it is to end early.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Whether it is to end early.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells the caller's thread something.
    pub fn tell(&self, message: M) {
        let _ = self.send.send(Told::Message(message)); // nobody may listen any more
    }
}

/// A result, and the exception that asked for an early end where one did and the job came to its
/// end nevertheless.
pub type Ended<T> = (T, Option<PyErr>);

/// Does a job. `hear` is given what it tells, on this thread. Ctrl-C, or an exception of `hear`,
/// asks it to stop: after `patience`, or another Ctrl-C, nobody waits for it any more, and it ends
/// on its own.
pub fn work<T: Send + 'static, M: Send + 'static>(
    py: Python<'_>,
    patience: Duration,
    hear: &mut dyn FnMut(M) -> PyResult<()>,
    job: impl FnOnce(&Worker<T, M>) -> Result<T, Error> + Send + 'static,
) -> PyResult<Ended<T>> {
    fork::check()?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut told = begin(stop.clone(), job)?;
    let mut asked: Option<(PyErr, Instant)> = None;
    loop {
        let next;
        (told, next) = py.detach(move || {
            let next = told.recv_timeout(LOOK);
            (told, next)
        });
        let interrupted = match next {
            Ok(Told::Done(result)) => {
                let why = asked.map(|(why, _)| why);
                return match (result, why) {
                    (Ok(result), why) => Ok((result, why)),
                    (Err(_), Some(why)) => Err(why),
                    (Err(failure), None) => Err(exception(failure)),
                };
            }
            Ok(Told::Message(message)) if asked.is_none() => {
                hear(message).and_then(|()| py.check_signals())
            }
            Ok(Told::Message(_)) | Err(RecvTimeoutError::Timeout) => py.check_signals(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(WorkError::new_err(
                    "the work ended without a result: a mistake in anchorhood itself; please report it",
                ));
            }
        };
        match (interrupted, &asked) {
            (Err(again), Some(_)) => return Err(again),
            (Err(why), None) => {
                stop.store(true, Ordering::Relaxed);
                asked = Some((why, Instant::now()));
            }
            (Ok(()), _) => {}
        }
        if asked.as_ref().is_some_and(|(_, since)| since.elapsed() >= patience) {
            let (why, _) = asked.expect("looked at above");
            return Err(why);
        }
    }
}

/// Does a job that tells nothing and keeps nothing.
pub fn compute<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce(&Worker<T, ()>) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (result, interrupted) = work(py, Duration::ZERO, &mut |()| Ok(()), job)?;
    interrupted.map_or(Ok(result), Err)
}

fn begin<T: Send + 'static, M: Send + 'static>(
    stop: Arc<AtomicBool>,
    job: impl FnOnce(&Worker<T, M>) -> Result<T, Error> + Send + 'static,
) -> PyResult<Receiver<Told<T, M>>> {
    let (send, told) = channel();
    let thread = std::thread::Builder::new().name("anchorhood".into());
    let spawned = thread.spawn(move || {
        let worker = Worker { stop, send };
        // A panic is a mistake of ours: the sender is dropped without a result, and the caller
        // told.
        let result = catch_unwind(AssertUnwindSafe(|| job(&worker)));
        if let Ok(result) = result {
            let _ = worker.send.send(Told::Done(result)); // nobody may wait any more
        }
    });
    spawned.map_err(|e| WorkError::new_err(format!("no thread to work on: {e}")))?;
    Ok(told)
}
