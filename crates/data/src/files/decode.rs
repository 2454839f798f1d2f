//! One picture file to squares of RGB bytes.
//!
//! The format is told by the file's content, not its name. Grey, palette and 16-bit pictures become
//! 8-bit RGB; what is transparent shows white, as on a page; the camera's orientation is undone; of
//! an animation the first frame counts. Whatever the file holds, the answer is pixels or a reason:
//! sizes are checked before memory is taken, what is cut off is noticed, and a decoder that panics
//! is caught. Large pictures are decoded one after the other, where memory for several at once is
//! short. A large JPEG that is only to become a small square is [read at an
//! eighth of its size](super::jpeg).

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

use anchorhood_storage::{Checksum, checksum, open_regular, take_at_most};
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use super::ImageFormat as Format;
use super::archive;
use super::heif;
use super::jpeg::{self, Frame};
use super::semaphore::{Permit, Semaphore};
use crate::resize::{Extent, to_rectangle, to_square_by};
use crate::{Squaring, encode, memory};

/// Larger pictures are skipped: 100 megapixels.
const MOST_PIXELS: u64 = 100_000_000;
/// What a decoder may allocate: such a picture with 16-bit RGBA, and some room.
const MOST_BYTES: u64 = 1 << 30;
/// Why a pipe, a device or a folder is no picture.
const NO_FILE: &str = "it is not a regular file";

/// Decodes the file at `path` into `out`, `size`×`size`×3.
pub(crate) fn decode(path: &Path, size: usize, out: &mut [u8]) -> Result<(), String> {
    Picture::read_for(path, size, |picture| picture.square(size, out))
}

/// Shorter sides are not read smaller than this, so that squares of all usual sizes are cut from
/// the same pixels.
const LEAST_SIDE: usize = 256;

/// Pixels of the shorter side from which squares of `side` pixels are cut: half as many again,
/// since pixels of a picture that was read smaller are means over boxes, and a square's are means
/// over triangles.
fn enough(side: usize) -> usize {
    LEAST_SIDE.max(side + side / 2)
}

/// A decoded picture, from which squares of any size are cut. Errors are reasons: "the file is
/// empty".
#[derive(Clone, Debug)]
pub struct Picture {
    rgb: RgbImage,
    orientation: Orientation,
    /// Columns and rows as they lie in the file, and how many of them are one of `rgb`.
    whole: [u32; 2],
    shrunk_by: u32,
}

impl Picture {
    /// From its pixels: rows of RGB bytes, top first.
    pub fn from_rgb(width: u32, height: u32, rgb: Vec<u8>) -> Result<Picture, String> {
        encode::check(width, height, &rgb)?;
        let rgb = RgbImage::from_raw(width, height, rgb).expect("measured above");
        Ok(Picture::whole(rgb, Orientation::NoTransforms))
    }

    fn whole(rgb: RgbImage, orientation: Orientation) -> Picture {
        Picture { whole: [rgb.width(), rgb.height()], rgb, orientation, shrunk_by: 1 }
    }

