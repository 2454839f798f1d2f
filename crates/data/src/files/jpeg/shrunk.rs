//! A JPEG picture at a half, a quarter or an eighth of its size, without decoding it whole first
//! (DCT scaling).
//!
//! Each pixel is the mean of 2×2, 4×4 or 8×8 pixels of the whole picture, taken from the
//! coefficients ([`super::means`]). At an eighth no other coefficient than a block's first is
//! needed: the others are passed over, and scans of a progressive file that have only others are
//! not read. Colours that are sampled less often than brightness are shrunk less.
//!
//! Files of brightness alone, or of brightness and two colours, with Huffman codes, are read; a
//! progressive one at an eighth alone. For all others, and for any damage, the answer is none: a
//! whole decoder then says what it thinks of the file.

use super::blocks::{ScanPart, Told};
use super::huffman::{Bits, Huffman, Skipper};
use super::markers::{
    BASELINE, Component, EOI, EXTENDED, Frame, PROGRESSIVE, SOI, SOS, Scan, Walk,
};
use super::means::Waves;
use super::plane::Plane;

/// How much smaller a picture is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) enum Shrink {
    /// 2×2 pixels become one.
    Half,
    /// 4×4 pixels become one.
    Quarter,
    /// 8×8 pixels become one.
    Eighth,
}

impl Shrink {
    /// The strongest first.
    pub const ALL: [Shrink; 3] = [Shrink::Eighth, Shrink::Quarter, Shrink::Half];

    /// So many pixels in a row become one.
    pub fn by(self) -> usize {
        match self {
            Shrink::Half => 2,
            Shrink::Quarter => 4,
            Shrink::Eighth => 8,
        }
    }

    /// The strongest that leaves at least `least` pixels of the shorter side; none if even half is
    /// too few, or the picture cannot be read so.
    pub fn choose(frame: &Frame, least: usize) -> Option<Shrink> {
        let side = frame.width.min(frame.height);
        let leaves_enough = |shrink: &Shrink| {
            let reads = !frame.progressive || *shrink == Shrink::Eighth;
            reads && side / shrink.by() >= least
        };
        Shrink::ALL.into_iter().find(leaves_enough)
    }
}

/// The smaller picture: columns, rows and RGB bytes. A side that is no multiple is rounded up.
pub(in crate::files) type Shrunk = (usize, usize, Vec<u8>);

