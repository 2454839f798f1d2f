//! A message between two processes: which call it belongs to, how long it is, and its bytes.
//! Whoever receives one knows what to expect, and refuses anything else: ranks that have come to
//! make different calls are told so, and do not wait for each other for ever.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;

use super::lifeline;
use crate::RanksError;

/// A call that all ranks make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: u8,
    pub(super) number: u64,
}

/// What errors are of.
pub(super) const CALL: &str = "a collective by TCP";

const HEAD: usize = 17;

fn head(call: Call, len: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = call.kind;
    head[1..9].copy_from_slice(&call.number.to_le_bytes());
    head[9..].copy_from_slice(&(len as u64).to_le_bytes());
    head
}

/// Sends a message.
pub(super) fn send(to: &mut TcpStream, call: Call, bytes: &[u8]) -> Result<(), RanksError> {
    let sent = to.write_all(&head(call, bytes.len()));
    sent.and_then(|()| to.write_all(bytes)).map_err(lost)
}

/// Takes a message of this very call and length.
pub(super) fn receive(
    from: &mut TcpStream,
    call: Call,
    bytes: &mut [u8],
) -> Result<(), RanksError> {
    let mut found = [0; HEAD];
    from.read_exact(&mut found).map_err(lost)?;
    if found != head(call, bytes.len()) {
        return Err(RanksError::of(CALL, "the processes do not make the same calls"));
    }
    from.read_exact(bytes).map_err(lost)
}

/// A connection that breaks is that of a process that ends, of which its lifeline knows more, and
/// ends this one as well: a sentence of this is for connections that break by themselves.
fn lost(error: io::Error) -> RanksError {
    thread::sleep(lifeline::BEAT);
    RanksError::of(CALL, format!("the connection to another process is lost: {error}"))
}
