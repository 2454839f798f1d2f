//! A JPEG image at an eighth of its size, without decoding it whole first (DCT scaling).
//!
//! A block's first coefficient is the mean of its 8×8 pixels, so the others are passed over, and
//! scans of a progressive file that have only others are not read. Colours that are sampled half as
//! often as brightness are means of 16×16 pixels.
//!
//! Files of brightness alone, or of brightness and two colours, with Huffman codes, are read. For
//! all others, and for any damage, the answer is none: a whole decoder then says what it thinks of
//! the file.
//!
//! Written here because `zune-jpeg` cannot scale, and `jpeg-decoder` (0.3.2, with a second decoder
//! for everything) takes 42 ms for 12 megapixels where this takes 22, and 135 where this takes 6 of
//! a progressive file. At a half or a quarter of the size there is little to be gained: decoding
//! whole takes the same time as at a half.

use super::huffman::{Bits, Huffman, Skipper};
use super::markers::{
    BASELINE, Component, EOI, EXTENDED, Frame, PROGRESSIVE, SOI, SOS, Scan, Walk,
};
use super::read_tables;

/// So many pixels in a row become one.
pub(in crate::files) const BY: usize = 8;

/// The smaller image: columns, rows and RGB bytes. A side that is no multiple is rounded up.
pub(in crate::files) type Eighth = (usize, usize, Vec<u8>);

/// Reads the file `bytes`, whose header says `frame`. None where it is not such a file, or damaged.
pub(in crate::files) fn eighth(bytes: &[u8], frame: &Frame) -> Option<Eighth> {
    let mut reader = Reader::new(frame)?;
    let mut walk = Walk::new(bytes);
    let mut frames = 0;
    loop {
        match walk.marker().ok()? {
            EOI => return reader.image(),
            0x01 | 0xD0..=0xD7 | SOI => {}
            BASELINE | EXTENDED | PROGRESSIVE => {
                frames += 1;
                (frames == 1).then_some(())?;
                walk.segment().ok()?;
            }
            0xC4 => reader.codes(walk.segment().ok()?)?,
            0xDB => read_tables(walk.segment().ok()?, &mut reader.steps),
            0xDD => {
                let interval = walk.segment().ok()?.first_chunk()?;
                reader.restart = u16::from_be_bytes(*interval).into();
            }
            // Adobe's: 1 for brightness and two colours.
            0xEE => {
                let segment = walk.segment().ok()?;
                let other = segment.starts_with(b"Adobe") && segment.get(11) != Some(&1);
                (!other || frame.components.len() == 1).then_some(())?;
            }
            SOS => {
                let scan = Scan::parse(walk.segment().ok()?)?;
                let start = walk.at;
                let end = walk.end_of_scan().ok()?;
                reader.scan(&scan, &bytes[start..end])?;
            }
            // Other ways of coding, and a height that is told later.
            0xC3 | 0xC5..=0xCF | 0xDC => return None,
            _ => _ = walk.segment().ok()?,
        }
    }
}

/// The first coefficients of a component.
struct Plane {
    component: Component,
    /// Blocks in a row, with those that reach over the edge.
    stride: usize,
    blocks: Vec<i32>,
    /// Their step of quantisation, once a scan had them.
    step: Option<u16>,
}

impl Plane {
    /// The mean of a block's pixels.
    fn value(&self, block: usize) -> u8 {
        let step = i64::from(self.step.unwrap_or(0));
        // A block is 8 times its mean, and zero is in the middle of a byte.
        ((i64::from(self.blocks[block]) * step + 8 * 128 + 4) >> 3).clamp(0, 255) as u8
    }
}

/// What a scan has of one component.
struct ScanPart<'a> {
    plane: usize,
    /// Codes of first coefficients; a scan that adds bits to them needs none.
    first: Option<&'a Huffman>,
    /// Codes of the others, where they are here.
    others: Option<(&'a Huffman, Skipper)>,
    /// Which bit of values was told before, and which is told now: four bits each.
    approximation: u8,
    /// The first coefficient of the block before.
    before: i32,
}

impl ScanPart<'_> {
    /// Reads a block. None where it makes no sense.
    #[inline(always)]
    fn read(&mut self, bits: &mut Bits, block: &mut i32) -> Option<()> {
        bits.refill();
        let (told, now) = (self.approximation >> 4, self.approximation & 15);
        if told > 0 {
            *block |= (bits.peek(1) as i32) << now;
            bits.skip(1);
            return Some(());
        }
        // It is told as its difference from the one before.
        let size = self.first?.symbol(bits).filter(|size| *size < 16)?;
        self.before = self.before.wrapping_add(bits.value(size.into()));
        *block = self.before << now;
        match &self.others {
            Some((codes, skipper)) => skipper.skip_block(codes, bits),
            None => Some(()),
        }
    }
}

