//! The python files of CIFAR: a pickled dictionary with byte strings, lists of numbers or names,
//! and one numpy array of bytes.
//!
//! The few calls by which numpy and python store an array are understood (`_reconstruct`, `dtype`,
//! `_codecs.encode`); none is made.

use std::borrow::Cow;

use anchorhood_storage::pickle::{Call, Id, Known, Pickle, Value};

/// The calls that are understood.
const KNOWN: &[Known] = &[
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
];
const RECONSTRUCT: [usize; 2] = [0, 1];
const DTYPE: usize = 3;
const ENCODE: usize = 4;

/// A dictionary read from a file.
pub(super) struct Dictionary<'a>(Pickle<'a>);

impl<'a> Dictionary<'a> {
    /// Reads `bytes`, or says why not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let pickle = Pickle::parse(bytes, KNOWN)?;
        match pickle.top() {
            Value::Dict(_) => Ok(Dictionary(pickle)),
            _ => Err("it does not hold a dictionary".into()),
        }
    }

    /// The rows×columns array of bytes under `key`.
    pub fn array(&self, key: &str) -> Result<(usize, usize, Cow<'_, [u8]>), String> {
        let Value::Call(call) = self.get(key)? else {
            return Err(format!("`{key}` is not a numpy array"));
        };
        let array = self.rows_of_bytes(call);
        array.ok_or_else(|| format!("`{key}` is not rows of bytes"))
    }

    /// An array's state is its version, shape, type, order and bytes.
    fn rows_of_bytes(&self, call: &Call) -> Option<(usize, usize, Cow<'_, [u8]>)> {
        let &[_, shape, kind, _, data] = self.0.members(call.state?)? else {
            return None;
        };
        let &[rows, columns] = self.0.members(shape)? else {
            return None;
        };
        let (rows, columns) = (self.0.size(rows)?, self.0.size(columns)?);
        let data = self.bytes(data)?;
        let whole = RECONSTRUCT.contains(&call.name)
            && self.is_bytes(kind)
            && rows.checked_mul(columns) == Some(data.len());
        whole.then_some((rows, columns, data))
    }

    /// Whether an element type is that of bytes.
    fn is_bytes(&self, kind: Id) -> bool {
        match self.0.value(kind) {
            Value::Call(call) if call.name == DTYPE => {
                let name = self.0.argument(call, 0);
                name.and_then(|name| self.0.bytes(name)) == Some(b"u1")
            }
            _ => false,
        }
    }

    /// A string's bytes; behind `_codecs.encode(text, 'latin1')` each character is a byte.
    fn bytes(&self, id: Id) -> Option<Cow<'_, [u8]>> {
        let Value::Call(call) = self.0.value(id) else {
            return self.0.bytes(id).map(Cow::Borrowed);
        };
        let text = self.0.bytes(self.0.argument(call, 0)?)?;
        let text = std::str::from_utf8(text).ok()?;
        let byte = |c: char| u8::try_from(u32::from(c)).ok();
        let bytes: Option<Vec<u8>> = text.chars().map(byte).collect();
        (call.name == ENCODE).then_some(Cow::Owned(bytes?))
    }

    /// The list of whole numbers under `key`.
    pub fn ints(&self, key: &str) -> Result<Vec<i64>, String> {
        let one = |id: &Id| match self.0.value(*id) {
            Value::Int(i) => Some(*i),
            _ => None,
        };
        let all: Option<Vec<i64>> = self.list(key)?.iter().map(one).collect();
        all.ok_or_else(|| format!("`{key}` is not a list of whole numbers"))
    }

    /// The list of strings under `key`.
    pub fn strings(&self, key: &str) -> Result<Vec<String>, String> {
        let one = |id: &Id| {
            let bytes = self.bytes(*id)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
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
        let mut pairs = self.0.items(self.0.top()).unwrap_or_default().iter().rev();
        let found = pairs.find(|(k, _)| self.bytes(*k).as_deref() == Some(key.as_bytes()));
        match found {
            Some((_, value)) => Ok(self.0.value(*value)),
            None => Err(format!("it has no `{key}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dictionary_or_no_array_is_refused() {
        assert!(Dictionary::parse(b"\x80\x02].").is_err());
        let texts = Dictionary::parse(b"\x80\x02}U\x01a]U\x01bas.").unwrap();
        assert_eq!(texts.strings("a").unwrap(), ["b"]);
        assert_eq!(texts.ints("none").unwrap_err(), "it has no `none`");
        assert!(texts.ints("a").is_err() && texts.array("a").is_err());
        for array in [
            &b"cnumpy.core.multiarray\n_reconstruct\n)R)b"[..],
            b"cnumpy.core.multiarray\n_reconstruct\n)R",
            b"cnumpy\ndtype\n)R",
        ] {
            let bytes = [b"}U\x01d", array, b"s."].concat();
            let read = Dictionary::parse(&bytes).unwrap();
            assert!(read.array("d").is_err(), "{array:?}");
        }
    }
}
