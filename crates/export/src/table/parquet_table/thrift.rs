//! Structs of Thrift's compact protocol, written only: what Parquet's page headers and footer are
//! made of.
//!
//! A field is the step from the last field's number and its type in one byte, then its value; whole
//! numbers are zigzag varints; a zero ends the struct.
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

use anchorhood_storage::write_varint;

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct being written. Fields come in the order of their numbers.
#[derive(Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub fn new() -> Self {
        Struct::default()
    }

    /// Its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// Also an enum's value.
    pub fn i32(self, field: u8, value: i32) -> Self {
        let mut this = self.field(field, I32);
        zigzag(value.into(), &mut this.bytes);
        this
    }

    pub fn i64(self, field: u8, value: i64) -> Self {
        let mut this = self.field(field, I64);
        zigzag(value, &mut this.bytes);
        this
    }

    pub fn binary(self, field: u8, value: impl AsRef<[u8]>) -> Self {
        let mut this = self.field(field, BINARY);
        binary(value.as_ref(), &mut this.bytes);
        this
    }

    pub fn structure(self, field: u8, value: Struct) -> Self {
        let mut this = self.field(field, STRUCT);
        this.bytes.extend(value.end());
        this
    }

    pub fn enums(self, field: u8, values: &[i32]) -> Self {
        self.list(field, I32, values, |v, to| zigzag((*v).into(), to))
    }

    pub fn strings(self, field: u8, values: &[&str]) -> Self {
        self.list(field, BINARY, values, |v, to| binary(v.as_bytes(), to))
    }

    /// Structs that have ended.
    pub fn structs(self, field: u8, values: &[Vec<u8>]) -> Self {
        self.list(field, STRUCT, values, |v, to| to.extend_from_slice(v))
    }

    fn field(mut self, number: u8, kind: u8) -> Self {
        let step = number - self.last;
        debug_assert!((1..16).contains(&step), "field {number}");
        self.bytes.push(step << 4 | kind);
        self.last = number;
        self
    }

    fn list<T>(self, field: u8, kind: u8, values: &[T], write: fn(&T, &mut Vec<u8>)) -> Self {
        let mut this = self.field(field, LIST);
        match values.len() {
            short @ 0..15 => this.bytes.push((short as u8) << 4 | kind),
            long => {
                this.bytes.push(0xf0 | kind);
                write_varint(long as u64, &mut this.bytes);
            }
        }
        values.iter().for_each(|v| write(v, &mut this.bytes));
        this
    }
}

/// 0, -1, 1, -2, … as 0, 1, 2, 3, …: small ones are short, whatever their sign.
fn zigzag(value: i64, to: &mut Vec<u8>) {
    write_varint((value << 1 ^ value >> 63) as u64, to);
}

fn binary(value: &[u8], to: &mut Vec<u8>) {
    write_varint(value.len() as u64, to);
    to.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_specifications() {
        assert_eq!(Struct::new().end(), [0]);
        let numbers = Struct::new().i32(1, -1).i64(3, 150).i32(15, 0);
        assert_eq!(numbers.end(), [0x15, 1, 0x26, 0xac, 0x02, 0xc5, 0, 0]);
        let inner = Struct::new().structure(2, Struct::new().i32(1, 1)).i32(3, 2);
        assert_eq!(inner.end(), [0x2c, 0x15, 2, 0, 0x15, 4, 0]);
        let lists = Struct::new().enums(1, &[0, 3]).strings(2, &["ab"]);
        assert_eq!(lists.end(), [0x19, 0x25, 0, 6, 0x19, 0x18, 2, b'a', b'b', 0]);
        let long = Struct::new().structs(1, &vec![vec![0]; 200]).end();
        assert_eq!(long[..4], [0x19, 0xfc, 0xc8, 0x01]);
        assert_eq!(long.len(), 4 + 200 + 1);
    }

    #[test]
    fn zigzag_reaches_the_ends() {
        let bytes = Struct::new().i64(1, i64::MIN).i64(2, i64::MAX).end();
        assert_eq!(bytes[1..11], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(bytes[12], 0xfe);
    }
}
