//! Where are NVIDIA's libraries? On the loader's path, under CUDA_HOME, or in the folders where pip
//! puts them.
//!
//! A library found is opened with its symbols global and stays open; the bindings then find it by
//! its name, wherever it came from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use anchorhood_distributed::open_global;
use anchorhood_storage::{entries_beginning, python_packages};

use crate::{Error, Result};

/// A library the GPU needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// The driver.
    Driver,
    /// The compiler of our kernels.
    Nvrtc,
    /// Matrix products, which cuDNN calls for.
    CublasLt,
    /// Convolutions.
    Cudnn,
    /// Collectives, where several processes have a GPU each.
    Nccl,
}

/// A library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub library: Library,
    /// The file, as far as the system says.
    pub place: String,
}

impl Library {
    /// All that one process uses.
    pub const ALL: [Library; 4] =
        [Library::Driver, Library::Nvrtc, Library::CublasLt, Library::Cudnn];

    /// File names, in the order in which the bindings try them.
    fn names(self) -> &'static [&'static str] {
        match self {
            Library::Driver => &["libcuda.so", "libcuda.so.1"],
            Library::Nvrtc => &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"],
            Library::CublasLt => &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
            Library::Cudnn => &["libcudnn.so", "libcudnn.so.9"],
            Library::Nccl => &["libnccl.so.2", "libnccl.so"],
        }
    }

    /// What a user installs to have it.
    fn packages(self) -> &'static str {
        match self {
            Library::Driver => "install NVIDIA's driver (apt: nvidia-driver-580 or newer)",
            Library::Nvrtc => "install it (apt: cuda-nvrtc-13-0; pip: nvidia-cuda-nvrtc)",
            Library::CublasLt => "install it (apt: libcublas-13-0; pip: nvidia-cublas)",
            Library::Cudnn => "install it (apt: libcudnn9-cuda-13; pip: nvidia-cudnn-cu13)",
            Library::Nccl => "install it (apt: libnccl2; pip: nvidia-nccl-cu13)",
        }
    }

    /// Opens the library, once in the life of the process, and says where it was found.
    pub fn open(self) -> Result<Found> {
        static OPENED: Mutex<Vec<Found>> = Mutex::new(vec![]);
        let mut opened = OPENED.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = opened.iter().find(|f| f.library == self) {
            return Ok(found.clone());
        }
        let place = search(self).ok_or_else(|| self.missing())?;
        let found = Found { library: self, place };
        opened.push(found.clone());
        Ok(found)
    }

    fn missing(self) -> Error {
        Error::Device(format!(
            "{self} was not found ({}): not on the loader's path, under CUDA_HOME, nor among the \
             packages of the python3 on the PATH; {}",
            self.names().join(", "),
            self.packages()
        ))
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Library::Driver => "CUDA's driver",
            Library::Nvrtc => "NVRTC",
            Library::CublasLt => "cuBLASLt",
            Library::Cudnn => "cuDNN",
            Library::Nccl => "NCCL",
        })
    }
}

/// Opens everything a network needs; the error names the first library that is missing.
pub(super) fn open_all() -> Result<()> {
    // The driver is asked for first: without it there is no GPU, and the rest is of no interest.
    Library::ALL.iter().try_for_each(|l| l.open().map(|_| ()))
}

/// The file a library was opened from.
fn search(library: Library) -> Option<String> {
    let names = library.names();
    let by_name = names.iter().find(|name| keep_open(Path::new(name)));
    if let Some(name) = by_name {
        return Some(mapped(name).unwrap_or_else(|| name.to_string()));
    }
    let files = folders().iter().flat_map(|f| names.iter().map(|n| f.join(n)));
    let mut there = files.filter(|file| file.exists());
    let file = there.find(|file| keep_open(file))?;
    Some(file.display().to_string())
}

/// Opens a library for good, its symbols global.
fn keep_open(file: &Path) -> bool {
    open_global(file).map(std::mem::forget).is_ok()
}

/// The file behind a library that the loader found, where the system tells.
fn mapped(name: &str) -> Option<String> {
    let stem = name.split(".so").next()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let file = |line: &str| Some(line[line.find('/')?..].to_string());
    maps.lines()
        .filter_map(file)
        .find(|f| f.rsplit('/').next().is_some_and(|f| f.starts_with(&format!("{stem}.so"))))
}

/// Folders to search beside the loader's own.
fn folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let homes = ["CUDA_HOME", "CUDA_PATH"].map(std::env::var_os);
        let homes = homes.into_iter().flatten().map(PathBuf::from);
        let usual = std::iter::once(PathBuf::from("/usr/local/cuda"));
        let toolkit = homes
            .chain(usual)
            .flat_map(|h| [h.join("lib64"), h.join("lib"), h.join("targets/x86_64-linux/lib")]);
        toolkit.chain(packaged()).filter(|f| f.is_dir()).collect()
    })
}

/// The folders of pip's nvidia packages: `nvidia/*/lib` among the packages of every Python there
/// is.
fn packaged() -> Vec<PathBuf> {
    let nvidia = python_packages().into_iter().map(|site| site.join("nvidia"));
    let packages = nvidia.flat_map(|folder| entries_beginning(&folder, ""));
    packages.map(|package| package.join("lib")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_its_packages() {
        let message = Library::Cudnn.missing().to_string();
        for part in ["cuDNN", "libcudnn.so.9", "apt: libcudnn9", "pip: nvidia-cudnn"] {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }

    #[test]
    fn what_is_no_library_is_not_opened() {
        assert!(!keep_open(Path::new("libno-such-thing.so.1")));
    }
}
