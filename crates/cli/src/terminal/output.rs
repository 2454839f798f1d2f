//! Lines on stdout, without a panic when nobody reads them; and text that does nothing to the
//! terminal but stand there.

use std::borrow::Cow;
use std::io::{self, Write};

use anchorhood_data::unseen;
pub use anchorhood_report::{counted, duration, grouped};
use serde_json::Value;

use crate::terminal::failure::Failure;

/// Writes a line to stdout.
pub fn line(text: &str) -> Result<(), Failure> {
    bytes(format!("{}\n", printable(text)).as_bytes())
}

/// Writes bytes to stdout, as they are.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => failed!("cannot write to stdout: {e}"),
    })
}

/// Writes a line to stdout: an object for a program, or a text for a person.
pub fn either(
    json: bool,
    object: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    line(&if json { object().to_string() } else { text() })
}

/// A text as it may be shown: names of files can hold sequences that colour a terminal, move its
/// cursor or turn the direction of writing, and are shown with these as JSON would escape them.
/// Lines and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let shown = text.chars().map(|c| match acts(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    });
    shown.collect::<String>().into()
}

fn acts(c: char) -> bool {
    unseen(c) && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown() {
        assert_eq!(printable("Фото 写真 ü\t1\n"), "Фото 写真 ü\t1\n");
        let odd = "a\u{1b}[31m\r\u{9b}2J\u{202e}b\u{7f}";
        assert_eq!(printable(odd), "a\\u001b[31m\\u000d\\u009b2J\\u202eb\\u007f");
        let json = serde_json::to_string(odd).unwrap();
        let back: String = serde_json::from_str(&printable(&json)).unwrap();
        assert_eq!(back, odd, "what a program reads is the same");
    }
}
