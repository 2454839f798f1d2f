//! The markers of a JPEG file, one after the other: where segments begin and end, and what the two
//! that matter say.

use memchr::memchr;

pub(super) const SOI: u8 = 0xD8;
pub(super) const EOI: u8 = 0xD9;
pub(super) const SOS: u8 = 0xDA;
pub(super) const BASELINE: u8 = 0xC0;
pub(super) const EXTENDED: u8 = 0xC1;
pub(super) const PROGRESSIVE: u8 = 0xC2;

/// A walk from marker to marker.
pub(super) struct Walk<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Walk<'a> {
    /// From the start of a file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Walk { bytes, at: 2 }
    }

    /// The next marker, whatever lies before it.
    pub fn marker(&mut self) -> Result<u8, String> {
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
    pub fn segment(&mut self) -> Result<&'a [u8], String> {
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
    pub fn end_of_scan(&mut self) -> Result<usize, String> {
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
#[derive(Clone, Debug)]
pub(in crate::files) struct Frame {
    pub progressive: bool,
    /// Bits of a value.
    pub precision: u8,
    pub height: usize,
    pub width: usize,
    pub components: Vec<Component>,
}

/// Brightness or a colour.
#[derive(Clone, Copy, Debug)]
pub(in crate::files) struct Component {
    pub number: u8,
    /// How often it is sampled across, where another may be sampled less often.
    pub across: usize,
    pub down: usize,
    /// Its table of quantisation.
    pub table: u8,
}

impl Frame {
    /// None where the header makes no sense; the decoder will say so.
    pub fn parse(kind: u8, segment: &[u8]) -> Option<Frame> {
        let [precision, h1, h0, w1, w0, count, rest @ ..] = segment else {
            return None;
        };
        let (components, _) = rest.as_chunks::<3>();
        let component = |[number, sampled, table]: &[u8; 3]| Component {
            number: *number,
            across: usize::from(sampled >> 4),
            down: usize::from(sampled & 15),
            table: *table,
        };
        let components: Vec<_> = components.iter().map(component).collect();
        let sensible = components.len() == usize::from(*count)
            && components.iter().all(|c| c.across * c.down > 0);
        sensible.then_some(Frame {
            progressive: kind == PROGRESSIVE,
            precision: *precision,
            height: usize::from(u16::from_be_bytes([*h1, *h0])),
            width: usize::from(u16::from_be_bytes([*w1, *w0])),
            components,
        })
    }

    /// How often the component that is sampled most is sampled, across and down.
    pub fn most_sampled(&self) -> (usize, usize) {
        let across = self.components.iter().map(|c| c.across).max();
        let down = self.components.iter().map(|c| c.down).max();
        (across.unwrap_or(1), down.unwrap_or(1))
    }

    /// Blocks of 8×8 values across and down in a scan of this component alone.
    pub fn blocks_alone(&self, of: &Component) -> (usize, usize) {
        let (across, down) = self.most_sampled();
        let (width, height) = (self.width * of.across, self.height * of.down);
        (width.div_ceil(8 * across), height.div_ceil(8 * down))
    }

    /// Units across and down in a scan of several components; each has `across` × `down` blocks of
    /// every component.
    pub fn units(&self) -> (usize, usize) {
        let (across, down) = self.most_sampled();
        (self.width.div_ceil(8 * across), self.height.div_ceil(8 * down))
    }
}

/// What stands before the pixels of a scan.
pub(super) struct Scan<'a> {
    /// Number of each component, and its two Huffman tables: that of the first value, then that of
    /// the others, four bits each.
    pub components: &'a [[u8; 2]],
    /// The first coefficient that is told.
    pub first: u8,
    /// Which bit of values was told before (0 at first), and which is told now: four bits each.
    pub approximation: u8,
}

impl<'a> Scan<'a> {
    /// None where it makes no sense.
    pub fn parse(segment: &'a [u8]) -> Option<Self> {
        let (count, rest) = segment.split_first()?;
        let (components, rest) = rest.split_at_checked(2 * usize::from(*count))?;
        let [first, _, approximation, ..] = rest else {
            return None;
        };
        Some(Scan {
            components: components.as_chunks().0,
            first: *first,
            approximation: *approximation,
        })
    }
}