    /// Reads a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Picture, String> {
        Ok(read_file(path.as_ref(), None)?.0)
    }

    /// Reads a file for what is made of the picture, squares of at most `side` pixels, and lets go
    /// of it. A large JPEG is not decoded whole for that. Until it is let go its memory counts
    /// among that of all decoders, so that threads that read at the same time do not need too much
    /// together. Nothing else may be read in `make`.
    pub fn read_for<T>(
        path: impl AsRef<Path>,
        side: usize,
        make: impl FnOnce(&Picture) -> Result<T, String>,
    ) -> Result<T, String> {
        let (picture, _permit) = read_file(path.as_ref(), Some(side))?;
        make(&picture)
    }

    /// The same of a part of an open file: all of it, or the bytes of a member of an archive.
    pub fn read_part_for<T>(
        file: File,
        part: Range<u64>,
        side: usize,
        make: impl FnOnce(&Picture) -> Result<T, String>,
    ) -> Result<T, String> {
        let (picture, _permit) = read_part(file, part, Some(side))?;
        make(&picture)
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Picture, String> {
        from_bytes(bytes, None)
    }

    /// Reads the bytes of a file for squares of at most `side` pixels: what [`Picture::read_for`]
    /// reads.
    pub fn from_bytes_for(bytes: &[u8], side: usize) -> Result<Picture, String> {
        from_bytes(bytes, Some(side))
    }

    /// Columns and rows that the header of a file promises, as they lie in it; nothing is decoded.
    pub fn promised(bytes: &[u8]) -> Option<[u32; 2]> {
        let read = || {
            let source: &mut dyn Source = &mut Cursor::new(bytes);
            let reader = ImageReader::new(source).with_guessed_format();
            let reader = reader.map_err(|e| e.to_string())?;
            reader.into_dimensions().map_err(|e| e.to_string())
        };
        caught(read).ok().map(<[u32; 2]>::from)
    }

    /// Rows and columns of the whole picture, the right way up.
    pub fn height_and_width(&self) -> [u32; 2] {
        let [width, height] = self.whole;
        if self.lies_on_its_side() { [width, height] } else { [height, width] }
    }

    /// Its bytes, and their rows and columns.
    #[cfg(test)]
    pub(crate) fn pixels(&self) -> (&[u8], [u32; 2]) {
        (self.rgb.as_raw(), [self.rgb.height(), self.rgb.width()])
    }

    /// A checksum of its pixels, the right way up, and their rows and columns. Two pictures that
    /// were read whole have the same one where every pixel of them is the same.
    pub fn checksum(&self) -> Checksum {
        let [height, width] = self.height_and_width();
        let upright = match self.orientation {
            Orientation::NoTransforms => None,
            _ => {
                let mut turned = DynamicImage::ImageRgb8(self.rgb.clone());
                turned.apply_orientation(self.orientation);
                Some(turned)
            }
        };
        let pixels = upright.as_ref().map_or(self.rgb.as_raw().as_slice(), |t| t.as_bytes());
        checksum(pixels) ^ (u128::from(height) << 32 | u128::from(width))
    }

    /// Whether all of its pixels were read, and not means of several ([`Picture::read_for`]).
    pub fn is_whole(&self) -> bool {
        self.shrunk_by == 1
    }

    /// The picture, the right way up, shrunk or grown so that its longer side has `side` pixels:
    /// rows, columns, RGB bytes. A shape that whole pixels cannot have costs a part of a pixel at
    /// the edges; sides are at least an eighth of `side`.
    pub fn within(&self, side: usize) -> Result<([usize; 2], Vec<u8>), String> {
        let [height, width] = self.height_and_width().map(f64::from);
        let scale = side as f64 / height.max(width);
        self.scaled(scale, side / 8)
    }

    /// The picture, the right way up, its sides so many times as long and at least `least`.
    fn scaled(&self, scale: f64, least: usize) -> Result<([usize; 2], Vec<u8>), String> {
        let pixels = |side: u32| ((f64::from(side) * scale).round() as usize).max(least).max(1);
        let to = self.height_and_width().map(pixels);
        let mut out = vec![0; to[0] * to[1] * 3];
        self.shrunk(to, &mut out)?;
        Ok((to, out))
    }

    /// Fills `out` (`size`×`size`×3) with the centre of the picture, the shorter side whole, the
    /// right way up: what a network of that size sees.
    pub fn square(&self, size: usize, out: &mut [u8]) -> Result<(), String> {
        self.shrunk([size, size], out)
    }

    /// Fills `out` with the square of the picture, the right way up, that a network sees which is
    /// given pictures in this way. An error where what is to be cut out is larger than the resized
    /// picture.
    pub fn square_by(&self, by: Squaring, out: &mut [u8]) -> Result<(), String> {
        let reversed = reversed(self.orientation);
        to_square_by(self.rgb.as_raw(), self.extents(), by, reversed, out)?;
        turn([by.size, by.size], self.orientation, out);
        Ok(())
    }

    /// Rows and columns as they lie in the file, of the pixels that there are.
    fn extents(&self) -> [Extent; 2] {
        let extent = |pixels: u32, whole: u32| Extent {
            pixels: pixels as usize,
            seen: f64::from(whole) / f64::from(self.shrunk_by),
        };
        let [width, height] = self.whole;
        [extent(self.rgb.height(), height), extent(self.rgb.width(), width)]
    }

    /// Rows, columns and RGB bytes of the whole picture, the right way up, its longer side at most
    /// `longest` pixels and never more than were read.
    pub fn fitted(&self, longest: usize) -> Result<([usize; 2], Vec<u8>), String> {
        let [height, width] = self.height_and_width().map(f64::from);
        let scale =
            (longest.max(1) as f64 / height.max(width)).min(1.0 / f64::from(self.shrunk_by));
        self.scaled(scale, 1)
    }

    /// Fills `out` with so many rows and columns of the largest part around the centre that has
    /// this shape, the right way up.
    pub(crate) fn shrunk(&self, to: [usize; 2], out: &mut [u8]) -> Result<(), String> {
        let [rows, columns] = to;
        let as_it_lies = if self.lies_on_its_side() { [columns, rows] } else { to };
        to_rectangle(self.rgb.as_raw(), self.extents(), as_it_lies, out)?;
        turn(as_it_lies, self.orientation, out);
        Ok(())
    }

    fn lies_on_its_side(&self) -> bool {
        match self.orientation {
            Orientation::NoTransforms
            | Orientation::Rotate180
            | Orientation::FlipHorizontal
            | Orientation::FlipVertical => false,
            Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH => true,
        }
    }
}

