//! A listening socket that whoever starts a process opened, and the process inherits by its number:
//! between the two nobody else can take the port. Where sockets are not inherited so, the process
//! opens its own at the port it is told of.

use std::net::TcpListener;
use std::process::Command;

/// Has a process that is started by `command` inherit the socket.
#[cfg(unix)]
pub(crate) fn hand_over(command: &mut Command, listener: &TcpListener) {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    let number = listener.as_raw_fd();
    command.env(crate::launch::LISTENER, number.to_string());
    // SAFETY: fcntl is called between fork and exec, where it may be: it takes numbers, touches no
    // memory, and concerns the new process's table of files alone.
    unsafe {
        command.pre_exec(move || match libc::fcntl(number, libc::F_SETFD, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

#[cfg(not(unix))]
pub(crate) fn hand_over(_: &mut Command, _: &TcpListener) {}

/// The socket of this number, once, if it was handed over to this process: it has the port.
#[cfg(unix)]
pub(crate) fn take(number: i32, port: u16) -> Option<TcpListener> {
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    static TAKEN: AtomicBool = AtomicBool::new(false);
    // SAFETY: takes numbers; what is no open file is an error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return None;
    }
    // SAFETY: the number is new, so nobody else closes it.
    let listener = TcpListener::from(unsafe { OwnedFd::from_raw_fd(copy) });
    let has_port = listener.local_addr().is_ok_and(|own| own.port() == port);
    if !has_port || TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    // SAFETY: inherited for this alone, taken once, and so nobody else's here.
    unsafe { libc::close(number) };
    Some(listener)
}

#[cfg(not(unix))]
pub(crate) fn take(_: i32, _: u16) -> Option<TcpListener> {
    None
}
