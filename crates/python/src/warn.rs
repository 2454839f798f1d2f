//! What is said beside a result, as Python's warnings.

use std::ffi::CString;

use anchorhood::Event;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(anchorhood.errors, AnchorhoodWarning);

/// Warnings and notes that come while something is done, to be said when it is done.
#[derive(Default)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Keeps an event that is a warning.
    pub fn hear(&mut self, event: &Event) {
        if let Event::Warning { message } = event {
            self.0.push(message.clone());
        }
    }

    /// Says them.
    pub fn say(self, py: Python<'_>) -> PyResult<()> {
        let category = py.get_type::<AnchorhoodWarning>();
        for message in self.0 {
            let message = CString::new(message.replace('\0', " ")).expect("it has no zero left");
            PyErr::warn(py, &category, &message, 2)?;
        }
        Ok(())
    }
}
