//! Whole numbers in as few bytes as they need (LEB128): seven bits a byte, the lowest first, and a
//! bit that says whether more follow. Protocol Buffers, Thrift and Parquet all count in them.

/// Adds a number.
pub fn write_varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Takes a number from the front; nothing where it is cut off or does not fit.
pub fn read_varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: u64) -> Vec<u8> {
        let mut bytes = vec![];
        write_varint(value, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(written(0), [0]);
        assert_eq!(written(150), [0x96, 0x01]);
        let powers = (0..64).map(|i| 1_u64 << i);
        for value in powers.flat_map(|p| [p - 1, p]).chain([u64::MAX]) {
            let bytes = [written(value), vec![7]].concat();
            let mut from = &bytes[..];
            assert_eq!(read_varint(&mut from), Some(value));
            assert_eq!(from, [7], "{value}");
            let mut cut = &bytes[..bytes.len() - 2];
            assert_eq!(read_varint(&mut cut), None, "{value}");
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        for last in [0x02, 0x80] {
            let bytes = [&[0xff; 9][..], &[last, 0]].concat();
            assert_eq!(read_varint(&mut &bytes[..]), None);
        }
    }
}
