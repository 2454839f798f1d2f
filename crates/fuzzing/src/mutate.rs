//! Seeded mutations: the same number makes the same bytes, on any machine.
//!
//! A mutation is a seed with one to eight changes: bits, bytes and numbers set to what is at the
//! edge of a range, pieces cut out, doubled or taken from another seed, numerals of texts replaced.
//! Places are drawn from the whole file, or from its first or last 256 bytes, where headers and
//! indices lie.

use anchorhood_storage::random::{Draws, Stream};

/// No mutation is longer.
const LONGEST: usize = 1 << 20;
/// Where headers and indices lie.
const EDGE: usize = 256;

/// Numbers at the edges of ranges, beside the greatest of 64 bits.
const EDGES: [u32; 16] = [
    0, 1, 2, 3, 4, 8, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0xffff, 2147483647, 2147483648,
    4294967295,
];

const NUMERALS: &str = "0 1 -1 2 3 7 64 255 256 65535 65536 1048576 2147483648 4294967295 \
    4294967296 4611686018427387904 9223372036854775807 9223372036854775808 18446744073709551615 \
    18446744073709551616 0.5 1e308 -1e308 1e-320 1e39 nan";

/// Random numbers of one mutation.
struct Dice {
    draws: Draws,
    thrown: u64,
}

impl Dice {
    fn word(&mut self) -> u32 {
        self.thrown += 1;
        self.draws.word(self.thrown)
    }

    /// Below `n`, or 0 where there is nothing below.
    fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.word()) * n as u64) >> 32) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A number at the edge of a range.
    fn edge(&mut self) -> u64 {
        match self.below(EDGES.len() + 2) {
            16 => i64::MAX as u64,
            17 => u64::MAX,
            i => EDGES[i].into(),
        }
    }

    /// A place among `length` bytes.
    fn place(&mut self, length: usize) -> usize {
        match self.below(4) {
            0 => self.below(length.min(EDGE)),
            1 => length - length.min(EDGE) + self.below(length.min(EDGE)),
            _ => self.below(length),
        }
    }

    /// A range of up to 64 bytes, seldom more.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.place(length);
        let most = match self.below(8) {
            0 => length,
            _ => 64,
        };
        start..length.min(start + 1 + self.below(most))
    }
}

/// Mutation `number` of these seeds, of which there is at least one.
pub fn mutation(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let draws = Draws::new(0, Stream::Test, 0, number);
    let mut dice = Dice { draws, thrown: 0 };
    let mut bytes = dice.one(seeds).clone();
    let other = dice.one(seeds);
    for _ in 0..1 << dice.below(4) {
        match bytes.is_empty() {
            true => bytes.extend_from_slice(other),
            false => change(&mut bytes, other, &mut dice),
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let (length, place) = (bytes.len(), dice.place(bytes.len()));
    match dice.below(13) {
        0 => bytes[place] ^= 1 << dice.below(8),
        1 => bytes[place] = dice.edge() as u8,
        2 => bytes[place] = dice.word() as u8,
        3 => {
            let step = dice.below(9) as u8;
            bytes[place] = bytes[place].wrapping_add(step).wrapping_sub(4);
        }
        4 => set_number(bytes, place, dice),
        5 => drop(bytes.drain(dice.range(length))),
        6 => bytes.truncate(place),
        7 => {
            let piece = bytes[dice.range(length)].to_vec();
            bytes.splice(place..place, piece);
        }
        8 => {
            let random: Vec<u8> = (0..=dice.below(16)).map(|_| dice.word() as u8).collect();
            bytes.splice(place..place, random);
        }
        9 => {
            let from = dice.place(other.len()).min(other.len());
            bytes.truncate(place);
            bytes.extend_from_slice(&other[from..]);
        }
        10 if !other.is_empty() => {
            let piece = other[dice.range(other.len())].to_vec();
            let end = length.min(place + piece.len());
            bytes.splice(place..end, piece);
        }
        _ => set_numeral(bytes, dice),
    }
}

/// Two, four or eight bytes become a number, of either byte order.
fn set_number(bytes: &mut [u8], place: usize, dice: &mut Dice) {
    let (width, number) = (2 << dice.below(3), dice.edge());
    let mut number = number.to_le_bytes()[..width].to_vec();
    if dice.below(2) == 1 {
        number.reverse();
    }
    let there = &mut bytes[place..];
    let width = width.min(there.len());
    there[..width].copy_from_slice(&number[..width]);
}

/// One of the numerals of a text becomes another.
fn set_numeral(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let digit = |i: &usize| bytes[*i].is_ascii_digit();
    let begins = |i: &usize| digit(i) && (*i == 0 || !digit(&(i - 1)));
    let starts: Vec<usize> = (0..bytes.len()).filter(begins).collect();
    if starts.is_empty() {
        return;
    }
    let start = *dice.one(&starts);
    let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit());
    let end = start + digits.count();
    let numeral = match dice.below(4) {
        0 => dice.word().to_string(),
        _ => dice.one(&Vec::from_iter(NUMERALS.split(' '))).to_string(),
    };
    bytes.splice(start..end, numeral.into_bytes());
}
