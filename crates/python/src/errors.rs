//! What goes wrong, as Python sees it: the command line's sentences, as exceptions of the package
//! (`anchorhood/errors.py`).

use anchorhood::{Error, ErrorKind};
use anchorhood_cli::is_flag;
use pyo3::PyErr;
use pyo3::import_exception;

import_exception!(anchorhood.errors, InputError);
import_exception!(anchorhood.errors, WorkError);

/// The exception of an error.
pub fn exception(error: Error) -> PyErr {
    let sentence = in_python(&error.with_advice());
    match error.kind() {
        ErrorKind::Usage => InputError::new_err(sentence),
        _ => WorkError::new_err(sentence),
    }
}

/// A sentence with flags as arguments are called here: `--crop-scale` is `crop_scale`. Flags of the
/// command line alone, which stand by themselves and in no quotation: what else has dashes is
/// somebody's file.
fn in_python(sentence: &str) -> String {
    let mut quoted = false;
    let mut words = vec![];
    for word in sentence.split(' ') {
        words.push(match quoted || word.starts_with('`') {
            true => word.into(),
            false => word_in_python(word),
        });
        quoted ^= word.matches('`').count() % 2 == 1;
    }
    words.join(" ")
}

/// A word with its punctuation.
fn word_in_python(word: &str) -> String {
    let open = word.len() - word.trim_start_matches('(').len();
    let (before, rest) = word.split_at(open);
    let Some(rest) = rest.strip_prefix("--") else {
        return word.into();
    };
    let (flag, after) = rest.split_at(rest.trim_end_matches([',', ';', ':', '.', ')', '?']).len());
    match is_flag(flag) {
        true => format!("{before}{}{after}", flag.replace('-', "_")),
        false => word.into(),
    }
}
