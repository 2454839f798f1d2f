//! Is a JPEG file whole? Decoders are kind: what is missing they fill with grey, so it has to be found out beside them.
//!
//! A file is whole if its markers lead from its first byte to the end of the picture, EOI, and every scan is long enough for
//! the pixels that the header promises. Segments are passed over by their length, so pictures within them (thumbnails) do not
//! count, nor does anything after EOI (cameras append second pictures and videos). Nothing is decoded: a byte that is not
//! 0xFF is never looked at twice.

use memchr::memchr;

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const BASELINE: u8 = 0xC0;
const EXTENDED: u8 = 0xC1;
const PROGRESSIVE: u8 = 0xC2;

/// Says why the bytes of a file that begins as a JPEG does are not all of it.
pub(super) fn check_whole(bytes: &[u8]) -> Result<(), String> {
    let mut walk = Walk { bytes, at: 2 };
    let mut frame = None;
    loop {
        match walk.marker()? {
            EOI => return Ok(()),
            // A marker alone: restarts lie within a scan, the rest has no business here and does no harm.
            0x01 | 0xD0..=0xD7 | SOI => {}
            kind @ (BASELINE | EXTENDED | PROGRESSIVE) => {
                frame = Frame::parse(kind, walk.segment()?)
            }
            SOS => {
                let header = walk.segment()?;
                let start = walk.at;
                let end = walk.end_of_scan()?;
                if let Some(frame) = &frame {
                    frame.check_scan(header, end - start)?;
                }
            }
            _ => _ = walk.segment()?,
        }
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    /// The next marker, whatever lies before it.
    fn marker(&mut self) -> Result<u8, String> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let found = memchr(0xFF, rest).ok_or_else(|| self.cut())?;
            // Any number of 0xFF may fill up the room before a marker.
            let fill = rest[found..].iter().take_while(|b| **b == 0xFF).count();
            let code = *rest.get(found + fill).ok_or_else(|| self.cut())?;
            self.at += found + fill + 1;
            if code != 0 {
                return Ok(code);
            }
        }
    }

    /// What belongs to the marker just passed.
    fn segment(&mut self) -> Result<&'a [u8], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let [high, low, ..] = *rest else {
            return Err(self.cut());
        };
        let length = usize::from(u16::from_be_bytes([high, low])).max(2);
        let segment = rest.get(2..length).ok_or_else(|| self.cut())?;
        self.at += length;
        Ok(segment)
    }

    /// Where the marker begins that ends the scan; the walk goes on there.
    fn end_of_scan(&mut self) -> Result<usize, String> {
        while matches!(self.marker()?, 0xD0..=0xD7) {}
        self.at -= 2; // at the last 0xFF before the marker
        Ok(self.at)
    }

    fn cut(&self) -> String {
        let bytes = self.bytes.len();
        format!("the file is cut off: its {bytes} bytes end before the picture does")
    }
}

/// What the header says of the picture.
struct Frame {
    progressive: bool,
    height: usize,
    width: usize,
    /// Number, and how often it is sampled across and down.
    components: Vec<[usize; 3]>,
}

impl Frame {
    /// None where the header makes no sense; the decoder will say so.
    fn parse(kind: u8, segment: &[u8]) -> Option<Frame> {
        let [_, h1, h0, w1, w0, count, rest @ ..] = segment else {
            return None;
        };
        let component = |c: &[u8]| [c[0], c[1] >> 4, c[1] & 15].map(usize::from);
        let components: Vec<_> = rest.chunks_exact(3).map(component).collect();
        let sensible = components.len() == usize::from(*count)
            && components.iter().all(|[_, across, down]| across * down > 0);
        sensible.then_some(Frame {
            progressive: kind == PROGRESSIVE,
            height: usize::from(u16::from_be_bytes([*h1, *h0])),
            width: usize::from(u16::from_be_bytes([*w1, *w0])),
            components,
        })
    }

    /// Every 8×8 block costs a scan some bits at least: a Huffman code each for its first value and for the end of the others,
    /// of one bit or more; a progressive scan of first values has the one, and those of the others none that could be counted on.
    fn check_scan(&self, header: &[u8], bytes: usize) -> Result<(), String> {
        let Some((count, rest)) = header.split_first() else {
            return Ok(());
        };
        let Some((selectors, spectral)) = rest.split_at_checked(2 * usize::from(*count)) else {
            return Ok(());
        };
        let bits = match (self.progressive, spectral.first()) {
            (false, _) => 2,
            (true, Some(0)) => 1,
            (true, _) => 0,
        };
        let of_scan = |c: &&[usize; 3]| selectors.chunks(2).any(|s| usize::from(s[0]) == c[0]);
        let scanned: Vec<_> = self.components.iter().filter(of_scan).collect();
        let needed = (self.blocks(&scanned) * bits).div_ceil(8);
        match bytes < needed {
            true => Err(format!(
                "its {bytes} bytes of pixels are too few for {}×{}, which takes {needed} at least",
                self.width, self.height
            )),
            false => Ok(()),
        }
    }

