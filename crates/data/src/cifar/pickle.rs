//! Reads the python files of CIFAR without python: a pickle of a dictionary with byte strings, lists of numbers or names,
//! and one numpy array of bytes.
//!
//! A pickle is a program for a stack machine that may call anything. This reader knows the few calls by which numpy and
//! python store an array (`_reconstruct`, `dtype`, `_codecs.encode`) as data, and refuses all others: nothing is ever
//! executed. Whatever the bytes, it answers with a value or a reason; memory stays in proportion to the file.

mod machine;

use std::ops::Range;

use machine::Machine;

/// A value's place among those read so far. Values refer to each other by it, so nothing nests and nothing recurses.
type Id = usize;

enum Value {
    /// None, a boolean or a float: present in the files, never asked for.
    Other,
    Int(i64),
    /// A byte or text string, where it stands in the file.
    Text(Range<usize>),
    /// A byte string that had to be decoded.
    Decoded(Vec<u8>),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Call),
    /// A numpy element type, by its name.
    Dtype(Id),
    /// A numpy array, before and after its state is set.
    Array(Option<ArrayState>),
}

/// The calls that are understood.
#[derive(Clone, Copy)]
enum Call {
    Reconstruct,
    Dtype,
    Encode,
    /// Named as an argument only.
    Ndarray,
}

struct ArrayState {
    rows: usize,
    columns: usize,
    data: Id,
}

/// A dictionary read from a file.
pub(super) struct Pickle<'a> {
    bytes: &'a [u8],
    values: Vec<Value>,
    top: Id,
}

impl<'a> Pickle<'a> {
    /// Reads `bytes`, or says why not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let (values, top) = Machine::new(bytes).run()?;
        match values[top] {
            Value::Dict(_) => Ok(Pickle { bytes, values, top }),
            _ => Err("it does not hold a dictionary".into()),
        }
    }

    /// The rows×columns array of bytes under `key`.
    pub fn array(&self, key: &str) -> Result<(usize, usize, &[u8]), String> {
        let Value::Array(Some(state)) = self.get(key)? else {
            return Err(format!("`{key}` is not a numpy array"));
        };
        let data = text(self.bytes, &self.values[state.data])
            .ok_or_else(|| format!("`{key}` has no bytes"))?;
        Ok((state.rows, state.columns, data))
    }

    /// The list of whole numbers under `key`.
    pub fn ints(&self, key: &str) -> Result<Vec<i64>, String> {
        let not = || format!("`{key}` is not a list of whole numbers");
        let one = |id: &Id| match self.values[*id] {
            Value::Int(i) => Some(i),
            _ => None,
        };
        let all: Option<Vec<i64>> = self.list(key)?.iter().map(one).collect();
        all.ok_or_else(not)
    }

    /// The list of strings under `key`.
    pub fn strings(&self, key: &str) -> Result<Vec<String>, String> {
        let one = |id: &Id| {
            text(self.bytes, &self.values[*id]).map(|b| String::from_utf8_lossy(b).into_owned())
        };
        let all: Option<Vec<String>> = self.list(key)?.iter().map(one).collect();
        all.ok_or_else(|| format!("`{key}` is not a list of strings"))
    }

    fn list(&self, key: &str) -> Result<&[Id], String> {
        match self.get(key)? {
            Value::List(ids) => Ok(ids),
            _ => Err(format!("`{key}` is not a list")),
        }
    }

    fn get(&self, key: &str) -> Result<&Value, String> {
        let Value::Dict(pairs) = &self.values[self.top] else {
            return Err("it does not hold a dictionary".into());
        };
        let found = pairs
            .iter()
            .rev()
            .find(|(k, _)| text(self.bytes, &self.values[*k]) == Some(key.as_bytes()));
        match found {
            Some((_, value)) => Ok(&self.values[*value]),
            None => Err(format!("it has no `{key}`")),
        }
    }
}

fn text<'b>(bytes: &'b [u8], value: &'b Value) -> Option<&'b [u8]> {
    match value {
        Value::Text(range) => Some(&bytes[range.clone()]),
        Value::Decoded(owned) => Some(owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        match Pickle::parse(bytes) {
            Ok(_) => panic!("read"),
            Err(why) => why,
        }
    }

    #[test]
    fn reads_small_things() {
        let p = Pickle::parse(b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x07M\x00\x01J\xff\xff\xff\xff\x8a\x01\xfeeU\x01a]U\x01bau.");
        let p = p.unwrap();
        assert_eq!(p.ints("labels").unwrap(), [7, 256, -1, -2]);
        assert_eq!(p.strings("a").unwrap(), ["b"]);
        assert_eq!(p.ints("none").unwrap_err(), "it has no `none`");
        assert!(p.ints("a").is_err() && p.array("a").is_err());
    }

    #[test]
    fn never_calls_anything() {
        let why = refused(b"\x80\x02cos\nsystem\n(U\x04haltR.");
        assert_eq!(why, "it wants to call os.system, which is refused");
        assert!(refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93.").contains("os.system"));
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for bytes in [
            &b""[..],
            b".",
            b"\x80\x02].",
            b"(((((e.",
            b"T\xff\xff\xff\x7fabc.",
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc.",
            b"}h\x09.",
            b"}(K\x01u.",
            b"](K\x01.",
            b"\x8a\xff.",
            b"cnumpy\ndtype\n)R.",
            b"cnumpy.core.multiarray\n_reconstruct\n)R)b.",
        ] {
            refused(bytes);
        }
        // One text, decoded again and again: memory must not outgrow the file.
        let mut bytes = b"}(c_codecs\nencode\nq\x01X\x00\x01\x00\x00".to_vec();
        bytes.extend([b'a'; 256]);
        bytes.extend(b"q\x02");
        for _ in 0..1000 {
            bytes.extend(b"h\x01h\x02\x85R");
        }
        assert!(refused(&bytes).contains("longer than the file"));
    }
}
