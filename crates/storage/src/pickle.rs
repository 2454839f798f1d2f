//! Python's pickles, read as data.
//!
//! A pickle is a program for a stack machine that may call anything. Here nothing is ever called: a
//! call is a value that says what was to be called with what, and only calls that the reader knows
//! are accepted at all. Whatever the bytes, the answer is a value or a reason; memory stays in
//! proportion to the file.
//!
//! Kept by hand: general readers of pickles know plain values alone, and refuse the calls by which
//! PyTorch and NumPy describe arrays.

mod machine;

use std::borrow::Cow;
use std::ops::Range;

use machine::Machine;

/// A value's place among those read so far. Values refer to each other by it, so nothing nests and
/// nothing recurses.
pub type Id = usize;

/// What a pickle is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None, a boolean or a float.
    Other,
    /// A whole number.
    Int(i64),
    /// A byte or text string, where it stands in the file.
    Text(Range<usize>),
    /// A list.
    List(Vec<Id>),
    /// A tuple.
    Tuple(Vec<Id>),
    /// A dictionary: keys and values in order.
    Dict(Vec<(Id, Id)>),
    /// A name to call, by its place among those that are known.
    Global(usize),
    /// What a call would have made.
    Call(Call),
    /// What the file keeps elsewhere, by what it is found by.
    Persistent(Id),
}

/// A call that is not made.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its place among those that are known.
    pub name: usize,
    /// A tuple.
    pub arguments: Id,
    /// The state that was set afterwards.
    pub state: Option<Id>,
    /// What was set in it as in a dictionary.
    pub items: Vec<(Id, Id)>,
}

/// A name that a pickle may call: its module and itself.
pub type Known = (&'static str, &'static str);

/// A whole pickle.
#[derive(Clone, Debug)]
pub struct Pickle<'a> {
    bytes: &'a [u8],
    values: Vec<Value>,
    top: Id,
}

impl<'a> Pickle<'a> {
    /// Reads `bytes`, or says why not; names that are not `known` are refused.
    pub fn parse(bytes: &'a [u8], known: &[Known]) -> Result<Self, String> {
        let (values, top) = Machine::new(bytes, known).run()?;
        Ok(Pickle { bytes, values, top })
    }

    /// The result.
    pub fn top(&self) -> &Value {
        &self.values[self.top]
    }

    /// One value.
    pub fn value(&self, id: Id) -> &Value {
        &self.values[id]
    }

    /// A string's bytes.
    pub fn bytes(&self, id: Id) -> Option<&[u8]> {
        match &self.values[id] {
            Value::Text(range) => Some(&self.bytes[range.clone()]),
            _ => None,
        }
    }

    /// A text; what is not Unicode in it is replaced.
    pub fn text(&self, id: Id) -> Option<Cow<'_, str>> {
        self.bytes(id).map(String::from_utf8_lossy)
    }

    /// A whole number that is not negative.
    pub fn size(&self, id: Id) -> Option<usize> {
        match self.values[id] {
            Value::Int(n) => usize::try_from(n).ok(),
            _ => None,
        }
    }

    /// A call's argument, by its place.
    pub fn argument(&self, call: &Call, place: usize) -> Option<Id> {
        self.members(call.arguments)?.get(place).copied()
    }

    /// What a tuple or a list is of.
    pub fn members(&self, id: Id) -> Option<&[Id]> {
        match &self.values[id] {
            Value::Tuple(members) | Value::List(members) => Some(members),
            _ => None,
        }
    }

    /// Pairs of a dictionary, or of what a call made one.
    pub fn items<'b>(&self, of: &'b Value) -> Option<&'b [(Id, Id)]> {
        match of {
            Value::Dict(items) => Some(items),
            Value::Call(call) => Some(&call.items),
            _ => None,
        }
    }

    /// What a dictionary has under a name; of equal ones the last.
    pub fn get(&self, of: &Value, key: &str) -> Option<&Value> {
        let mut pairs = self.items(of)?.iter().rev();
        let found = pairs.find(|(k, _)| self.bytes(*k) == Some(key.as_bytes()));
        found.map(|(_, value)| &self.values[*value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[("collections", "OrderedDict"), ("numpy", "dtype")];

    fn refused(bytes: &[u8]) -> String {
        match Pickle::parse(bytes, KNOWN) {
            Ok(_) => panic!("read"),
            Err(why) => why,
        }
    }

    #[test]
    fn reads_small_things() {
        let bytes = b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x07M\x00\x01J\xff\xff\xff\xff\
                      \x8a\x01\xfeeU\x01a]U\x01bau.";
        let p = Pickle::parse(bytes, &[]).unwrap();
        let Some(Value::List(ids)) = p.get(p.top(), "labels") else { panic!("no list") };
        let numbers: Vec<&Value> = ids.iter().map(|id| p.value(*id)).collect();
        let expected = [7, 256, -1, -2].map(Value::Int);
        assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
        assert_eq!((p.size(ids[1]), p.size(ids[2])), (Some(256), None));
        assert_eq!(p.get(p.top(), "none"), None);
    }

    #[test]
    fn calls_are_kept_and_not_made() {
        let bytes = b"ccollections\nOrderedDict\n)R(U\x01aK\x05u}b.";
        let p = Pickle::parse(bytes, KNOWN).unwrap();
        let Value::Call(call) = p.top() else { panic!("no call") };
        assert_eq!((call.name, p.argument(call, 0), call.state.is_some()), (0, None, true));
        assert_eq!(p.get(p.top(), "a"), Some(&Value::Int(5)));
        let elsewhere = Pickle::parse(b"U\x01xQ.", KNOWN).unwrap();
        assert!(
            matches!(elsewhere.top(), Value::Persistent(id) if elsewhere.bytes(*id) == Some(b"x"))
        );
    }

    #[test]
    fn unknown_names_are_refused() {
        let why = refused(b"\x80\x02cos\nsystem\n(U\x04haltR.");
        assert_eq!(why, "it wants to call os.system, which is refused");
        assert!(refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93.").contains("os.system"));
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for bytes in [
            &b""[..],
            b".",
            b"(((((e.",
            b"T\xff\xff\xff\x7fabc.",
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc.",
            b"}h\x09.",
            b"}(K\x01u.",
            b"\x8a\xff.",
            b"cnumpy\ndtype\nK\x01R.",
            b"K\x01K\x02b.",
            b"Q.",
        ] {
            refused(bytes);
        }
    }
}
