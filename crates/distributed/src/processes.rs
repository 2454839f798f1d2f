//! Several processes of one machine, without a launcher: the program starts itself, once for each,
//! and looks after them until all have ended.
//!
//! Each is told its rank as torchrun would tell it. They meet by TCP on the loopback address: the
//! first inherits the socket that listens there, so that nobody else can take the port, and all are
//! told a secret drawn for them. They are in groups of their own, so that a Ctrl-C comes to the
//! starter alone, which passes it on once. One that fails ends the others, which say so themselves;
//! one that does not end within a few seconds is killed. Should the starter be killed, they are
//! asked to stop.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::handed_over;
use crate::launch::{LISTENER, SECRET};

/// How long the others may take to end by themselves when one has failed.
const GRACE: Duration = Duration::from_secs(15);
/// Between two looks at them.
const PAUSE: Duration = Duration::from_millis(20);

/// Processes that were started here.
pub struct Processes {
    children: Vec<Child>,
}

impl Processes {
    /// Starts so many; `command` makes the command of each.
    pub fn start(count: usize, command: impl Fn() -> Command) -> io::Result<Processes> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (port, secret) = (listener.local_addr()?.port(), drawn_secret()?);
        let mut processes = Processes { children: vec![] };
        for rank in 0..count {
            let mut command = command();
            let (number, all) = (rank.to_string(), count.to_string());
            command.env("RANK", &number).env("LOCAL_RANK", &number);
            command.env("WORLD_SIZE", &all).env("LOCAL_WORLD_SIZE", &all);
            command.env("MASTER_ADDR", "127.0.0.1");
            command.env("MASTER_PORT", port.to_string());
            command.env(SECRET, &secret).env_remove(LISTENER);
            command.env_remove("TORCHELASTIC_USE_AGENT_STORE");
            match rank {
                0 => handed_over::hand_over(&mut command, &listener),
                _ => drop(command.stdin(Stdio::null())),
            }
            apart(&mut command);
            // Dropped, those that were started are ended.
            processes.children.push(command.spawn()?);
        }
        Ok(processes)
    }

    /// Waits until all have ended, passing on as many requests to stop as there come, and gives the
    /// greatest exit code; that of one that a signal ended is 128 and the signal's number, as a
    /// shell has it.
    pub fn wait(mut self, stops: &AtomicUsize) -> io::Result<u8> {
        let mut passed = 0;
        let mut codes: Vec<Option<u8>> = vec![None; self.children.len()];
        let mut failed: Option<Instant> = None;
        while codes.iter().any(Option::is_none) {
            for (child, code) in self.children.iter_mut().zip(&mut codes) {
                if code.is_none() {
                    *code = child.try_wait()?.map(code_of);
                }
            }
            let bad = codes.iter().flatten().any(|code| *code != 0);
            let since = *failed.get_or_insert_with(Instant::now);
            if !bad {
                failed = None;
            } else if since.elapsed() > GRACE {
                self.kill();
            }
            while passed < stops.load(Ordering::Relaxed) {
                passed += 1;
                self.ask_to_stop(&codes);
            }
            thread::sleep(PAUSE);
        }
        Ok(codes.into_iter().flatten().max().unwrap_or(0))
    }

    fn kill(&mut self) {
        for child in &mut self.children {
            let _ = child.kill(); // it may have ended meanwhile
        }
    }

    fn ask_to_stop(&mut self, codes: &[Option<u8>]) {
        let living = self.children.iter_mut().zip(codes);
        for (child, _) in living.filter(|(_, code)| code.is_none()) {
            ask_to_stop(child);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
        for child in &mut self.children {
            let _ = child.wait(); // nothing can be done about one that cannot be waited for
        }
    }
}

/// A word that cannot be guessed.
fn drawn_secret() -> io::Result<String> {
    let mut drawn = [0; 16];
    getrandom::fill(&mut drawn).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(drawn)))
}

fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128_u8.saturating_add(signal as u8);
    }
    status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1))
}

/// A group of its own, and a request to stop when the starter is gone.
fn apart(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(target_os = "linux")]
    // SAFETY: prctl is called between fork and exec, where it may be: it takes numbers and touches
    // no memory.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(command, || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    #[cfg(not(unix))]
    let _ = command;
}

fn ask_to_stop(child: &mut Child) {
    #[cfg(unix)]
    // SAFETY: a signal to a process that was started here and not waited for yet, so its number is
    // no other's.
    unsafe {
        libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
    }
    #[cfg(not(unix))]
    let _ = child.kill();
}
