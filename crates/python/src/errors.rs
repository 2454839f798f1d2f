//! What goes wrong, as Python sees it: the command line's sentences, as exceptions of the package (`anchorhood/errors.py`).

use anchorhood_cli::Failure;
use pyo3::PyErr;
use pyo3::import_exception;

import_exception!(anchorhood.errors, InputError);
import_exception!(anchorhood.errors, WorkError);

/// The exit code of what cannot be asked for.
const USAGE: u8 = 2;

/// The exception of a failure.
pub fn exception(failure: Failure) -> PyErr {
    let sentence = in_python(&failure.message.unwrap_or_default());
    match failure.code {
        USAGE => InputError::new_err(sentence),
        _ => WorkError::new_err(sentence),
    }
}

/// A sentence with flags as arguments are called here: `--crop-scale` is `crop_scale`.
fn in_python(sentence: &str) -> String {
    let mut parts = sentence.split("--");
    let mut said = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
        let (flag, rest) = part.split_at(end);
        match flag.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => said += &flag.replace('-', "_"),
            false => said = said + "--" + flag,
        }
        said += rest;
    }
    said
}