    /// 8×8 blocks of a scan: whole units of all its components, or the blocks of its only one.
    fn blocks(&self, scanned: &[&[usize; 3]]) -> usize {
        let most = |i: usize| self.components.iter().map(|c| c[i]).max().unwrap_or(1);
        let (across, down) = (most(1), most(2));
        match scanned {
            [[_, h, v]] => {
                let (width, height) = (self.width * h, self.height * v);
                width.div_ceil(8 * across) * height.div_ceil(8 * down)
            }
            several => {
                let units = self.width.div_ceil(8 * across) * self.height.div_ceil(8 * down);
                units * several.iter().map(|[_, h, v]| h * v).sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;

    /// Pictures of 40×24 by `tools/golden/jpeg_fixtures.py`.
    const FILES: [(&str, &[u8]); 6] = [
        (
            "baseline",
            include_bytes!("../../tests/fixtures/jpeg/baseline.jpg"),
        ),
        (
            "progressive",
            include_bytes!("../../tests/fixtures/jpeg/progressive.jpg"),
        ),
        (
            "restarts",
            include_bytes!("../../tests/fixtures/jpeg/restarts.jpg"),
        ),
        ("grey", include_bytes!("../../tests/fixtures/jpeg/grey.jpg")),
        ("cmyk", include_bytes!("../../tests/fixtures/jpeg/cmyk.jpg")),
        (
            "thumbnail",
            include_bytes!("../../tests/fixtures/jpeg/thumbnail.jpg"),
        ),
    ];

    #[test]
    fn whole_files_are_whole() {
        for (name, bytes) in FILES {
            check_whole(bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
            Picture::from_bytes(bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }

    /// Every beginning of every file, not only some.
    #[test]
    fn a_file_cut_anywhere_is_noticed() {
        for (name, bytes) in FILES {
            assert_eq!(bytes[bytes.len() - 2..], [0xFF, EOI], "{name}");
            for end in 2..bytes.len() {
                let why = check_whole(&bytes[..end]).expect_err(name);
                assert!(why.contains("cut off"), "{name} up to {end}: {why}");
            }
            for part in 1..20 {
                let cut = &bytes[..bytes.len() * part / 20];
                assert!(Picture::from_bytes(cut).is_err(), "{name}, {part} of 20");
            }
        }
    }

    #[test]
    fn what_follows_the_end_does_not_count() {
        for (name, bytes) in FILES {
            for more in [&b"\0"[..], b"\xFF", b"\xFF\xD8\xFF\xE1\xFF", &[7; 5000]] {
                let longer = [bytes, more].concat();
                check_whole(&longer).unwrap_or_else(|why| panic!("{name}: {why}"));
                Picture::from_bytes(&longer).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
    }

    /// What decoders put up with is no reason to refuse a file.
    #[test]
    fn bytes_between_segments_and_fill_bytes_are_passed_over() {
        for (name, bytes) in FILES {
            for more in [&b"\xFF"[..], b"\xFF\xFF\xFF", b"ab"] {
                let odd = [&bytes[..2], more, &bytes[2..]].concat();
                check_whole(&odd).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
    }

    /// As many bytes as a picture of 40×24 has, and a header that promises 10000×9999.
    #[test]
    fn a_header_that_promises_more_than_there_is() {
        for (name, bytes) in FILES {
            let mut bytes = bytes.to_vec();
            let size = [0, 24, 0, 40];
            let at = bytes.windows(4).rposition(|w| w == size);
            let at = at.expect("its header");
            bytes[at..at + 4].copy_from_slice(&[0x27, 0x0F, 0x27, 0x10]);
            let why = Picture::from_bytes(&bytes).expect_err(name);
            assert!(why.contains("too few for 10000×9999"), "{name}: {why}");
        }
    }

    #[test]
    fn blocks_are_counted_as_the_standard_does() {
        let frame = |components: &[[usize; 3]]| Frame {
            progressive: false,
            height: 17,
            width: 33,
            components: components.to_vec(),
        };
        let halved = frame(&[[1, 2, 2], [2, 1, 1], [3, 1, 1]]);
        let all: Vec<_> = halved.components.iter().collect();
        assert_eq!(halved.blocks(&all), 3 * 2 * 6);
        assert_eq!(halved.blocks(&all[..1]), 5 * 3);
        assert_eq!(halved.blocks(&all[1..2]), 3 * 2);
        let grey = frame(&[[1, 2, 2]]);
        assert_eq!(grey.blocks(&[&[1, 2, 2]]), 5 * 3);
        assert_eq!(grey.blocks(&[]), 0);
    }

    /// `ANCHORHOOD_JPEG=file cargo test -p anchorhood-data --lib jpeg -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn what_it_costs() {
        let Some(path) = anchorhood_testing::variable("ANCHORHOOD_JPEG", "a large JPEG file")
        else {
            return;
        };
        let bytes = std::fs::read(path).unwrap();
        let milliseconds = |what: &dyn Fn()| {
            let mut all: Vec<f64> = (0..15)
                .map(|_| {
                    let clock = std::time::Instant::now();
                    what();
                    clock.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            all.sort_by(f64::total_cmp);
            (all[0], all[7])
        };
        let walk = milliseconds(&|| check_whole(&bytes).unwrap());
        let whole = milliseconds(&|| _ = Picture::from_bytes(&bytes).unwrap());
        println!("least and median of 15, ms: walk {walk:.3?}, decoding with it {whole:.2?}");
    }
}
