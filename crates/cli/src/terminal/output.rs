//! Lines on stdout, without a panic when nobody reads them.

use std::io::{self, Write};

pub use anchorhood::report::{duration, grouped};

use crate::terminal::failure::Failure;

/// Writes a line to stdout.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => Failure::failed(format!("cannot write to stdout: {e}")),
    })
}
