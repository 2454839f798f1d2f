//! From .cu files to code for the chip found: compiled by NVRTC, kept on disk between runs.
//!
//! Kernels include no header: `common.cuh` stands before each of them, and `f32_tiles.cuh` before
//! two. `ELEMENT_BF16` is 1 where activations are bf16 and 0 where they are f32. What the driver
//! refuses is compiled anew.

use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hash, Hasher};

use cudarc::nvrtc::{result, sys};

use super::{Library, Precision, cache};
use crate::{Error, Result};

const COMMON: &str = include_str!("kernels/common.cuh");

/// A kernel file with what some of them share before it; messages name its own lines.
macro_rules! with_f32_tiles {
    ($file:literal) => {
        concat!(
            include_str!("kernels/f32_tiles.cuh"),
            "#line 1 \"",
            $file,
            "\"\n",
            include_str!(concat!("kernels/", $file))
        )
    };
}

/// Every kernel file, by its stem.
const SOURCES: &[(&str, &str)] = &[
    ("batch_norm", include_str!("kernels/batch_norm.cu")),
    ("contrastive", with_f32_tiles!("contrastive.cu")),
    ("nearest", with_f32_tiles!("nearest.cu")),
    ("convolution", include_str!("kernels/convolution.cu")),
    ("elementwise", include_str!("kernels/elementwise.cu")),
    ("loss_bf16", include_str!("kernels/loss_bf16.cu")),
    ("loss_f32", with_f32_tiles!("loss_f32.cu")),
    ("losses", include_str!("kernels/losses.cu")),
    ("norm_on_chip", include_str!("kernels/norm_on_chip.cu")),
    ("optimisers", include_str!("kernels/optimisers.cu")),
    ("quarters", include_str!("kernels/quarters.cu")),
    ("sampled", include_str!("kernels/sampled.cu")),
    ("scan", include_str!("kernels/scan.cu")),
    ("similarity", include_str!("kernels/similarity.cu")),
    ("stem", include_str!("kernels/stem.cu")),
    ("steps", include_str!("kernels/steps.cu")),
    ("tiles", include_str!("kernels/tiles.cu")),
];

/// Those, and those of layers.
fn sources() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    SOURCES.iter().chain(crate::ops::SOURCES)
}

/// The text of a kernel file, and what stands before it.
pub(super) struct Text {
    pub(super) stem: &'static str,
    pub(super) before: &'static str,
    pub(super) source: &'static str,
}

/// The text of a kernel file of ours.
pub(super) fn source(stem: &str) -> Result<Text> {
    let found = sources().find(|(s, _)| *s == stem);
    let (stem, source) =
        found.ok_or_else(|| Error::Device(format!("there is no kernel file {stem}.cu")))?;
    Ok(Text { stem, before: COMMON, source })
}

/// NVRTC's name of a chip.
pub(super) fn architecture(major: i32, minor: i32) -> String {
    format!("sm_{major}{minor}")
}

/// Compiles what the cache does not have of our kernel files, side by side: whoever asks for them
/// next finds them there.
pub(super) fn fill_cache(architecture: &str, precision: Precision) {
    std::thread::scope(|scope| {
        for (stem, _) in sources() {
            scope.spawn(move || {
                let Ok(text) = source(stem) else { return };
                let name = name_of(&text, architecture, precision);
                if !cache::has(&name)
                    && let Ok(image) = compile(&text, architecture, precision)
                {
                    cache::write(&name, &image);
                }
            });
        }
    });
}

fn name_of(text: &Text, architecture: &str, precision: Precision) -> String {
    let mut key = DefaultHasher::new();
    let (stem, bytes) = (text.stem, precision.bytes());
    (text.before, text.source, architecture, bytes, version()).hash(&mut key);
    format!("{stem}-{architecture}-{:016x}.cubin", key.finish())
}

/// Compiles a kernel file, or takes it from the cache, and loads it.
pub(super) fn cached<T>(
    text: &Text,
    architecture: &str,
    precision: Precision,
    load: impl Fn(Vec<u8>) -> Result<T, String>,
) -> Result<T> {
    Library::Nvrtc.open()?;
    let (stem, name) = (text.stem, name_of(text, architecture, precision));
    let kept = cache::read(&name);
    if let Some(loaded) = kept.and_then(|image| load(image).ok()) {
        return Ok(loaded);
    }
    let image = compile(text, architecture, precision)?;
    cache::write(&name, &image);
    load(image).map_err(|e| Error::Device(format!("loading the kernels of {stem}.cu: {e}")))
}

/// Machine code of a kernel file.
pub(super) fn compile(text: &Text, architecture: &str, precision: Precision) -> Result<Vec<u8>> {
    let Text { stem, before, source } = text;
    let error =
        |what: &str| Error::Device(format!("compiling {stem}.cu for {architecture}: {what}"));
    let text = CString::new(format!("{before}\n#line 1 \"{stem}.cu\"\n{source}"))
        .map_err(|e| error(&e.to_string()))?;
    let bf16 = u8::from(precision == Precision::Bf16);
    let options = [
        format!("--gpu-architecture={architecture}"),
        format!("-DELEMENT_BF16={bf16}"),
        "--std=c++17".into(),
        "-default-device".into(),
        "-lineinfo".into(),
        // As many threads as there are cores: two files take longer than all the others.
        "--split-compile=0".into(),
        // common.cuh offers more than any one file uses.
        "--diag-suppress=177".into(),
    ];
    let program = Program(result::create_program(&text, None).map_err(|e| error(&e.to_string()))?);
    // SAFETY: the program was just created and lives to the end of this function.
    unsafe {
        if let Err(e) = result::compile_program(program.0, &options) {
            let log = result::get_program_log(program.0).unwrap_or_default();
            let log = match log.is_empty() {
                true => String::new(),
                // NVRTC's logs end in a zero.
                false => CStr::from_ptr(log.as_ptr()).to_string_lossy().into_owned(),
            };
            return Err(error(&format!("{e}\n{log}")));
        }
        let mut size = 0;
        let got = sys::nvrtcGetCUBINSize(program.0, &mut size);
        got.result().map_err(|e| error(&e.to_string()))?;
        let mut image = vec![0_u8; size];
        let got = sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr().cast());
        got.result().map_err(|e| error(&e.to_string()))?;
        Ok(image)
    }
}

struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by NVRTC and destroyed only here. There is nothing to do about a failure.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

fn version() -> [i32; 2] {
    let [mut major, mut minor] = [0; 2];
    // SAFETY: both are valid to write to.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    [major, minor]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_for_the_oldest_chips_and_for_hopper() {
        if let Err(e) = Library::Nvrtc.open() {
            anchorhood_testing::skip(&format!("no NVRTC: {e}"));
            return;
        }
        for (stem, _) in sources() {
            for precision in [Precision::F32, Precision::Bf16] {
                for chip in [architecture(8, 0), architecture(9, 0)] {
                    let image = compile(&source(stem).unwrap(), &chip, precision).unwrap();
                    assert!(image.len() > 1000, "{stem}, {chip}: {} bytes", image.len());
                }
            }
        }
    }

    #[test]
    fn a_kernel_that_is_wrong_says_where() {
        if let Err(e) = Library::Nvrtc.open() {
            anchorhood_testing::skip(&format!("no NVRTC: {e}"));
            return;
        }
        let text = Text { stem: "broken", before: COMMON, source: "\n\nint x = y;" };
        let error = compile(&text, "sm_90", Precision::F32).unwrap_err();
        assert!(error.to_string().contains("broken.cu(3)"), "{error}");
    }
}
