//! Huffman codes of a JPEG scan, and the bits they are read from.
//!
//! The bytes of a scan are copied without the zeros that follow each 0xFF in it, so that eight of
//! them can be taken at once. What lies beyond their end reads as zeros, and is noticed when all is
//! read.

/// The next bits of a scan. After [`Bits::refill`] at least 56 are held.
pub(super) struct Bits {
    /// The bytes, then [`BEYOND`] zeros.
    bytes: Vec<u8>,
    /// The first byte that is not held whole.
    at: usize,
    /// The next bits, the first one highest.
    held: u64,
    /// How many of them may be taken.
    count: u32,
}

/// Zeros after the end: what is held beyond it, and a load of eight bytes more.
const BEYOND: usize = 16;

impl Bits {
    /// Bits of nothing; the memory is used again by every [`Bits::start`].
    pub fn new() -> Self {
        Bits { bytes: vec![0; BEYOND], at: 0, held: 0, count: 0 }
    }

    /// From here on bits come from `coded`, the bytes of a scan between two markers.
    pub fn start(&mut self, coded: &[u8]) {
        self.bytes.clear();
        let mut rest = coded;
        while let Some(found) = memchr::memchr(0xFF, rest) {
            self.bytes.extend(&rest[..=found]);
            rest = rest.get(found + 2..).unwrap_or_default();
        }
        self.bytes.extend(rest);
        self.bytes.extend([0; BEYOND]);
        (self.at, self.held, self.count) = (0, 0, 0);
    }

    /// Holds at least 56 bits, or zeros after the end.
    #[inline(always)]
    pub fn refill(&mut self) {
        if let Some(next) = self.bytes[self.at..].first_chunk() {
            self.held |= u64::from_be_bytes(*next) >> self.count;
            let taken = (63 - self.count) / 8;
            self.at += taken as usize;
            self.count += taken * 8;
        }
    }

    /// The next `n` bits, 1 to 32, which stay.
    #[inline(always)]
    pub fn peek(&self, n: u32) -> usize {
        (self.held >> (64 - n)) as usize
    }

    /// Takes `n` bits away.
    #[inline(always)]
    pub fn skip(&mut self, n: u32) {
        self.held <<= n;
        self.count = self.count.saturating_sub(n);
    }

    /// The value that `size` bits tell: half of them negative, and none between.
    #[inline(always)]
    pub fn value(&mut self, size: u32) -> i32 {
        if size == 0 {
            return 0;
        }
        let bits = self.peek(size) as i32;
        self.skip(size);
        match bits >> (size - 1) {
            0 => bits - (1 << size) + 1,
            _ => bits,
        }
    }

    /// Whether more was taken than there was.
    pub fn overran(&self) -> bool {
        let end = self.bytes.len() - BEYOND;
        self.at * 8 > end * 8 + self.count as usize
    }
}

/// Bits that are looked up at once.
const SHORT: u32 = 9;

