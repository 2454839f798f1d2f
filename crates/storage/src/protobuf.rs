//! Messages of Protocol Buffers (<https://protobuf.dev/programming-guides/encoding>): what ONNX and
//! TensorBoard's files are made of.
//!
//! The macro [`protobuf!`](crate::protobuf!) declares them, a field a line: its name, its type, its
//! number. The type says how it is written:
//!
//! | type | in a `.proto` file |
//! |---|---|
//! | `i32`, `i64` | `int32`, `int64`; not written where it is 0 |
//! | `f32`, `f64` | `float`, `double`; likewise |
//! | `String`, `Vec<u8>` | `string`, `bytes`; not written where it is empty |
//! | `Option<T>` | `optional`: written where it is there, whatever it is |
//! | `Vec<T>` | `repeated`, not packed |
//!
//! Reading is strict: what is cut off or of another type is refused; fields that are not declared
//! are passed over.
//!
//! Kept by hand: one macro is all that these messages need, and the general crates bring twenty
//! others into every build.

use crate::varint::{read_varint, write_varint};

/// Declares messages, with [`Message`] for each.
///
/// ```
/// anchorhood_storage::protobuf! {
///     /// A figure.
///     pub struct Figure {
///         /// What it is of.
///         pub tag: String = 1,
///         pub value: Option<f32> = 2,
///     }
/// }
/// ```
#[macro_export]
macro_rules! protobuf {
    ($($(#[$about:meta])* $vis:vis struct $name:ident {
        $($(#[$note:meta])* $seen:vis $field:ident: $type:ty = $number:literal,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $($(#[$note])* $seen $field: $type,)*
        }

        impl $crate::protobuf::Message for $name {
            fn write(&self, to: &mut Vec<u8>) {
                $($crate::protobuf::Field::write(&self.$field, $number, to);)*
            }

            fn read_field(&mut self, number: u64, value: $crate::protobuf::Wire) -> Option<()> {
                match number {
                    $($number => $crate::protobuf::Field::read(&mut self.$field, value),)*
                    _ => Some(()),
                }
            }
        }
    )*};
}

/// What `protobuf!` makes.
pub trait Message: Default {
    /// Adds the fields, in the order of their declaration.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes one field; nothing where its value is of another type.
    fn read_field(&mut self, number: u64, value: Wire) -> Option<()>;

    /// The message's bytes.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![];
        self.write(&mut bytes);
        bytes
    }

    /// The message that these bytes are; nothing where they are none.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut message = Self::default();
        for field in fields(bytes) {
            let (number, value) = field?;
            message.read_field(number, value)?;
        }
        Some(message)
    }
}

/// The fields of a message as they lie in a file, a number and a value each, without a copy;
/// nothing, and then the end, where the bytes are no message.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, Wire<'_>)>> {
    std::iter::from_fn(move || {
        let left = !bytes.is_empty();
        left.then(|| {
            let field = field(&mut bytes);
            if field.is_none() {
                bytes = &[];
            }
            field
        })
    })
}

fn field<'a>(from: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let key = read_varint(from)?;
    Some((key >> 3, Wire::read(key & 7, from)?))
}

/// A value as it lies in a file, where only its size is known.
#[derive(Clone, Copy, Debug)]
pub enum Wire<'a> {
    /// A whole number.
    Varint(u64),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Any number of bytes, after their length.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32([u8; 4]),
}

impl<'a> Wire<'a> {
    fn read(kind: u64, from: &mut &'a [u8]) -> Option<Self> {
        Some(match kind {
            VARINT => Wire::Varint(read_varint(from)?),
            FIXED64 => Wire::Fixed64(taken(8, from)?.try_into().ok()?),
            BYTES => {
                let length = read_varint(from)?;
                Wire::Bytes(taken(usize::try_from(length).ok()?, from)?)
            }
            FIXED32 => Wire::Fixed32(taken(4, from)?.try_into().ok()?),
            _ => return None,
        })
    }
}

fn taken<'a>(length: usize, from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// One value of a field.
pub trait Value: Sized {
    /// How its end is found.
    const KIND: u64;

    /// Adds it, without its field's number.
    fn write(&self, to: &mut Vec<u8>);

    /// The value; nothing where it is of another type.
    fn read(from: Wire) -> Option<Self>;
}

/// How a field is written: not at all, once, or several times.
pub trait Field {
    /// Adds it.
    fn write(&self, number: u64, to: &mut Vec<u8>);

    /// Takes a value that was found; nothing where it is of another type.
    fn read(&mut self, from: Wire) -> Option<()>;
}

fn write_value<T: Value>(value: &T, number: u64, to: &mut Vec<u8>) {
    write_varint(number << 3 | T::KIND, to);
    value.write(to);
}

impl<T: Value> Field for Option<T> {
    fn write(&self, number: u64, to: &mut Vec<u8>) {
        self.iter().for_each(|v| write_value(v, number, to));
    }

    fn read(&mut self, from: Wire) -> Option<()> {
        *self = Some(T::read(from)?);
        Some(())
    }
}

impl<T: Value> Field for Vec<T> {
    fn write(&self, number: u64, to: &mut Vec<u8>) {
        self.iter().for_each(|v| write_value(v, number, to));
    }

    fn read(&mut self, from: Wire) -> Option<()> {
        self.push(T::read(from)?);
        Some(())
    }
}

