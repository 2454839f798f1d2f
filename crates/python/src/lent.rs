//! Pixels of NumPy arrays, read where they lie.

use numpy::{PyArray3, PyArray4, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// The bytes of a contiguous array of pictures, which lives as long as this.
pub struct Lent {
    start: *const u8,
    len: usize,
    /// Pictures, their height and width.
    pub shape: [usize; 3],
    _array: Py<PyAny>,
}

// SAFETY: the array is kept alive by a reference that is counted; its memory does not move, since
// NumPy refuses to resize an array that is referred to. Other threads of Python may write to it
// meanwhile, as for every function of NumPy that releases the GIL; bytes have no invalid values, so
// that the result is then of either picture.
unsafe impl Send for Lent {}
// SAFETY: as above; nothing here writes.
unsafe impl Sync for Lent {}

impl Lent {
    /// N×H×W×3 bytes; an array that is not contiguous is an error.
    pub fn of(array: &Bound<'_, PyArray4<u8>>) -> PyResult<Lent> {
        let lent = array.try_readonly()?;
        let bytes = lent.as_slice()?;
        let [n, height, width, _] = dimensions(array.shape());
        Ok(Lent {
            start: bytes.as_ptr(),
            len: bytes.len(),
            shape: [n, height, width],
            _array: array.clone().into_any().unbind(),
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is that of an array of `len` bytes, contiguous and initialised, which
        // `_array` keeps alive.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

fn dimensions(shape: &[usize]) -> [usize; 4] {
    shape.try_into().expect("the array has four")
}

/// Width, height and bytes of one picture, copied.
pub fn copied(array: &Bound<'_, PyArray3<u8>>) -> PyResult<(usize, usize, Vec<u8>)> {
    let lent = array.try_readonly()?;
    let shape = array.shape();
    Ok((shape[1], shape[0], lent.as_slice()?.to_vec()))
}
