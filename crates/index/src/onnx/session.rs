//! A network that ONNX Runtime holds: values of one tensor in, values of one tensor out. Several
//! threads may run it at a time; each run is done by the thread that asks.

use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr;

use crate::onnx::Runtime;
use crate::onnx::api::{FLOAT, OPTIMISE_ALL, Opaque};

/// Values and their dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The dimensions, outermost first.
    pub shape: Vec<usize>,
    /// As many as the dimensions' product.
    pub values: Vec<f32>,
}

/// A network and the names of what goes in and comes out.
pub struct Session {
    runtime: &'static Runtime,
    session: Opaque,
    input: CString,
    output: CString,
}

// SAFETY: the library says that a session may be run by several threads at a time, and released by
// any.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Makes a session of a file's bytes; other files that it names are looked for in `folder`.
    pub fn new(
        runtime: &'static Runtime,
        bytes: &[u8],
        folder: &Path,
        input: &str,
        output: &str,
    ) -> Result<Session, String> {
        let name = |name: &str| CString::new(name).map_err(|_| "a name in it holds a zero");
        let (input, output) = (name(input)?, name(output)?);
        let options = Options::new(runtime, folder)?;
        let mut session = ptr::null_mut();
        // SAFETY: environment and options are alive, `bytes` are during the call, after which the
        // library has its own copy.
        let made = unsafe {
            let start = bytes.as_ptr().cast();
            let create = runtime.api.create_session_from_array;
            create(runtime.env, start, bytes.len(), options.options, &mut session)
        };
        runtime.check(made)?;
        Ok(Session { runtime, session, input, output })
    }

    /// Runs it over a tensor of these dimensions.
    pub fn run(&self, shape: &[usize], values: &mut [f32]) -> Result<Values, String> {
        let input = Tensor::over(self.runtime, shape, values)?;
        let mut output = ptr::null_mut();
        // SAFETY: session and input are alive, both names end with a zero, and `output` has room
        // for the one that is asked for.
        let ran = unsafe {
            (self.runtime.api.run)(
                self.session,
                ptr::null(),
                &self.input.as_ptr(),
                &input.value,
                1,
                &self.output.as_ptr(),
                1,
                &mut output,
            )
        };
        self.runtime.check(ran)?;
        let output = Tensor { runtime: self.runtime, value: output };
        output.read()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and released here alone.
        unsafe { (self.runtime.api.release_session)(self.session) }
    }
}

/// How a session is made.
struct Options {
    runtime: &'static Runtime,
    options: Opaque,
}

impl Options {
    /// One thread for each run, the store of memory that all share, and the files that belong to it
    /// in `folder`.
    fn new(runtime: &'static Runtime, folder: &Path) -> Result<Options, String> {
        let api = runtime.api;
        let mut options = ptr::null_mut();
        // SAFETY: the pointer has room for what is made, which the `Options` below releases.
        runtime.check(unsafe { (api.create_options)(&mut options) })?;
        let made = Options { runtime, options };
        // SAFETY: the options are alive.
        unsafe {
            runtime.check((api.set_optimisation)(options, OPTIMISE_ALL))?;
            runtime.check((api.set_intra_threads)(options, 1))?;
            runtime.check((api.set_inter_threads)(options, 1))?;
        }
        made.set(c"session.use_env_allocators", c"1")?;
        // By its first bytes a file could ask to be read as another format.
        made.set(c"session.load_model_format", c"ONNX")?;
        let folder = CString::new(folder.to_string_lossy().as_bytes());
        let folder = folder.map_err(|_| "its folder's name holds a zero")?;
        made.set(c"session.model_external_initializers_file_folder_path", &folder)?;
        Ok(made)
    }

    fn set(&self, name: &CStr, value: &CStr) -> Result<(), String> {
        // SAFETY: the options are alive, and both texts end with a zero; they are copied.
        let set = unsafe {
            let set = self.runtime.api.set_option;
            set(self.options, name.as_ptr(), value.as_ptr())
        };
        self.runtime.check(set)
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and released here alone.
        unsafe { (self.runtime.api.release_options)(self.options) }
    }
}