/// A picture, and the right to the memory that it takes.
type Held = (Picture, Permit<'static>);

fn from_bytes(bytes: &[u8], side: Option<usize>) -> Result<Picture, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    Ok(caught(|| read_from(&mut Cursor::new(bytes), side))?.0)
}

/// For squares of `side` pixels, or whole.
fn read_file(path: &Path, side: Option<usize>) -> Result<Held, String> {
    let file = match open_regular(path) {
        Err(e) if e.kind() == ErrorKind::NotADirectory => return read_member(path, side, &e),
        Err(e) if e.kind() == ErrorKind::InvalidInput => return Err(NO_FILE.into()),
        opened => opened.map_err(|e| e.to_string())?,
    };
    read_source(BufReader::new(file), side)
}

fn read_part(mut file: File, part: Range<u64>, side: Option<usize>) -> Result<Held, String> {
    let said = |e: Error| e.to_string();
    file.seek(SeekFrom::Start(part.start)).map_err(said)?;
    let whole = 0..file.metadata().map_err(said)?.len();
    match (part.is_empty(), part == whole) {
        (true, _) => Err("the file is empty".into()),
        (false, true) => read_source(BufReader::new(file), side),
        (false, false) => {
            let part = &mut file.take(part.end - part.start);
            let bytes = take_at_most(part, MOST_BYTES).map_err(said)?;
            read_source(Cursor::new(bytes), side)
        }
    }
}

fn read_source(mut source: impl Source, side: Option<usize>) -> Result<Held, String> {
    let first = source.fill_buf().map_err(|e| e.to_string())?;
    if first.is_empty() {
        return Err("the file is empty".into());
    }
    match heif::is_heif(first) {
        true => read_heif(&take_at_most(&mut source, MOST_BYTES).map_err(|e| e.to_string())?),
        false => caught(|| read_from(&mut source, side)),
    }
}

/// A picture in an archive; `error` says what the system thinks of the path.
fn read_member(path: &Path, side: Option<usize>, error: &Error) -> Result<Held, String> {
    let (archive, member) = archive::find(path).ok_or_else(|| error.to_string())?;
    let bytes = archive::read(&archive, &member, MOST_BYTES).map_err(|e| e.to_string())?;
    read_source(Cursor::new(bytes), side)
}

/// As its components, as RGB and as what it becomes.
const BYTES_OF_HEIF: u64 = 12;

fn read_heif(bytes: &[u8]) -> Result<Held, String> {
    let (picture, permit) =
        heif::decode(bytes, |width, height| admitted([width, height], BYTES_OF_HEIF))?;
    let orientation = Orientation::NoTransforms;
    Ok((Picture::whole(over_white(picture), orientation), permit))
}

/// Decoders are other people's code on strangers' files; nothing of ours is left half-done when
/// they panic.
fn caught<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let result = catch_unwind(AssertUnwindSafe(read));
    result.unwrap_or_else(|_| Err("its decoder failed".into()))
}

/// Where bytes come from. Decoders are generic code: by this one type they are compiled once.
trait Source: BufRead + Seek {}
impl<T: BufRead + Seek> Source for T {}

