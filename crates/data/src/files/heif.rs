//! HEIC and AVIF pictures, by the system's libheif where there is one. It is opened when the first
//! such file is met.
//!
//! The library turns pictures the right way up by itself. It is C++ on strangers' files, so only
//! files of folders are given to it, never what is sent to a server.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use image::{DynamicImage, RgbImage, RgbaImage};
use libloading::Library;

/// What a system calls it.
const NAMES: [&str; 5] = [
    "libheif.so.1",
    "libheif.so",
    "libheif.1.dylib",
    "/opt/homebrew/lib/libheif.1.dylib",
    "heif.dll",
];

/// Whether files that begin so are HEIC, HEIF or AVIF: a box `ftyp` and one of its brands.
pub(super) fn is_heif(start: &[u8]) -> bool {
    const BRANDS: [&[u8]; 9] =
        [b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"];
    start.get(4..8) == Some(b"ftyp") && start.get(8..12).is_some_and(|b| BRANDS.contains(&b))
}

/// Whether such files can be read here.
pub(super) fn is_here() -> bool {
    heif().is_some()
}

/// Columns and rows of the main picture of a file, then the picture, if `check` lets them pass.
pub(super) fn decode<T>(
    bytes: &[u8],
    check: impl FnOnce(u32, u32) -> Result<T, String>,
) -> Result<(DynamicImage, T), String> {
    let heif = heif().ok_or("libheif, which reads HEIC and AVIF pictures, is not here")?;
    // SAFETY: takes nothing.
    let context = unsafe { (heif.context_alloc)() };
    let context = Owned::new(context, heif.context_free).ok_or("libheif has no memory")?;
    let start = bytes.as_ptr().cast();
    // SAFETY: the context is alive, and `bytes`, which are not copied, outlive it; null stands for
    // the usual options.
    unsafe { (heif.read)(context.pointer, start, bytes.len(), ptr::null()) }.check()?;
    let mut handle = ptr::null_mut();
    // SAFETY: the context is alive, and the pointer has room for a handle.
    unsafe { (heif.main_picture)(context.pointer, &mut handle) }.check()?;
    let handle = Owned::new(handle, heif.handle_release);
    let handle = handle.ok_or("libheif finds no picture in it")?;
    // SAFETY: the handle is alive.
    let (width, height, alpha) = unsafe {
        (
            (heif.handle_width)(handle.pointer),
            (heif.handle_height)(handle.pointer),
            (heif.has_alpha)(handle.pointer) != 0,
        )
    };
    let side = |n: c_int| u32::try_from(n).map_err(|_| "it has no size".to_string());
    let passed = check(side(width)?, side(height)?)?;
    let (colours, chroma) = match alpha {
        true => (COLOURSPACE_RGB, CHROMA_INTERLEAVED_RGBA),
        false => (COLOURSPACE_RGB, CHROMA_INTERLEAVED_RGB),
    };
    let mut image = ptr::null_mut();
    // SAFETY: the handle is alive, and the pointer has room for an image; null stands for the usual
    // options.
    unsafe { (heif.decode)(handle.pointer, &mut image, colours, chroma, ptr::null()) }.check()?;
    let image = Owned::new(image, heif.image_release).ok_or(NOTHING)?;
    Ok((pixels(heif, &image, alpha)?, passed))
}

const NOTHING: &str = "libheif decodes nothing of it";

/// A copy of the pixels of a decoded image.
fn pixels(heif: &Heif, image: &Owned, alpha: bool) -> Result<DynamicImage, String> {
    let mut stride: c_int = 0;
    // SAFETY: the image is alive; it has one interleaved plane, as was asked for.
    let (width, height, plane) = unsafe {
        (
            (heif.image_width)(image.pointer, CHANNEL_INTERLEAVED),
            (heif.image_height)(image.pointer, CHANNEL_INTERLEAVED),
            (heif.plane)(image.pointer, CHANNEL_INTERLEAVED, &mut stride),
        )
    };
    let positive = |n: c_int| usize::try_from(n).ok().filter(|n| *n > 0);
    let sides = positive(width).zip(positive(height)).zip(positive(stride));
    let ((width, height), stride) = sides.filter(|_| !plane.is_null()).ok_or(NOTHING)?;
    let row = width * if alpha { 4 } else { 3 };
    if stride < row {
        return Err("libheif decodes rows that are too short".into());
    }
    let mut pixels = Vec::with_capacity(row * height);
    for y in 0..height {
        // SAFETY: the plane has `height` rows of at least `row` bytes, `stride` bytes apart, as
        // long as the image lives.
        pixels.extend(unsafe { std::slice::from_raw_parts(plane.add(y * stride), row) });
    }
    let (width, height) = (width as u32, height as u32);
    let image = match alpha {
        true => RgbaImage::from_raw(width, height, pixels).map(DynamicImage::from),
        false => RgbImage::from_raw(width, height, pixels).map(DynamicImage::from),
    };
    image.ok_or_else(|| "libheif decodes too few pixels".into())
}

/// Gives something back to libheif.
type Release = unsafe extern "C" fn(*mut c_void);

/// What libheif gave, until it is dropped.
struct Owned {
    pointer: *mut c_void,
    release: Release,
}

impl Owned {
    /// None where it gave nothing.
    fn new(pointer: *mut c_void, release: Release) -> Option<Owned> {
        (!pointer.is_null()).then(|| Owned { pointer, release })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: libheif gave it, with this function to give it back, which is called here alone.
        unsafe { (self.release)(self.pointer) }
    }
}

/// What functions that can fail return.
#[repr(C)]
struct Status {
    code: c_int,
    subcode: c_int,
    message: *const c_char,
}

impl Status {
    fn check(self) -> Result<(), String> {
        if self.code == 0 {
            return Ok(());
        }
        if self.message.is_null() {
            return Err(format!("libheif refuses it (error {})", self.code));
        }
        // SAFETY: libheif's messages are texts with a zero at their end; this one is not null.
        let message = unsafe { CStr::from_ptr(self.message) };
        Err(format!("libheif: {}", message.to_string_lossy()))
    }
}

/// The functions that are used, as `libheif/heif.h` declares them.
struct Heif {
    context_alloc: unsafe extern "C" fn() -> *mut c_void,
    context_free: Release,
    read: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void) -> Status,
    main_picture: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> Status,
    handle_release: Release,
    handle_width: unsafe extern "C" fn(*const c_void) -> c_int,
    handle_height: unsafe extern "C" fn(*const c_void) -> c_int,
    has_alpha: unsafe extern "C" fn(*const c_void) -> c_int,
    decode: unsafe extern "C" fn(
        *const c_void,
        *mut *mut c_void,
        c_int,
        c_int,
        *const c_void,
    ) -> Status,
    image_width: unsafe extern "C" fn(*const c_void, c_int) -> c_int,
    image_height: unsafe extern "C" fn(*const c_void, c_int) -> c_int,
    plane: unsafe extern "C" fn(*const c_void, c_int, *mut c_int) -> *const u8,
    image_release: Release,
    /// Kept open as long as the process lives.
    _library: Library,
}

