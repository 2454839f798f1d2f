//! Where is ONNX Runtime? Where the user says, beside this program, on the loader's path, or among
//! Python's packages. It is opened once in the life of the process, and never closed.

use std::ffi::{CStr, OsStr, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use anchorhood_storage::python_packages;
use libloading::Library;

use crate::SearchError;
use crate::onnx::api::{ARENA, Api, ApiBase, DEFAULT_MEMORY, LOG_NOTHING, Opaque, Status, VERSION};
use crate::onnx::plain::plain;

/// The variable that names the library, or the folder it is in.
const VARIABLE: &str = "ANCHORHOOD_ONNXRUNTIME";

/// What systems call it.
const NAMES: [&str; 4] =
    ["libonnxruntime.so.1", "libonnxruntime.so", "libonnxruntime.dylib", "onnxruntime.dll"];

/// Where Homebrew puts it, which is not on the loader's path.
const HOMEBREW: &str = "/opt/homebrew/lib/libonnxruntime.dylib";

/// ONNX Runtime, opened.
pub struct Runtime {
    pub(crate) api: &'static Api,
    pub(crate) env: Opaque,
    pub(crate) memory: Opaque,
    version: String,
    place: PathBuf,
    /// Kept open as long as the process lives.
    _library: Library,
}

// SAFETY: the table is constant; an environment and a description of memory may be used by several
// threads at a time, as the library's documentation says of all that is not being changed.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

impl Runtime {
    /// The library, opened at the first call; its memory for values is bounded by `most_bytes` of
    /// that call.
    pub fn find(most_bytes: u64) -> Result<&'static Runtime, SearchError> {
        static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
        let found = RUNTIME.get_or_init(|| search(most_bytes));
        found.as_ref().map_err(|why| SearchError::Failed(why.clone()))
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file it was opened from, or the name by which the loader found it.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What a status says; null says that all went well.
    pub(crate) fn check(&self, status: Status) -> Result<(), String> {
        check(self.api, status)
    }
}

fn check(api: &Api, status: Status) -> Result<(), String> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: a status that is not null is alive until it is released, here, and its message is a
    // text that ends with a zero.
    unsafe {
        let message = text((api.error_message)(status));
        (api.release_status)(status);
        Err(message)
    }
}

/// A text of the library's.
///
/// # Safety
/// It is null, or ends with a zero and is alive during the call.
unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return "no reason given".into();
    }
    // SAFETY: the caller's promise; it is not null.
    let text = unsafe { CStr::from_ptr(from) };
    plain(&text.to_string_lossy())
}

/// A sentence says why it cannot be had.
fn search(most_bytes: u64) -> Result<Runtime, String> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return open_named(Path::new(&named), most_bytes);
    }
    let mut why = vec![];
    for file in places() {
        match open(&file, most_bytes) {
            Ok(runtime) => return Ok(runtime),
            // What is not there is no news.
            Err(reason) if file.exists() => why.push(format!("{} {reason}", file.display())),
            Err(_) => {}
        }
    }
    why.push(
        "not beside this program, not on the loader's path, nor among the packages of Python"
            .into(),
    );
    Err(format!(
        "ONNX files are run by ONNX Runtime, which was not found: {}. Install it (pip: onnxruntime; \
         apt: libonnxruntime-dev; brew: onnxruntime), or let {VARIABLE} name its library",
        why.join("; ")
    ))
}

/// What the user named is used, or nothing is.
fn open_named(named: &Path, most_bytes: u64) -> Result<Runtime, String> {
    let bad = |why: String| format!("{VARIABLE} names {}, which {why}", named.display());
    let file = match named.is_dir() {
        true => libraries_in(named).into_iter().next(),
        false => Some(named.to_path_buf()),
    };
    let file = file.ok_or_else(|| bad("is a folder without ONNX Runtime's library".into()))?;
    open(&file, most_bytes).map_err(bad)
}

/// Where it may be.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(libraries_in);
    let by_name = NAMES.iter().chain([&HOMEBREW]).map(PathBuf::from);
    let packages = python_packages().into_iter();
    let packages = packages.flat_map(|site| libraries_in(&site.join("onnxruntime/capi")));
    let beside = beside.into_iter().flatten();
    beside.chain(by_name).chain(packages).collect()
}

/// Files of a folder that are called as the library is, with or without a version.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(is_library))
        .collect();
    found.sort();
    found
}