fn read_from(source: &mut dyn Source, side: Option<usize>) -> Result<Held, String> {
    // Opened without its name, which would count where the content is unknown.
    let reader = ImageReader::new(source).with_guessed_format();
    let reader = reader.map_err(|e| e.to_string())?;
    match reader.format() {
        None => Err(format!("it is not a {} picture", Format::names())),
        // Only files are read by the library for them.
        Some(ImageFormat::Avif) => Err("HEIC and AVIF pictures are read from files alone".into()),
        Some(ImageFormat::Jpeg) => {
            // Its decoder wants all bytes at once.
            let bytes = take_at_most(reader.into_inner(), MOST_BYTES).map_err(|e| e.to_string())?;
            let frame = jpeg::check_whole(&bytes)?;
            if let (Some(frame), Some(side)) = (frame, side)
                && let Some(held) = read_small(&bytes, &frame, side)?
            {
                return Ok(held);
            }
            let source: &mut dyn Source = &mut Cursor::new(bytes);
            decoded(ImageReader::with_format(source, ImageFormat::Jpeg), ImageFormat::Jpeg)
        }
        Some(format) => decoded(reader, format),
    }
}

/// Waits until there is memory for a picture, if one of its size is read at all.
fn admitted(size: [u32; 2], bytes_of_pixel: u64) -> Result<Permit<'static>, String> {
    check_size(size)?;
    let needed = u64::from(size[0]) * u64::from(size[1]) * bytes_of_pixel;
    let permit = semaphore().acquire(needed);
    check_room(needed)?;
    Ok(permit)
}

/// A large JPEG in fewer pixels, enough for squares of `side`; none where the whole has to be
/// decoded for them.
fn read_small(bytes: &[u8], frame: &Frame, side: usize) -> Result<Option<Held>, String> {
    if frame.width.min(frame.height) / jpeg::BY < enough(side) {
        return Ok(None);
    }
    let whole = [frame.width as u32, frame.height as u32];
    check_size(whole)?;
    // Four bytes for a block of each component, and RGB; colours may have as many blocks as
    // brightness.
    let needed = u64::from(whole[0]) * u64::from(whole[1]) * 15 / (jpeg::BY * jpeg::BY) as u64;
    let permit = semaphore().acquire(needed);
    check_room(needed)?;
    let Some((width, height, rgb)) = jpeg::eighth(bytes, frame) else {
        return Ok(None);
    };
    let picture = Picture {
        rgb: RgbImage::from_raw(width as u32, height as u32, rgb).expect("so many pixels"),
        orientation: jpeg::orientation(bytes),
        whole,
        shrunk_by: jpeg::BY as u32,
    };
    Ok(Some((picture, permit)))
}

fn check_size([width, height]: [u32; 2]) -> Result<(), String> {
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!("{width}×{height} is more than 100 megapixels"));
    }
    if width == 0 || height == 0 {
        return Err("it has no pixels".into());
    }
    Ok(())
}

fn decoded(mut reader: ImageReader<&mut dyn Source>, format: ImageFormat) -> Result<Held, String> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|e| e.to_string())?;
    let (width, height) = decoder.dimensions();
    let bytes_of_pixel = bytes_of_pixel(format, decoder.color_type());
    let permit = admitted([width, height], bytes_of_pixel)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(|e| e.to_string())?;
    Ok((Picture::whole(over_white(picture), orientation), permit))
}

/// What all decoders of the process share.
fn semaphore() -> &'static Semaphore {
    static ALL: OnceLock<Semaphore> = OnceLock::new();
    ALL.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Semaphore::new(memory::for_decoding(), cores)
    })
}

/// Bytes that a pixel takes at most while it is decoded: as it comes, beside what its decoder
/// keeps, and what it becomes.
fn bytes_of_pixel(format: ImageFormat, colour: ColorType) -> u64 {
    let kept = Format::of(format).map_or(0, |format| format.kept_bytes_per_pixel);
    let becomes = match colour {
        ColorType::Rgb8 => 0,
        _ => 4,
    };
    u64::from(colour.bytes_per_pixel()) + kept + becomes
}

/// Decoders end the process where they get no memory, so it is asked for before them.
fn check_room(bytes: u64) -> Result<(), String> {
    let mut room = Vec::<u8>::new();
    let got = usize::try_from(bytes).is_ok_and(|n| room.try_reserve_exact(n).is_ok());
    std::hint::black_box(room); // what nobody uses would not be asked for
    if got {
        Ok(())
    } else {
        Err(format!("decoding it takes {} MB of memory, which are not there", bytes / 1_000_000))
    }
}

