//! Signs of life between the first process and each other one. A process that fails says so by it,
//! one that is gone falls silent: either ends all, wherever they wait. A process that ends well
//! says goodbye first.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::RanksError;

/// Between two signs of life, and how long a process may be silent.
pub(super) const BEAT: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(30);

const ALIVE: u8 = 1;
const GOODBYE: u8 = 2;
/// Followed by an exit code.
const ABORT: u8 = 3;

/// This process's end of lifelines; dropping it says goodbye.
pub(super) struct Lifelines {
    shared: Arc<Shared>,
}

struct Shared {
    rank: usize,
    /// To all others, or to the first.
    lines: Mutex<Vec<TcpStream>>,
    ended: AtomicBool,
}

impl Lifelines {
    /// Watches over connections from now on.
    pub(super) fn watch(rank: usize, lines: Vec<TcpStream>) -> Result<Lifelines, RanksError> {
        let failed =
            |e: io::Error| RanksError(format!("a lifeline between processes cannot be kept: {e}"));
        let mut watched = vec![];
        for line in &lines {
            line.set_read_timeout(Some(SILENCE)).map_err(failed)?;
            line.set_write_timeout(Some(SILENCE)).map_err(failed)?;
            watched.push(line.try_clone().map_err(failed)?);
        }
        let shared =
            Arc::new(Shared { rank, lines: Mutex::new(lines), ended: AtomicBool::new(false) });
        for (line, other) in watched.into_iter().zip(1..) {
            let (shared, other) = (shared.clone(), if rank == 0 { other } else { 0 });
            thread::spawn(move || listen(&shared, other, line));
        }
        let beating = shared.clone();
        thread::spawn(move || {
            while !beating.ended.load(Ordering::Relaxed) {
                beating.tell(&[ALIVE]);
                thread::sleep(BEAT);
            }
        });
        Ok(Lifelines { shared })
    }

    /// Ends all processes with this exit code, this one too.
    pub(super) fn abort(&self, code: i32) -> ! {
        self.shared.abort(code)
    }
}

impl Drop for Lifelines {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // One that panics says nothing, and is missed.
        if !thread::panicking() {
            self.shared.tell(&[GOODBYE]);
        }
    }
}

impl Shared {
    /// Whoever does not hear it is missed by whoever listens.
    fn tell(&self, bytes: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines.iter_mut() {
            let _ = line.write_all(bytes);
        }
    }

    fn abort(&self, code: i32) -> ! {
        self.ended.store(true, Ordering::Relaxed);
        let [a, b, c, d] = code.to_le_bytes();
        self.tell(&[ABORT, a, b, c, d]);
        end(code)
    }
}

/// Ends the process and tidies nothing up: libraries that do may wait for what will never come, a
/// GPU for another process's.
fn end(code: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: it takes a number and does not return.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Ends this process, and with it all, when another one fails or falls silent.
fn listen(shared: &Shared, other: usize, mut line: TcpStream) {
    loop {
        let mut said = [0];
        match line.read_exact(&mut said).map(|()| said[0]) {
            Ok(ALIVE) => {}
            Ok(GOODBYE) => return,
            Ok(ABORT) => {
                let mut code = [0; 4];
                let told = line.read_exact(&mut code);
                shared.abort(told.map_or(1, |()| i32::from_le_bytes(code)));
            }
            Ok(_) | Err(_) => {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                // Said once: by the first, or of the first by the second.
                if shared.rank <= 1 {
                    let _ = writeln!(
                        io::stderr(),
                        "error: rank {other} is gone without a word, killed or with its machine; all \
                         processes stop"
                    );
                }
                shared.abort(1);
            }
        }
    }
}