struct Reader<'a> {
    frame: &'a Frame,
    planes: Vec<Plane>,
    steps: [Option<[u16; 64]>; 4],
    /// Of first coefficients, then of others.
    codes: [[Option<Huffman>; 4]; 2],
    /// Units between two restarts; 0 where there are none.
    restart: usize,
    bits: Bits,
}

impl<'a> Reader<'a> {
    fn new(frame: &'a Frame) -> Option<Self> {
        let (across, down) = frame.most_sampled();
        let components = &frame.components;
        let even =
            |most: usize, one: usize| most.is_multiple_of(one) && (most / one).is_power_of_two();
        let even = |c: &Component| even(across, c.across) && even(down, c.down);
        let rgb = components.iter().map(|c| c.number).eq(*b"RGB");
        let reads = frame.precision == 8
            && [1, 3].contains(&components.len())
            && components.iter().all(even)
            && across.max(down) <= 4
            && frame.width * frame.height > 0
            && !rgb;
        let (wide, high) = frame.units();
        let plane = |component: &Component| Plane {
            component: *component,
            stride: wide * component.across,
            blocks: vec![0; wide * component.across * high * component.down],
            step: None,
        };
        reads.then(|| Reader {
            frame,
            planes: components.iter().map(plane).collect(),
            steps: [None; 4],
            codes: Default::default(),
            restart: 0,
            bits: Bits::new(),
        })
    }

    fn codes(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((kind, rest)) = segment.split_first() {
            let tables = self.codes.get_mut(usize::from(kind >> 4))?;
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let symbols = counts.iter().map(|n| usize::from(*n)).sum();
            let (symbols, rest) = rest.split_at_checked(symbols)?;
            *tables.get_mut(usize::from(kind & 15))? = Some(Huffman::new(counts, symbols)?);
            segment = rest;
        }
        Some(())
    }

    fn scan(&mut self, scan: &Scan, coded: &[u8]) -> Option<()> {
        let progressive = self.frame.progressive;
        if progressive && scan.first > 0 {
            return Some(());
        }
        let planes = &mut self.planes;
        let mut parts = vec![];
        for [number, tables] in scan.components {
            let plane = planes.iter().position(|plane| plane.component.number == *number)?;
            let table = usize::from(planes[plane].component.table);
            planes[plane].step = Some(self.steps.get(table)?.as_ref()?[0]);
            let [first, others] = &self.codes;
            let others = others.get(usize::from(tables & 15))?.as_ref();
            parts.push(ScanPart {
                plane,
                first: first.get(usize::from(tables >> 4))?.as_ref(),
                others: match progressive {
                    true => None,
                    false => others.map(|codes| (codes, Skipper::new(codes))),
                },
                approximation: if progressive { scan.approximation } else { 0 },
                before: 0,
            });
            // Of a whole block the other coefficients are there as well.
            (progressive || others.is_some()).then_some(())?;
        }
        let mut pieces = Pieces { coded };
        let alone = match &parts[..] {
            [] => return None,
            [one] => Some(self.frame.blocks_alone(&planes[one.plane].component)),
            _ => None,
        };
        let (wide, high) = alone.unwrap_or_else(|| self.frame.units());
        for unit in 0..wide * high {
            let begins = match self.restart {
                0 => unit == 0,
                interval => unit % interval == 0,
            };
            if begins {
                (!self.bits.overran()).then_some(())?;
                self.bits.start(pieces.next()?);
                parts.iter_mut().for_each(|part| part.before = 0);
            }
            let (y, x) = (unit / wide, unit % wide);
            for part in &mut parts {
                let plane = &mut planes[part.plane];
                let (across, down) = match alone {
                    Some(_) => (1, 1),
                    None => (plane.component.across, plane.component.down),
                };
                for block in 0..across * down {
                    let (y, x) = (y * down + block / across, x * across + block % across);
                    let block = plane.blocks.get_mut(y * plane.stride + x)?;
                    part.read(&mut self.bits, block)?;
                }
            }
        }
        (!self.bits.overran()).then_some(())
    }