/// Reads the file `bytes`, whose header says `frame`. None where it is not such a file, or damaged.
pub(in crate::files) fn shrunk(bytes: &[u8], frame: &Frame, shrink: Shrink) -> Option<Shrunk> {
    let mut reader = Reader::new(frame, shrink)?;
    let mut walk = Walk::new(bytes);
    let mut frames = 0;
    loop {
        match walk.marker().ok()? {
            EOI => return reader.picture(),
            0x01 | 0xD0..=0xD7 | SOI => {}
            BASELINE | EXTENDED | PROGRESSIVE => {
                frames += 1;
                (frames == 1).then_some(())?;
                walk.segment().ok()?;
            }
            0xC4 => reader.codes(walk.segment().ok()?)?,
            0xDB => reader.quantisation(walk.segment().ok()?)?,
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

struct Reader<'a> {
    frame: &'a Frame,
    shrink: Shrink,
    planes: Vec<Plane>,
    steps: [Option<[u16; 64]>; 4],
    /// Of first coefficients, then of others.
    codes: [[Option<Huffman>; 4]; 2],
    /// Units between two restarts; 0 where there are none.
    restart: usize,
    bits: Bits,
}

impl<'a> Reader<'a> {
    fn new(frame: &'a Frame, shrink: Shrink) -> Option<Self> {
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
            && !rgb
            && (!frame.progressive || shrink == Shrink::Eighth);
        let plane = |component: &Component| Plane::new(frame, *component, shrink);
        reads.then(|| Reader {
            frame,
            shrink,
            planes: components.iter().map(plane).collect(),
            steps: [None; 4],
            codes: Default::default(),
            restart: 0,
            bits: Bits::new(),
        })
    }

    fn quantisation(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((kind, rest)) = segment.split_first() {
            let table = self.steps.get_mut(usize::from(kind & 15))?;
            let long = kind >> 4 != 0;
            let (bytes, rest) = rest.split_at_checked(64 << u8::from(long))?;
            *table = Some(std::array::from_fn(|k| match long {
                true => u16::from_be_bytes([bytes[2 * k], bytes[2 * k + 1]]),
                false => bytes[k].into(),
            }));
            segment = rest;
        }
        Some(())
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
        if self.frame.progressive && scan.first > 0 {
            return Some(());
        }
        let mut parts = vec![];
        for [number, tables] in scan.components {
            let of = |plane: &Plane| plane.component.number == *number;
            let plane = self.planes.iter().position(of)?;
            let component = self.planes[plane].component;
            let steps = self.steps.get(usize::from(component.table))?.as_ref()?;
            let [first, others] = &self.codes;
            let others = others.get(usize::from(tables & 15))?.as_ref();
            let told = match (self.frame.progressive, self.planes[plane].side) {
                (true, _) => Told::First(Waves::new(steps), scan.approximation),
                (false, 1) => Told::Mean(Waves::new(steps), Skipper::new(others?)),
                (false, 2) => Told::Means4(Box::new(Waves::new(steps))),
                (false, 4) => Told::Means16(Box::new(Waves::new(steps))),
                (false, _) => Told::Means64(Box::new(Waves::new(steps))),
            };
            parts.push(ScanPart {
                plane,
                first: first.get(usize::from(tables >> 4))?.as_ref(),
                others,
                told,
                before: 0,
            });
            self.planes[plane].seen = true;
        }
        let planes = &mut self.planes;
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
                    part.block(&mut self.bits, plane, y, x)?;
                }
            }
        }
        (!self.bits.overran()).then_some(())
    }

    fn picture(self) -> Option<Shrunk> {
        self.planes.iter().all(|plane| plane.seen).then_some(())?;
        let by = self.shrink.by();
        let (width, height) = (self.frame.width.div_ceil(by), self.frame.height.div_ceil(by));
        let mut rgb = vec![0; width * height * 3];
        for (y, row) in rgb.chunks_exact_mut(width * 3).enumerate() {
            self.fill_row(y, row.as_chunks_mut().0);
        }
        Some((width, height, rgb))
    }

    fn fill_row(&self, y: usize, row: &mut [[u8; 3]]) {
        let most = self.frame.most_sampled();
        let brightest = 8 / self.shrink.by();
        // The values of a row, and how many pixels each stands for.
        let of_row = |plane: &'_ Plane| {
            let (c, side) = (&plane.component, plane.side);
            let (across, down) =
                (most.0 / c.across * brightest / side, most.1 / c.down * brightest / side);
            (y / down * plane.stride, across)
        };
        let (light, each) = of_row(&self.planes[0]);
        let light = &self.planes[0].values[light..];
        let [_, blue_plane, red_plane] = &self.planes[..] else {
            for (pixel, light) in row.iter_mut().zip(light) {
                *pixel = [*light; 3];
            }
            return;
        };
        let (blue, each_blue) = of_row(blue_plane);
        let (red, each_red) = of_row(red_plane);
        let (blue, red) = (&blue_plane.values[blue..], &red_plane.values[red..]);
        for (x, pixel) in row.iter_mut().enumerate() {
            *pixel = to_rgb(light[x / each], blue[x / each_blue], red[x / each_red]);
        }
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

    /// Pictures of 203×131 by `tools/golden/jpeg_fixtures.py`, smooth enough that colours sampled
    /// half as often lose nothing.
    const FILES: [(&str, &[u8]); 6] = [
        ("444", include_bytes!("../../../tests/fixtures/jpeg/smooth-444.jpg")),
        ("422", include_bytes!("../../../tests/fixtures/jpeg/smooth-422.jpg")),
        ("420", include_bytes!("../../../tests/fixtures/jpeg/smooth-420.jpg")),
        ("restarts", include_bytes!("../../../tests/fixtures/jpeg/smooth-restarts.jpg")),
        ("grey", include_bytes!("../../../tests/fixtures/jpeg/smooth-grey.jpg")),
        ("progressive", include_bytes!("../../../tests/fixtures/jpeg/smooth-progressive.jpg")),
    ];

    fn read(bytes: &[u8], shrink: Shrink) -> Option<Shrunk> {
        let frame = check_whole(bytes).ok()??;
        shrunk(bytes, &frame, shrink)
    }

    /// Mean of the pixels that become pixel (`y`, `x`), by the whole decoder, of those within the
    /// picture.
    fn mean(whole: &Picture, by: usize, y: usize, x: usize) -> [f64; 3] {
        let (rgb, [height, width]) = whole.pixels();
        let (height, width) = (height as usize, width as usize);
        let mut sums = [0.0; 4];
        for y in y * by..((y + 1) * by).min(height) {
            for x in x * by..((x + 1) * by).min(width) {
                let pixel = &rgb[(y * width + x) * 3..][..3];
                (0..3).for_each(|c| sums[c] += f64::from(pixel[c]));
                sums[3] += 1.0;
            }
        }
        [0, 1, 2].map(|c| sums[c] / sums[3])
    }

    #[test]
    fn each_pixel_is_the_mean_of_those_of_the_whole_picture() {
        for (name, bytes) in FILES {
            let whole = Picture::from_bytes(bytes).unwrap();
            for shrink in Shrink::ALL {
                let Some((width, height, rgb)) = read(bytes, shrink) else {
                    assert!(name == "progressive" && shrink != Shrink::Eighth, "{name}");
                    continue;
                };
                let by = shrink.by();
                assert_eq!((width, height), (203_usize.div_ceil(by), 131_usize.div_ceil(by)));
                let (mut sum, mut worst) = (0.0, 0.0_f64);
                // Without the last column and row, which have what the encoder put beyond the edge.
                for (y, x) in (0..height - 1).flat_map(|y| (0..width - 1).map(move |x| (y, x))) {
                    let expected = mean(&whole, by, y, x);
                    for c in 0..3 {
                        let error = (f64::from(rgb[(y * width + x) * 3 + c]) - expected[c]).abs();
                        (sum, worst) = (sum + error, worst.max(error));
                    }
                }
                let average = sum / ((height - 1) * (width - 1) * 3) as f64;
                // Colours are means of 16×16 pixels in a progressive file, of twice as many columns
                // as rows in another.
                let (most, most_average) = match name {
                    "progressive" => (20.0, 4.0),
                    "422" => (16.0, 3.0),
                    _ => (5.0, 1.0),
                };
                assert!(
                    worst < most && average < most_average,
                    "{name} {shrink:?}: {worst} {average}"
                );
            }
        }
    }

    #[test]
    fn the_strongest_that_leaves_enough() {
        let frame = |width, height, progressive| Frame {
            progressive,
            precision: 8,
            height,
            width,
            components: vec![],
        };
        let choose = |side, least| Shrink::choose(&frame(side, side + 9, false), least);
        assert_eq!(choose(3000, 256), Some(Shrink::Eighth));
        assert_eq!(choose(2047, 256), Some(Shrink::Quarter));
        assert_eq!(choose(600, 256), Some(Shrink::Half));
        assert_eq!(choose(511, 256), None);
        assert_eq!(Shrink::choose(&frame(3000, 2000, true), 256), None);
        assert_eq!(Shrink::choose(&frame(3000, 2100, true), 256), Some(Shrink::Eighth));
    }

    /// What is not read so is left to the whole decoder, and nothing panics.
    #[test]
    fn other_kinds_and_damage_are_left_to_others() {
        let cmyk = include_bytes!("../../../tests/fixtures/jpeg/cmyk.jpg");
        assert!(read(cmyk, Shrink::Eighth).is_none());
        let mut refused = 0;
        for (_, bytes) in FILES {
            for at in (2..bytes.len()).step_by(29) {
                for bit in [0, 7] {
                    let mut damaged = bytes.to_vec();
                    damaged[at] ^= 1 << bit;
                    refused += Shrink::ALL.iter().filter(|s| read(&damaged, **s).is_none()).count();
                }
            }
        }
        assert!(refused > 200, "{refused}");
    }

    /// `ANCHORHOOD_JPEG=file cargo test -p anchorhood-data --release --lib shrunk -- --ignored
    /// --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn what_it_costs() {
        let file = anchorhood_testing::variable("ANCHORHOOD_JPEG", "a large JPEG file");
        let Some(path) = file else { return };
        let bytes = std::fs::read(path).unwrap();
        for shrink in Shrink::ALL {
            let mut all: Vec<f64> = (0..15)
                .map(|_| {
                    let clock = std::time::Instant::now();
                    assert!(read(&bytes, shrink).is_some());
                    clock.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            all.sort_by(f64::total_cmp);
            println!("{shrink:?}: least {:.1}, median {:.1} ms", all[0], all[7]);
        }
    }
}