/// One table of codes.
#[derive(Clone)]
pub(super) struct Huffman {
    /// By the next bits: length and symbol of a code that is short enough; length 0 for others.
    short: Box<[[u8; 2]; 1 << SHORT]>,
    /// Codes of each length, as 16 bits, are below this.
    limits: [u32; 17],
    /// What to add to a code of each length for the place of its symbol.
    places: [i32; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// From how many codes of each length (1 to 16) there are, and their symbols. None where so
    /// many cannot be.
    pub fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Huffman {
            short: Box::new([[0; 2]; 1 << SHORT]),
            limits: [0; 17],
            places: [0; 17],
            symbols: symbols.into(),
        };
        let (mut code, mut place) = (0_u32, 0);
        for length in 1..=16_u32 {
            let count = usize::from(counts[length as usize - 1]);
            table.places[length as usize] = place as i32 - code as i32;
            for &symbol in symbols.get(place..place + count)? {
                if length <= SHORT {
                    let first = (code << (SHORT - length)) as usize;
                    let entries = table.short.get_mut(first..first + (1 << (SHORT - length)))?;
                    entries.fill([length as u8, symbol]);
                }
                code += 1;
            }
            if code > 1 << length {
                return None;
            }
            place += count;
            table.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// Length and symbol of the code that the next 16 bits begin with.
    #[inline(always)]
    fn find(&self, bits: usize) -> Option<(u32, u8)> {
        match self.short[bits >> (16 - SHORT)] {
            [0, _] => self.find_long(bits as u32),
            [length, symbol] => Some((length.into(), symbol)),
        }
    }

    #[cold]
    fn find_long(&self, bits: u32) -> Option<(u32, u8)> {
        let length = (SHORT + 1..=16).find(|&l| bits < self.limits[l as usize])?;
        let place = (bits >> (16 - length)) as i32 + self.places[length as usize];
        Some((length, *self.symbols.get(usize::try_from(place).ok()?)?))
    }

    /// The next symbol; 16 bits must be held. None where no code is so.
    #[inline(always)]
    pub fn symbol(&self, bits: &mut Bits) -> Option<u8> {
        let (length, symbol) = self.find(bits.peek(16))?;
        bits.skip(length);
        Some(symbol)
    }
}

/// Bits that [`Skipper`] looks up at once.
const LONG: u32 = 12;
/// The flag of an entry that ends a block.
const END: u16 = 1 << 15;

/// Passes over the coefficients of a block after the first, several at a time, without their
/// values.
pub(super) struct Skipper {
    /// By the next bits: how many of them to skip (0: look at one coefficient), by how much the
    /// place in the block moves (times 16), [`END`]. The end of a block counts as a move by one,
    /// since nothing that ends so has all 64.
    steps: Box<[u16; 1 << LONG]>,
}

impl Skipper {
    /// For the coefficients that are coded by `table`.
    pub fn new(table: &Huffman) -> Self {
        let mut steps = Box::new([0; 1 << LONG]);
        for (bits, step) in steps.iter_mut().enumerate() {
            *step = several(table, bits);
        }
        Skipper { steps }
    }

    /// Passes over the rest of a block. None where it makes no sense.
    #[inline(always)]
    pub fn skip_block(&self, table: &Huffman, bits: &mut Bits) -> Option<()> {
        let mut k = 1;
        'refill: loop {
            bits.refill();
            // Four steps take 48 of 56 bits at most.
            for _ in 0..4 {
                let step = self.steps[bits.peek(LONG)];
                let (used, moved) = (step & 15, (step & !END) >> 4);
                if used == 0 || k + moved > 64 {
                    bits.refill();
                    k = skip_one(table, bits, k)?;
                    match k {
                        64 => return Some(()),
                        _ => continue 'refill,
                    }
                }
                bits.skip(used.into());
                k += moved;
                if step & END != 0 || k == 64 {
                    return Some(());
                }
            }
        }
    }
}

/// Passes over one coefficient at place `k`: the next place, 64 at the end.
#[inline(always)]
fn skip_one(table: &Huffman, bits: &mut Bits, k: u16) -> Option<u16> {
    let symbol = table.symbol(bits)?;
    let (run, size) = (u16::from(symbol >> 4), u32::from(symbol & 15));
    bits.skip(size);
    match (run, size) {
        (0..15, 0) => Some(64),
        _ => Some(k + run + 1).filter(|next| *next <= 64),
    }
}

/// The entry for as many whole coefficients as lie in these bits.
fn several(table: &Huffman, bits: usize) -> u16 {
    let (mut used, mut moved) = (0, 0);
    while let Some((length, symbol)) = table.find((bits << (16 - LONG) << used) & 0xFFFF) {
        let (run, size) = (u16::from(symbol >> 4), u32::from(symbol & 15));
        if used + length + size > LONG {
            break;
        }
        used += length + size;
        if size == 0 && run < 15 {
            return used as u16 | (moved + 1) << 4 | END;
        }
        moved += run + 1;
    }
    used as u16 | moved << 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes 0, 10, 110, 1110 … for symbols 0, 1, 2, 3 …
    fn unary() -> Huffman {
        let symbols: Vec<u8> = (0..16).collect();
        Huffman::new(&[1; 16], &symbols).unwrap()
    }

    #[test]
    fn short_and_long_codes_are_told_apart() {
        let table = unary();
        let mut bits = Bits::new();
        // 15 ones and a zero; 0; 110; 11 ones and a zero; ones.
        bits.start(&[0xFF, 0, 0xFE, 0b0110_1111, 0b1111_1110, 0xFF, 0, 0xFF, 0]);
        let mut symbol = || {
            bits.refill();
            table.symbol(&mut bits)
        };
        assert_eq!(
            [symbol(), symbol(), symbol(), symbol(), symbol()],
            [Some(15), Some(0), Some(2), Some(11), None]
        );
    }

    #[test]
    fn impossible_tables_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 3;
        assert!(Huffman::new(&counts, &[1, 2, 3]).is_none(), "three of one bit");
        assert!(Huffman::new(&[1; 16], &[1; 15]).is_none(), "a symbol short");
    }

    #[test]
    fn values_and_the_end() {
        let mut bits = Bits::new();
        bits.start(&[0b0100_1011]);
        bits.refill();
        assert_eq!([bits.value(1), bits.value(2), bits.value(0)], [-1, 2, 0]);
        assert_eq!(bits.value(5), -(31 - 0b01011));
        assert!(!bits.overran());
        bits.refill();
        bits.skip(1);
        assert!(bits.overran());
        for _ in 0..1000 {
            bits.refill();
            bits.skip(31);
        }
        assert!(bits.overran());
    }

    /// Any bits: passed over several at a time, or one by one.
    #[test]
    fn blocks_end_at_the_same_bit() {
        // Ends, runs and values of several lengths.
        let symbols = [0x01, 0x00, 0x11, 0x02, 0xF0, 0x23, 0x0A, 0x51, 0xF7];
        let mut counts = [0; 16];
        (counts[1], counts[2], counts[3], counts[9]) = (2, 2, 3, 2);
        let table = Huffman::new(&counts, &symbols).unwrap();
        let skipper = Skipper::new(&table);
        let mut ended = 0;
        for seed in 0..2000_u32 {
            let noise =
                |i: u32| (seed * 64 + i).wrapping_mul(2_654_435_761).to_be_bytes()[1] & 0xEF;
            let coded: Vec<u8> = (0..64).map(noise).collect();
            let (mut fast, mut slow) = (Bits::new(), Bits::new());
            fast.start(&coded);
            slow.start(&coded);
            let quick = skipper.skip_block(&table, &mut fast);
            let mut k = Some(1);
            while let Some(place @ 0..64) = k {
                slow.refill();
                k = skip_one(&table, &mut slow, place);
            }
            assert_eq!(quick.is_some(), k.is_some(), "{seed}");
            if quick.is_some() {
                ended += 1;
                fast.refill();
                slow.refill();
                assert_eq!(fast.peek(32), slow.peek(32), "{seed}");
                assert_eq!(fast.overran(), slow.overran(), "{seed}");
            }
        }
        assert!(ended > 1000, "{ended}");
    }
}