    fn image(self) -> Option<Eighth> {
        self.planes.iter().all(|plane| plane.step.is_some()).then_some(())?;
        let (width, height) = (self.frame.width.div_ceil(BY), self.frame.height.div_ceil(BY));
        let (across, down) = self.frame.most_sampled();
        let mut rgb = vec![[0; 3]; width * height];
        for (i, pixel) in rgb.iter_mut().enumerate() {
            let (y, x) = (i / width, i % width);
            let value = |plane: &Plane| {
                let Component { across: c, down: d, .. } = plane.component;
                plane.value(y / (down / d) * plane.stride + x / (across / c))
            };
            *pixel = match &self.planes[..] {
                [light, blue, red] => to_rgb(value(light), value(blue), value(red)),
                planes => [value(&planes[0]); 3],
            };
        }
        Some((width, height, rgb.into_flattened()))
    }
}

/// The bytes of a scan between restarts.
struct Pieces<'a> {
    coded: &'a [u8],
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.coded.is_empty() {
            return None;
        }
        let restart = |at: &usize| matches!(self.coded.get(at + 1), Some(0xD0..=0xD7));
        let end = memchr::memchr_iter(0xFF, self.coded).find(restart);
        let end = end.unwrap_or(self.coded.len());
        let piece = &self.coded[..end];
        self.coded = self.coded.get(end + 2..).unwrap_or_default();
        Some(piece)
    }
}

/// ITU-R BT.601, as JFIF has it, in 65536ths.
#[inline(always)]
fn to_rgb(light: u8, blue: u8, red: u8) -> [u8; 3] {
    let light = (i32::from(light) << 16) + (1 << 15);
    let (blue, red) = (i32::from(blue) - 128, i32::from(red) - 128);
    let sums = [light + 91_881 * red, light - 22_554 * blue - 46_802 * red, light + 116_130 * blue];
    sums.map(|sum| (sum >> 16).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;
    use crate::files::jpeg::check_whole;
    use crate::test_folder::jpeg;

    /// Images of 203×131 by `tools/golden/jpeg_fixtures.py`, smooth enough that colours sampled
    /// half as often lose nothing.
    const FILES: [&str; 6] = ["444", "422", "420", "restarts", "grey", "progressive"];

    fn read(bytes: &[u8]) -> Option<Eighth> {
        eighth(bytes, &check_whole(bytes).ok()??)
    }

    /// Mean of the pixels that become pixel (`y`, `x`), by the whole decoder, of those within the
    /// image.
    fn mean(whole: &Picture, y: usize, x: usize) -> [f64; 3] {
        let (rgb, [height, width]) = whole.pixels();
        let (height, width) = (height as usize, width as usize);
        let mut sums = [0.0; 4];
        for y in y * BY..((y + 1) * BY).min(height) {
            for x in x * BY..((x + 1) * BY).min(width) {
                let pixel = &rgb[(y * width + x) * 3..][..3];
                (0..3).for_each(|c| sums[c] += f64::from(pixel[c]));
                sums[3] += 1.0;
            }
        }
        [0, 1, 2].map(|c| sums[c] / sums[3])
    }

    #[test]
    fn each_pixel_is_the_mean_of_those_of_the_whole_image() {
        for name in FILES {
            let bytes = jpeg(&format!("smooth-{name}"));
            let whole = Picture::from_bytes(&bytes).unwrap();
            let (width, height, rgb) = read(&bytes).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((width, height), (203_usize.div_ceil(BY), 131_usize.div_ceil(BY)));
            let (mut sum, mut worst) = (0.0, 0.0_f64);
            // Without the last column and row, which have what the encoder put beyond the edge.
            for (y, x) in (0..height - 1).flat_map(|y| (0..width - 1).map(move |x| (y, x))) {
                let expected = mean(&whole, y, x);
                for c in 0..3 {
                    let error = (f64::from(rgb[(y * width + x) * 3 + c]) - expected[c]).abs();
                    (sum, worst) = (sum + error, worst.max(error));
                }
            }
            let average = sum / ((height - 1) * (width - 1) * 3) as f64;
            // Colours are means of twice as many columns, or rows and columns, where they are
            // sampled half as often.
            let (most, most_average) = match name {
                "444" | "grey" => (5.0, 1.0),
                _ => (20.0, 4.0),
            };
            assert!(worst < most && average < most_average, "{name}: {worst} {average}");
        }
    }

    #[test]
    fn other_kinds_are_left_to_the_whole_decoder() {
        assert!(read(&jpeg("cmyk")).is_none());
    }
}
