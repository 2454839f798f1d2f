//! A mapped file that another program shortens under this one, or a disk that fails under it,
//! cannot be met by any check: there is always a moment between it and the read. The system says so
//! by SIGBUS, which would end the process without a word.
//!
//! To read everything by `pread` instead would copy every vector and picture that is now read where
//! it lies, in each place that reads one. So the signal is answered: a sentence that names the
//! file, and exit code 1. What was saved is whole, since files are written aside.

/// From now on a mapped file that is cut ends the process with a sentence and exit code 1. For
/// programs: a library leaves signals to whoever uses it.
pub fn explain_bus_errors() {
    #[cfg(target_os = "linux")]
    linux::install();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};

    pub(super) fn install() {
        // SAFETY: the structure is plain numbers, for which zeros are valid; the handler has the
        // form that SA_SIGINFO asks for and does nothing but system calls that are allowed in a
        // handler, on the faulting thread's own stack.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = explain as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    }

    extern "C" fn explain(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the system passes a valid structure, and for SIGBUS it holds an address.
        let at = unsafe { (*info).si_addr() } as usize;
        say(b"error: ");
        match mapped_at(at) {
            Some((line, length)) => say(&line[..length]),
            None => say(b"a mapped file"),
        }
        say(b": it was shortened while it was in use, or its disk failed; put it back. ");
        say(b"What was saved before is whole, and goes on from there\n");
        // SAFETY: ends the process at once, as is allowed in a handler.
        unsafe { libc::_exit(1) }
    }

    fn say(text: &[u8]) {
        // SAFETY: the bytes are valid for reading; that nobody reads them does not matter any more.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }

    /// The file that is mapped at an address, from the system's list of maps; without allocating.
    fn mapped_at(at: usize) -> Option<([u8; 4096], usize)> {
        // SAFETY: the path is a C string.
        let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
        let (mut line, mut length) = ([0; 4096], 0);
        let mut byte = 0_u8;
        // SAFETY: one byte is read into one byte. Byte by byte is slow, and this happens once.
        while unsafe { libc::read(file, (&raw mut byte).cast(), 1) } == 1 {
            if byte != b'\n' {
                if length < line.len() {
                    line[length] = byte;
                    length += 1;
                }
                continue;
            }
            if let Some(start) = name_in(&line[..length], at) {
                line.copy_within(start..length, 0);
                let named = &mut line[..length - start];
                named.iter_mut().filter(|b| b.is_ascii_control()).for_each(|b| *b = b'?');
                return Some((line, length - start));
            }
            length = 0;
        }
        None
    }

    /// Where the path begins in a line such as `7f00-7f10 r--s 0 08:01 17 /a/b.pack`, if the
    /// address lies within.
    pub(super) fn name_in(line: &[u8], at: usize) -> Option<usize> {
        let hex = |digits: &[u8]| {
            let digit = |b: u8| (b as char).to_digit(16).map(|d| d as usize);
            digits.iter().try_fold(0_usize, |n, b| Some(n << 4 | digit(*b)?))
        };
        let dash = line.iter().position(|b| *b == b'-')?;
        let space = line.iter().position(|b| *b == b' ')?;
        let (from, to) = (hex(&line[..dash])?, hex(line.get(dash + 1..space)?)?);
        let slash = line.iter().position(|b| *b == b'/')?;
        (from..to).contains(&at).then_some(slash)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::name_in;

    #[test]
    fn the_file_of_an_address_is_found() {
        let line = b"7f00-7f10 r--s 00000000 08:01 17       /a b/c.pack";
        let name = |at| name_in(line, at).map(|start| &line[start..]);
        assert_eq!(name(0x7f00), Some(&b"/a b/c.pack"[..]));
        assert_eq!(name(0x7f0f), name(0x7f00));
        assert_eq!(name(0x7f10), None);
        assert_eq!(name_in(b"7f00-7f10 rw-p 0 00:00 0", 0x7f00), None);
        assert_eq!(name_in(b"", 0), None);
    }
}
