//! The functions of ONNX Runtime that are used, where they lie in its table of functions (`OrtApi`
//! of `onnxruntime_c_api.h`). The table only ever grows at its end, so a program that knows an old
//! one can use a new library.
//!
//! Kept by hand: `ort` (2.0.0-rc.15), a binding to the same library, has no stable version and
//! wants a newer compiler than this program; this table and two small files are all that is needed.

use std::ffi::{c_char, c_int, c_void};

/// The version of the table that is asked for: of ONNX Runtime 1.11 (2022), which has all that is
/// used here.
pub const VERSION: u32 = 11;

/// `ORT_LOGGING_LEVEL_FATAL`: what fails is told by its status.
pub const LOG_NOTHING: c_int = 4;
/// `ORT_ENABLE_ALL`.
pub const OPTIMISE_ALL: c_int = 99;
/// `OrtArenaAllocator`.
pub const ARENA: c_int = 1;
/// `OrtMemTypeDefault`.
pub const DEFAULT_MEMORY: c_int = 0;
/// `ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT`.
pub const FLOAT: c_int = 1;

/// Something of the library's own, known by its address alone.
pub type Opaque = *mut c_void;
/// Null, or what went wrong.
pub type Status = *mut c_void;
/// A function that is not used.
type Skipped = *const c_void;
type Release = unsafe extern "system" fn(Opaque);
type OnOptions = unsafe extern "system" fn(Opaque, c_int) -> Status;
type Texts = *const *const c_char;

/// What the library gives out first.
#[repr(C)]
pub struct ApiBase {
    pub api: unsafe extern "system" fn(u32) -> *const Api,
    pub version: unsafe extern "system" fn() -> *const c_char,
}

/// The table. Runs of functions that are not used are named by the place of their first.
#[repr(C)]
pub struct Api {
    _0: [Skipped; 2],
    pub error_message: unsafe extern "system" fn(Status) -> *const c_char,
    pub create_env: unsafe extern "system" fn(c_int, *const c_char, *mut Opaque) -> Status,
    _4: [Skipped; 2],
    pub disable_telemetry: unsafe extern "system" fn(Opaque) -> Status,
    _7: [Skipped; 1],
    /// Environment, bytes and how many, options, the session.
    pub create_session_from_array:
        unsafe extern "system" fn(Opaque, *const c_void, usize, Opaque, *mut Opaque) -> Status,
    /// Session, options; names of inputs, inputs, how many; names of outputs, how many, outputs.
    pub run: unsafe extern "system" fn(
        Opaque,
        *const c_void,
        Texts,
        *const Opaque,
        usize,
        Texts,
        usize,
        *mut Opaque,
    ) -> Status,
    pub create_options: unsafe extern "system" fn(*mut Opaque) -> Status,
    _11: [Skipped; 12],
    pub set_optimisation: OnOptions,
    pub set_intra_threads: OnOptions,
    pub set_inter_threads: OnOptions,
    _26: [Skipped; 23],
    /// Over the caller's values: memory, values and how many bytes, dimensions and how many, type,
    /// the tensor.
    pub create_tensor: unsafe extern "system" fn(
        Opaque,
        *mut c_void,
        usize,
        *const i64,
        usize,
        c_int,
        *mut Opaque,
    ) -> Status,
    pub is_tensor: unsafe extern "system" fn(Opaque, *mut c_int) -> Status,
    pub values: unsafe extern "system" fn(Opaque, *mut *mut c_void) -> Status,
    _52: [Skipped; 8],
    pub element_type: unsafe extern "system" fn(Opaque, *mut c_int) -> Status,
    pub dimension_count: unsafe extern "system" fn(Opaque, *mut usize) -> Status,
    pub dimensions: unsafe extern "system" fn(Opaque, *mut i64, usize) -> Status,
    _63: [Skipped; 2],
    pub type_and_shape: unsafe extern "system" fn(Opaque, *mut Opaque) -> Status,
    _66: [Skipped; 3],
    pub create_cpu_memory: unsafe extern "system" fn(c_int, c_int, *mut Opaque) -> Status,
    _70: [Skipped; 23],
    pub release_status: Release,
    _94: [Skipped; 1],
    pub release_session: Release,
    pub release_value: Release,
    _97: [Skipped; 2],
    pub release_type_and_shape: Release,
    pub release_options: Release,
    _101: [Skipped; 29],
    pub set_option: unsafe extern "system" fn(Opaque, *const c_char, *const c_char) -> Status,
    _131: [Skipped; 13],
    /// Environment, memory, how the arena grows.
    pub register_allocator: unsafe extern "system" fn(Opaque, Opaque, Opaque) -> Status,
    _145: [Skipped; 19],
    /// Names, values, how many, the result (`CreateArenaCfgV2`).
    pub create_arena: unsafe extern "system" fn(Texts, *const usize, usize, *mut Opaque) -> Status,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The places that the functions have in `onnxruntime_c_api.h`, counted there.
    #[test]
    fn functions_lie_where_the_library_has_them() {
        macro_rules! places {
            ($($field:ident: $place:literal,)*) => {
                $(
                    let place = offset_of!(Api, $field) / size_of::<Skipped>();
                    assert_eq!(place, $place, stringify!($field));
                )*
            };
        }
        places! {
            error_message: 2, create_env: 3, disable_telemetry: 6, create_session_from_array: 8,
            run: 9, create_options: 10, set_optimisation: 23, set_intra_threads: 24,
            set_inter_threads: 25, create_tensor: 49, is_tensor: 50, values: 51, element_type: 60,
            dimension_count: 61, dimensions: 62, type_and_shape: 65, create_cpu_memory: 69,
            release_status: 93, release_session: 95, release_value: 96, release_type_and_shape: 99,
            release_options: 100, set_option: 130, register_allocator: 144, create_arena: 164,
        }
    }
}