/// Of rows and of columns as they lie in the file, whether the last is the first of the picture the
/// right way up.
fn reversed(orientation: Orientation) -> [bool; 2] {
    match orientation {
        Orientation::NoTransforms | Orientation::Rotate90FlipH => [false, false],
        Orientation::Rotate180 | Orientation::Rotate270FlipH => [true, true],
        Orientation::FlipVertical | Orientation::Rotate90 => [true, false],
        Orientation::FlipHorizontal | Orientation::Rotate270 => [false, true],
    }
}

/// The part's centre is the picture's, so turning it after resizing is the same as before, and
/// cheap.
fn turn([rows, columns]: [usize; 2], orientation: Orientation, out: &mut [u8]) {
    if orientation == Orientation::NoTransforms {
        return;
    }
    if let Some(part) = RgbImage::from_raw(columns as u32, rows as u32, out.to_vec()) {
        let mut part = DynamicImage::ImageRgb8(part);
        part.apply_orientation(orientation);
        out.copy_from_slice(part.as_bytes());
    }
}

/// Whatever a decoder gives as RGB of eight bits, what shines through laid over white.
fn over_white(image: DynamicImage) -> RgbImage {
    let (width, height) = (image.width(), image.height());
    let rgb: Vec<[u8; 3]> = match image {
        // 73 ms for 12 megapixels by `image`, twice what decoding a grey JPEG takes.
        DynamicImage::ImageLuma8(grey) => grey.iter().map(|v| [*v; 3]).collect(),
        image if image.color().has_alpha() => {
            let over = |value: u8, alpha: u8| {
                let (value, alpha) = (u32::from(value), u32::from(alpha));
                ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
            };
            let rgba = image.into_rgba8();
            let (pixels, _) = rgba.as_chunks::<4>();
            pixels.iter().map(|[r, g, b, a]| [r, g, b].map(|v| over(*v, *a))).collect()
        }
        image => return image.into_rgb8(),
    };
    RgbImage::from_raw(width, height, rgb.into_flattened()).expect("three bytes for each pixel")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interpolation, Resize};

    /// An odd border is not cut evenly: however a picture lies in its file, the same pixels are cut
    /// off.
    #[test]
    fn a_turned_picture_becomes_the_square_of_the_upright_one() {
        let noise = |x: u32, y: u32| image::Rgb([x * 31 + y, y * 17, x * y].map(|v| v as u8));
        let lying = RgbImage::from_fn(23, 34, noise);
        for exif in 1..=8 {
            let orientation = Orientation::from_exif(exif).unwrap();
            let mut upright = DynamicImage::ImageRgb8(lying.clone());
            upright.apply_orientation(orientation);
            let upright = Picture::whole(upright.into_rgb8(), Orientation::NoTransforms);
            let by = Squaring {
                size: 16,
                resize: Resize::ShorterSide(23),
                interpolation: Interpolation::Bicubic,
            };
            let square = |picture: &Picture| {
                let mut out = vec![0; 16 * 16 * 3];
                picture.square_by(by, &mut out).unwrap();
                out
            };
            let turned = Picture::whole(lying.clone(), orientation);
            assert_eq!(square(&turned), square(&upright), "{exif}");
        }
    }

    /// What `image` makes of them, and what is transparent over white.
    #[test]
    fn greys_and_transparent_pixels_become_rgb() {
        let noise = |x: u32, y: u32| image::LumaA([(x * 31 + y) as u8, (x * y + 7) as u8]);
        let deep = DynamicImage::from(image::GrayAlphaImage::from_fn(23, 19, noise));
        for opaque in [deep.to_luma8().into(), deep.to_luma16().into(), deep.to_rgb16().into()] {
            let opaque: DynamicImage = opaque;
            assert_eq!(over_white(opaque.clone()), opaque.into_rgb8());
        }
        for image in [deep.clone(), deep.to_rgba8().into(), deep.to_rgba16().into()] {
            let expected = RgbImage::from_fn(23, 19, |x, y| {
                let image::LumaA([value, alpha]) = noise(x, y);
                let (value, alpha) = (f64::from(value), f64::from(alpha) / 255.0);
                image::Rgb([(value * alpha + 255.0 * (1.0 - alpha)).round() as u8; 3])
            });
            assert_eq!(over_white(image), expected);
        }
    }
}