fn is_library(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let versioned = |stem: &str, end: &str| name.starts_with(stem) && name.ends_with(end);
    name.starts_with("libonnxruntime.so")
        || versioned("libonnxruntime.", ".dylib")
        || name == "onnxruntime.dll"
}

/// Opens a file as ONNX Runtime, or says what it does instead of being it.
fn open(file: &Path, most_bytes: u64) -> Result<Runtime, String> {
    // SAFETY: opening ONNX Runtime runs its own set-up alone. A file of another kind that is named
    // so is the user's own choice.
    let library = unsafe { Library::new(file) };
    let library = library.map_err(|e| format!("cannot be opened: {e}"))?;
    // SAFETY: this is the signature of `OrtGetApiBase`, which returns a table that lives as long as
    // the library, or null.
    let base = unsafe {
        type Base = unsafe extern "system" fn() -> *const ApiBase;
        let base = library.get::<Base>(b"OrtGetApiBase\0");
        let base = base.map_err(|_| "is not ONNX Runtime")?;
        base().as_ref().ok_or("gives out no functions")?
    };
    // SAFETY: functions of the table; the texts and tables they return live as long as the library.
    let (version, api) = unsafe { (text((base.version)()), (base.api)(VERSION).as_ref()) };
    let api =
        api.ok_or_else(|| format!("is version {version}; 1.{VERSION} is the oldest that will do"))?;
    let env = environment(api)?;
    let memory = bounded_memory(api, env, most_bytes)?;
    Ok(Runtime {
        api,
        env,
        memory,
        version,
        place: mapped(file).unwrap_or_else(|| file.into()),
        _library: library,
    })
}

/// Logs nothing and tells nobody what it is used for.
fn environment(api: &Api) -> Result<Opaque, String> {
    let mut env = ptr::null_mut();
    // SAFETY: the name ends with a zero, and the pointer has room for what is made. It is never
    // released, like the library.
    unsafe {
        check(api, (api.create_env)(LOG_NOTHING, c"anchorhood".as_ptr(), &mut env))?;
        check(api, (api.disable_telemetry)(env))?;
    }
    Ok(env)
}

/// A store for the values of every session, which says no before the machine does: a file may ask
/// for any size.
fn bounded_memory(api: &Api, env: Opaque, most_bytes: u64) -> Result<Opaque, String> {
    let keys = [c"max_mem".as_ptr(), c"arena_extend_strategy".as_ptr()];
    // No more is taken than is asked for (1), for a store that doubles would say no too early.
    let values = [usize::try_from(most_bytes).unwrap_or(usize::MAX), 1];
    let (mut memory, mut arena) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: keys end with a zero, there are as many values, the pointers have room for what is
    // made, which is never released.
    unsafe {
        check(api, (api.create_cpu_memory)(ARENA, DEFAULT_MEMORY, &mut memory))?;
        let made = (api.create_arena)(keys.as_ptr(), values.as_ptr(), keys.len(), &mut arena);
        check(api, made)?;
        check(api, (api.register_allocator)(env, memory, arena))?;
    }
    Ok(memory)
}

/// The file behind a name that the loader knew, where the system tells.
fn mapped(name: &Path) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let file = |line: &str| Some(PathBuf::from(&line[line.find('/')?..]));
    let is_it = |f: &PathBuf| f.file_name().is_some_and(is_library);
    (name.components().count() == 1).then_some(())?;
    maps.lines().filter_map(file).find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libonnxruntime.so.1.31.1",
            "libonnxruntime.1.20.0.dylib",
            "onnxruntime.dll",
            "libonnxruntime_providers_shared.so",
            "other.so",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = libraries_in(folder.path());
        let names: Vec<_> = found.iter().map(|f| f.file_name().unwrap()).collect();
        let expected =
            ["libonnxruntime.1.20.0.dylib", "libonnxruntime.so.1.31.1", "onnxruntime.dll"];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_the_user_names_must_be_it() {
        let folder = tempfile::tempdir().unwrap();
        let said = |place: &Path| open_named(place, 1).err().unwrap();
        assert!(said(folder.path()).contains("is a folder without"));
        let file = folder.path().join("libonnxruntime.so");
        std::fs::write(&file, "text").unwrap();
        assert!(said(folder.path()).contains("cannot be opened"));
        assert!(said(&file).starts_with("ANCHORHOOD_ONNXRUNTIME names"));
    }
}
