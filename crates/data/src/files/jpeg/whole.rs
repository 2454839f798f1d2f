//! Is a JPEG file whole? Decoders are kind: what is missing they fill with grey, so it has to be
//! found out beside them.
//!
//! A file is whole if its markers lead from its first byte to the end of the picture, EOI, and
//! every scan is long enough for the pixels that the header promises. Segments are passed over by
//! their length, so pictures within them (thumbnails) do not count, nor does anything after EOI
//! (cameras append second pictures and videos). Nothing is decoded: a byte that is not 0xFF is
//! never looked at twice.

use super::markers::{
    BASELINE, Component, EOI, EXTENDED, Frame, PROGRESSIVE, SOI, SOS, Scan, Walk,
};

/// Says why the bytes of a file that begins as a JPEG does are not all of it; otherwise what its
/// header says, where that makes sense.
pub(in crate::files) fn check_whole(bytes: &[u8]) -> Result<Option<Frame>, String> {
    let mut walk = Walk::new(bytes);
    let mut frame = None;
    loop {
        match walk.marker()? {
            EOI => return Ok(frame),
            // A marker alone: restarts lie within a scan, the rest has no business here and does no
            // harm.
            0x01 | 0xD0..=0xD7 | SOI => {}
            kind @ (BASELINE | EXTENDED | PROGRESSIVE) => {
                frame = Frame::parse(kind, walk.segment()?)
            }
            SOS => {
                let header = walk.segment()?;
                let start = walk.at;
                let end = walk.end_of_scan()?;
                if let (Some(frame), Some(scan)) = (&frame, Scan::parse(header)) {
                    frame.check_scan(&scan, end - start)?;
                }
            }
            _ => _ = walk.segment()?,
        }
    }
}

impl Frame {
    /// Every 8×8 block costs a scan some bits at least: a Huffman code each for its first value and
    /// for the end of the others, of one bit or more; a progressive scan of first values has the
    /// one, and those of the others none that could be counted on.
    fn check_scan(&self, scan: &Scan, bytes: usize) -> Result<(), String> {
        let bits = match (self.progressive, scan.first) {
            (false, _) => 2,
            (true, 0) => 1,
            (true, _) => 0,
        };
        let of_scan =
            |c: &&Component| scan.components.iter().any(|[number, _]| *number == c.number);
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
    fn blocks(&self, scanned: &[&Component]) -> usize {
        let product = |(across, down)| across * down;
        match scanned {
            [one] => product(self.blocks_alone(one)),
            several => {
                let of_unit = several.iter().map(|c| c.across * c.down);
                product(self.units()) * of_unit.sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;
    use crate::test_folder::jpeg;

    /// Pictures of 40×24 by `tools/golden/jpeg_fixtures.py`.
    fn files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        let names = ["baseline", "progressive", "restarts", "grey", "cmyk", "thumbnail"];
        names.into_iter().map(|name| (name, jpeg(name)))
    }

    #[test]
    fn whole_files_are_whole() {
        for (name, bytes) in files() {
            check_whole(&bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
            Picture::from_bytes(&bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }

    /// Every beginning of every file, not only some.
    #[test]
    fn a_file_cut_anywhere_is_noticed() {
        for (name, bytes) in files() {
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
        for (name, bytes) in files() {
            for more in [&b"\0"[..], b"\xFF", b"\xFF\xD8\xFF\xE1\xFF", &[7; 5000]] {
                let longer = [&bytes, more].concat();
                check_whole(&longer).unwrap_or_else(|why| panic!("{name}: {why}"));
                Picture::from_bytes(&longer).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
    }

    /// What decoders put up with is no reason to refuse a file.
    #[test]
    fn bytes_between_segments_and_fill_bytes_are_passed_over() {
        for (name, bytes) in files() {
            for more in [&b"\xFF"[..], b"\xFF\xFF\xFF", b"ab"] {
                let odd = [&bytes[..2], more, &bytes[2..]].concat();
                check_whole(&odd).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
    }

    /// As many bytes as a picture of 40×24 has, and a header that promises 10000×9999.
    #[test]
    fn a_header_that_promises_more_than_there_is() {
        for (name, mut bytes) in files() {
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
        let component = |&[number, across, down]: &[u8; 3]| Component {
            number,
            across: across.into(),
            down: down.into(),
            table: 0,
        };
        let frame = |components: &[[u8; 3]]| Frame {
            progressive: false,
            precision: 8,
            height: 17,
            width: 33,
            components: components.iter().map(component).collect(),
        };
        let halved = frame(&[[1, 2, 2], [2, 1, 1], [3, 1, 1]]);
        let all: Vec<_> = halved.components.iter().collect();
        assert_eq!(halved.blocks(&all), 3 * 2 * 6);
        assert_eq!(halved.blocks(&all[..1]), 5 * 3);
        assert_eq!(halved.blocks(&all[1..2]), 3 * 2);
        let grey = frame(&[[1, 2, 2]]);
        assert_eq!(grey.blocks(&[&grey.components[0]]), 5 * 3);
        assert_eq!(grey.blocks(&[]), 0);
    }
}