const COLOURSPACE_RGB: c_int = 1;
const CHROMA_INTERLEAVED_RGB: c_int = 10;
const CHROMA_INTERLEAVED_RGBA: c_int = 11;
const CHANNEL_INTERLEAVED: c_int = 10;

/// The library, opened at the first call.
fn heif() -> Option<&'static Heif> {
    static HEIF: OnceLock<Option<Heif>> = OnceLock::new();
    HEIF.get_or_init(|| NAMES.iter().find_map(|name| Heif::open(name))).as_ref()
}

impl Heif {
    fn open(name: &str) -> Option<Heif> {
        // SAFETY: opening libheif runs its own initialisation and nothing else.
        let library = unsafe { Library::new(name) }.ok()?;
        // Plugins with the decoders are looked for by this; older versions have none.
        // SAFETY: `heif_init` takes a pointer to parameters, of which null means the usual ones.
        unsafe {
            type Init = unsafe extern "C" fn(*const c_void) -> Status;
            if let Ok(init) = library.get::<Init>(b"heif_init\0") {
                init(ptr::null()).check().ok()?;
            }
        }
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field that it becomes has the type that `libheif/heif.h` declares for
                // this name.
                unsafe { *library.get(concat!($name, "\0").as_bytes()).ok()? }
            };
        }
        Some(Heif {
            context_alloc: function!("heif_context_alloc"),
            context_free: function!("heif_context_free"),
            read: function!("heif_context_read_from_memory_without_copy"),
            main_picture: function!("heif_context_get_primary_image_handle"),
            handle_release: function!("heif_image_handle_release"),
            handle_width: function!("heif_image_handle_get_width"),
            handle_height: function!("heif_image_handle_get_height"),
            has_alpha: function!("heif_image_handle_has_alpha_channel"),
            decode: function!("heif_decode_image"),
            image_width: function!("heif_image_get_width"),
            image_height: function!("heif_image_get_height"),
            plane: function!("heif_image_get_plane_readonly"),
            image_release: function!("heif_image_release"),
            _library: library,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;
    use crate::test_folder::fixture;

    /// Left half red, right half blue, 48×32, by `tools/golden/heif_fixtures.py`.
    const FILES: [&str; 2] = ["heif/halves.heic", "heif/halves.avif"];

    #[test]
    fn pictures_are_read_where_there_is_a_library() {
        let dir = tempfile::tempdir().unwrap();
        for name in FILES {
            let bytes = std::fs::read(fixture(name)).unwrap();
            assert!(is_heif(&bytes), "{name}");
            let path = dir.path().join("a");
            std::fs::write(&path, &bytes).unwrap();
            let picture = Picture::read(&path);
            if !is_here() {
                assert!(picture.unwrap_err().contains("libheif"), "{name}");
                anchorhood_testing::skip("libheif is not here");
                continue;
            }
            let picture = picture.unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(picture.height_and_width(), [32, 48]);
            let (rgb, _) = picture.pixels();
            let pixel = |x: usize| &rgb[(16 * 48 + x) * 3..][..3];
            assert!(pixel(6)[0] > 220 && pixel(6)[2] < 40, "{name}: {:?}", pixel(6));
            assert!(pixel(42)[2] > 220 && pixel(42)[0] < 40, "{name}: {:?}", pixel(42));
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            assert!(Picture::read(&path).is_err(), "{name}, half of it");
            assert!(Picture::from_bytes(&bytes).is_err(), "{name}: only files");
        }
    }

    #[test]
    fn other_files_are_no_heif() {
        for start in [&b""[..], b"\xff\xd8", b"\0\0\0\x18ftypmp42", b"....ftyp"] {
            assert!(!is_heif(start));
        }
    }
}
