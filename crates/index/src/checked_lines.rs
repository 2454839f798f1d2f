//! Lines of JSON objects that end with a check of themselves: `{…,"check":"…"}`.

use serde::Serialize;

const CHECK: &str = ",\"check\":\"";

/// Of what JSON has a form for.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values become JSON")
}

/// The line of an object, with its end.
pub(crate) fn with_check(object: &str, check: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!("{open}{CHECK}{check}\"}}\n")
}

/// A line's object without its check, and the check.
pub(crate) fn split_check(line: &str) -> Option<(String, &str)> {
    let (open, rest) = line.rsplit_once(CHECK)?;
    Some((format!("{open}}}"), rest.strip_suffix("\"}")?))
}

/// The bytes up to the last end of a line: an interruption leaves a piece of one behind them.
pub(crate) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}