/// Types whose value on one kind of wire is an expression each way, and which are not written where
/// they are the default.
macro_rules! plain {
    ($($type:ty, $wire:ident, $kind:ident,
       |$value:ident, $to:ident| $write:expr, |$found:ident| $read:expr;)*) => {$(
        impl Value for $type {
            const KIND: u64 = $kind;

            fn write(&self, $to: &mut Vec<u8>) {
                let $value = self;
                $write;
            }

            fn read(from: Wire) -> Option<Self> {
                match from {
                    Wire::$wire($found) => $read,
                    _ => None,
                }
            }
        }

        impl Field for $type {
            fn write(&self, number: u64, to: &mut Vec<u8>) {
                if *self != <$type>::default() {
                    write_value(self, number, to);
                }
            }

            fn read(&mut self, from: Wire) -> Option<()> {
                *self = Value::read(from)?;
                Some(())
            }
        }
    )*};
}

// A negative number of 32 bits is written as one of 64.
plain! {
    i32, Varint, VARINT, |v, to| write_varint(i64::from(*v) as u64, to), |v| Some(v as i32);
    i64, Varint, VARINT, |v, to| write_varint(*v as u64, to), |v| Some(v as i64);
    f32, Fixed32, FIXED32, |v, to| to.extend(v.to_le_bytes()), |v| Some(f32::from_le_bytes(v));
    f64, Fixed64, FIXED64, |v, to| to.extend(v.to_le_bytes()), |v| Some(f64::from_le_bytes(v));
    String, Bytes, BYTES,
        |v, to| write_bytes(v.as_bytes(), to), |v| String::from_utf8(v.into()).ok();
    Vec<u8>, Bytes, BYTES, |v, to| write_bytes(v, to), |v| Some(v.into());
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    write_varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

impl<M: Message> Value for M {
    const KIND: u64 = BYTES;

    /// The length comes first and is known last: what was written moves on to make room for it.
    fn write(&self, to: &mut Vec<u8>) {
        let at = to.len();
        Message::write(self, to);
        let mut length = vec![];
        write_varint((to.len() - at) as u64, &mut length);
        to.splice(at..at, length);
    }

    fn read(from: Wire) -> Option<Self> {
        match from {
            Wire::Bytes(bytes) => M::decode(bytes),
            _ => None,
        }
    }
}

/// A message with a field of every kind, for tests here and for `crates/fuzzing`.
#[doc(hidden)]
pub mod example {
    crate::protobuf! {
        pub struct Part {
            pub a: i32 = 1,
        }
        pub struct Whole {
            pub number: i32 = 1,
            pub text: String = 2,
            pub part: Option<Part> = 3,
            pub long: i64 = 4,
            pub ratio: f32 = 5,
            pub time: f64 = 6,
            pub raw: Vec<u8> = 7,
            pub set: Option<f32> = 8,
            pub parts: Vec<Part> = 9,
            pub numbers: Vec<i64> = 16,
            pub names: Vec<String> = 17,
        }
    }

    /// With something in each.
    pub fn whole() -> Whole {
        Whole {
            number: -2,
            text: "testing".into(),
            part: Some(Part { a: 150 }),
            long: 1 << 40,
            ratio: 1.5,
            time: -0.5,
            raw: vec![0; 200],
            set: Some(0.0),
            parts: vec![Part::default(), Part { a: 1 }],
            numbers: vec![3, 0, -1],
            names: vec!["".into(), "ü".into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::example::*;
    use super::*;

    /// The examples of the specification, and what follows from its rules.
    #[test]
    fn bytes_are_the_specifications() {
        let bytes = |whole: Whole| whole.encode();
        assert!(bytes(Whole::default()).is_empty());
        assert_eq!(Part { a: 150 }.encode(), [0x08, 0x96, 0x01]);
        let text = Whole { text: "testing".into(), ..Whole::default() };
        assert_eq!(bytes(text), b"\x12\x07testing");
        let part = Whole { part: Some(Part { a: 150 }), ..Whole::default() };
        assert_eq!(bytes(part), [0x1a, 3, 0x08, 0x96, 0x01]);
        let negative = Whole { number: -2, ..Whole::default() };
        let expected = [&[0x08, 0xfe][..], &[0xff; 8], &[1]].concat();
        assert_eq!(bytes(negative), expected);
        let others = Whole {
            ratio: 1.0,
            time: 1.0,
            set: Some(0.0),
            parts: vec![Part::default(); 2],
            numbers: vec![3, 270],
            ..Whole::default()
        };
        let expected: [&[u8]; 6] = [
            &[0x2d, 0, 0, 0x80, 0x3f],             // 5: 1.0
            &[0x31, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f], // 6: 1.0
            &[0x45, 0, 0, 0, 0],                   // 8: 0.0, which was set
            &[0x4a, 0, 0x4a, 0],                   // 9: two empty messages
            &[0x80, 0x01, 3],                      // 16: 3
            &[0x80, 0x01, 0x8e, 0x02],             // 16: 270
        ];
        assert_eq!(bytes(others), expected.concat());
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = whole().encode();
        assert_eq!(Whole::decode(&bytes), Some(whole()));
        let unknown = [&[0x98, 0x06, 5][..], &bytes].concat(); // field 99
        assert_eq!(Whole::decode(&unknown), Some(whole()));
    }

    /// Nothing that is cut off is taken for the whole. `crates/fuzzing` tries other bytes.
    #[test]
    fn damage_is_refused() {
        let bytes = whole().encode();
        for cut in 0..bytes.len() {
            assert_ne!(Whole::decode(&bytes[..cut]), Some(whole()), "{cut}");
        }
        let refused: [&[u8]; 6] = [
            &[0x08],                                                          // no value
            &[0x0a, 0],       // a number that is text
            &[0x12, 2, b'a'], // text that is cut off
            &[0x12, 1, 0xff], // text that is none
            &[0x0b],          // a group
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // longer than memory
        ];
        for bytes in refused {
            assert_eq!(Whole::decode(bytes), None, "{bytes:?}");
        }
    }
}