/// A value of the library's.
struct Tensor {
    runtime: &'static Runtime,
    value: Opaque,
}

impl Tensor {
    /// Over values of ours, which it must not outlive.
    fn over(
        runtime: &'static Runtime,
        shape: &[usize],
        values: &mut [f32],
    ) -> Result<Self, String> {
        let dimensions: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
        let mut value = ptr::null_mut();
        // SAFETY: values and dimensions are alive and as long as is said; the library compares one
        // with the other. The pointer has room for the tensor.
        let made = unsafe {
            let (start, bytes) = (values.as_mut_ptr().cast(), size_of_val(values));
            let (shape, count) = (dimensions.as_ptr(), dimensions.len());
            let create = runtime.api.create_tensor;
            create(runtime.memory, start, bytes, shape, count, FLOAT, &mut value)
        };
        runtime.check(made)?;
        Ok(Tensor { runtime, value })
    }

    /// A copy of its values.
    fn read(&self) -> Result<Values, String> {
        let shape = self.shape()?;
        let count = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        let count = count.ok_or("a result has more values than can be counted")?;
        let mut start = ptr::null_mut();
        // SAFETY: the value is alive, and is a tensor, as `shape` has seen; the pointer has room
        // for an address.
        let found = unsafe { (self.runtime.api.values)(self.value, &mut start) };
        self.runtime.check(found)?;
        if count > 0 && start.is_null() {
            return Err("a result has no values".into());
        }
        let values = match count {
            0 => vec![],
            // SAFETY: a tensor of floats, as `shape` has seen, has as many as the product of its
            // dimensions, as long as it lives.
            _ => unsafe { std::slice::from_raw_parts(start.cast::<f32>(), count) }.to_vec(),
        };
        Ok(Values { shape, values })
    }

    /// The dimensions of a tensor of floats.
    fn shape(&self) -> Result<Vec<usize>, String> {
        let (api, mut is_tensor) = (self.runtime.api, 0);
        if self.value.is_null() {
            return Err("it gives no result".into());
        }
        // SAFETY: the value is alive, and the pointer has room for a number.
        let told = unsafe { (api.is_tensor)(self.value, &mut is_tensor) };
        self.runtime.check(told)?;
        if is_tensor == 0 {
            return Err("its result is no tensor".into());
        }
        let mut info = ptr::null_mut();
        // SAFETY: the value is alive and a tensor; what is made is released below, whatever comes.
        let made = unsafe { (api.type_and_shape)(self.value, &mut info) };
        self.runtime.check(made)?;
        let shape = self.shape_of(info);
        // SAFETY: made above, and released here alone.
        unsafe { (api.release_type_and_shape)(info) };
        shape
    }

    fn shape_of(&self, info: Opaque) -> Result<Vec<usize>, String> {
        let (api, mut element, mut count): (_, c_int, usize) = (self.runtime.api, 0, 0);
        // SAFETY: `info` is alive, and the pointers have room for a number each.
        unsafe {
            self.runtime.check((api.element_type)(info, &mut element))?;
            self.runtime.check((api.dimension_count)(info, &mut count))?;
        }
        if element != FLOAT {
            return Err("its result is not of 32-bit floats".into());
        }
        let mut dimensions = vec![0_i64; count];
        // SAFETY: `info` is alive, and there is room for as many dimensions as it has.
        let read = unsafe { (api.dimensions)(info, dimensions.as_mut_ptr(), count) };
        self.runtime.check(read)?;
        let counted = |d: i64| usize::try_from(d).map_err(|_| "a dimension is below 0".to_string());
        dimensions.into_iter().map(counted).collect()
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if !self.value.is_null() {
            // SAFETY: given by the library, and released here alone.
            unsafe { (self.runtime.api.release_value)(self.value) }
        }
    }
}
