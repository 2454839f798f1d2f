//! The stack machine a pickle is a program for, with the instructions that files of arrays use.

use std::collections::HashMap;
use std::ops::Range;

use super::{Call, Id, Known, Value};

/// More values than any file of arrays has by far (CIFAR-100's has some 150,000).
const MOST_VALUES: usize = 4_000_000;

pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    known: &'a [Known],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl<'a> Machine<'a> {
    pub fn new(bytes: &'a [u8], known: &'a [Known]) -> Self {
        Machine {
            bytes,
            known,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    /// Runs the program to its end: all values, and which of them is the result.
    pub fn run(mut self) -> Result<(Vec<Value>, Id), String> {
        loop {
            let op = self.number(1)? as u8;
            if op == b'.' {
                let top = self.pop()?;
                return Ok((self.values, top));
            }
            self.step(op)?;
        }
    }

    fn step(&mut self, op: u8) -> Result<(), String> {
        match op {
            0x80 => self.number(1).map(drop), // PROTO
            0x95 => self.number(8).map(drop), // FRAME
            b'(' => {
                self.marks.push(self.stack.len()); // MARK
                Ok(())
            }
            b'q' => self.memoise(1),                       // BINPUT
            b'r' => self.memoise(4),                       // LONG_BINPUT
            0x94 => self.memoise(0),                       // MEMOIZE
            b'h' => self.recall(1),                        // BINGET
            b'j' => self.recall(4),                        // LONG_BINGET
            b'N' | 0x88 | 0x89 => self.push(Value::Other), // NONE, NEWTRUE, NEWFALSE
            b'G' => self.number(8).and_then(|_| self.push(Value::Other)), // BINFLOAT
            b'K' => self.int(1),                           // BININT1
            b'M' => self.int(2),                           // BININT2
            b'J' => self.int(4),                           // BININT
            0x8a => self.long(),                           // LONG1
            b'U' | b'C' | 0x8c => self.string(1),          // SHORT_BIN: STRING, BYTES, UNICODE
            b'T' | b'B' | b'X' => self.string(4),          // BINSTRING, BINBYTES, BINUNICODE
            0x8d | 0x8e => self.string(8),                 // BINUNICODE8, BINBYTES8
            b'c' => self.global(),                         // GLOBAL
            0x93 => self.stack_global(),                   // STACK_GLOBAL
            b'}' => self.push(Value::Dict(Vec::new())),    // EMPTY_DICT
            b']' => self.push(Value::List(Vec::new())),    // EMPTY_LIST
            b')' => self.push(Value::Tuple(Vec::new())),   // EMPTY_TUPLE
            0x85..=0x87 => self.short_tuple(usize::from(op - 0x84)), // TUPLE1 to TUPLE3
            b't' => {
                let ids = self.since_mark()?; // TUPLE
                self.push(Value::Tuple(ids))
            }
            b'a' => {
                let one = self.pop()?; // APPEND
                self.append(vec![one])
            }
            b'e' => {
                let ids = self.since_mark()?; // APPENDS
                self.append(ids)
            }
            b's' => {
                let value = self.pop()?; // SETITEM
                let key = self.pop()?;
                self.set(&[key, value])
            }
            b'u' => {
                let ids = self.since_mark()?; // SETITEMS
                self.set(&ids)
            }
            b'R' => self.reduce(), // REDUCE
            b'b' => self.build(),  // BUILD
            b'Q' => {
                let by = self.pop()?; // BINPERSID
                self.push(Value::Persistent(by))
            }
            other => Err(format!(
                "byte {} holds the instruction {other:#04x}, which files of arrays never use",
                self.at - 1
            )),
        }
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() == MOST_VALUES {
            return Err(format!("it holds more than {MOST_VALUES} values"));
        }
        self.stack.push(self.values.len());
        self.values.push(value);
        Ok(())
    }

    /// The top of the stack, as long as it lies above the last mark.
    fn pop(&mut self) -> Result<Id, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => Ok(self.stack.pop().unwrap_or_default()),
            false => Err(format!("nothing is on the stack at byte {}", self.at)),
        }
    }

    fn top(&self) -> Result<Id, String> {
        let none = || format!("nothing is on the stack at byte {}", self.at);
        self.stack.last().copied().ok_or_else(none)
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| format!("no mark is open at byte {}", self.at))?;
        Ok(self.stack.split_off(mark))
    }

    fn take(&mut self, n: usize) -> Result<Range<usize>, String> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let end =
            end.ok_or_else(|| format!("it ends inside a value that starts at byte {}", self.at))?;
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    /// A little-endian number of `width` bytes.
    fn number(&mut self, width: usize) -> Result<u64, String> {
        let range = self.take(width)?;
        let bytes = self.bytes[range].iter().rev();
        Ok(bytes.fold(0, |sum, &b| sum << 8 | u64::from(b)))
    }

    fn int(&mut self, width: usize) -> Result<(), String> {
        let value = self.number(width)?;
        // Only the widest of the three is signed.
        let value = if width == 4 { i64::from(value as u32 as i32) } else { value as i64 };
        self.push(Value::Int(value))
    }

    fn long(&mut self) -> Result<(), String> {
        let width = self.number(1)? as usize;
        if width > 8 {
            return Err(format!("a number of {width} bytes at byte {}", self.at));
        }
        let value = self.number(width)? as i64;
        let unused = 64 - 8 * width as u32;
        let value = if width == 0 { 0 } else { value << unused >> unused };
        self.push(Value::Int(value))
    }

    fn string(&mut self, width: usize) -> Result<(), String> {
        let length = usize::try_from(self.number(width)?).unwrap_or(usize::MAX);
        let range = self.take(length)?;
        self.push(Value::Text(range))
    }

    /// Remembers the top of the stack under the number that follows, or under the next free one.
    fn memoise(&mut self, width: usize) -> Result<(), String> {
        let key = match width {
            0 => self.memo.len() as u64,
            _ => self.number(width)?,
        };
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, width: usize) -> Result<(), String> {
        let key = self.number(width)?;
        let id = self.memo.get(&key).copied();
        self.stack.push(id.ok_or_else(|| format!("it recalls the unknown value {key}"))?);
        Ok(())
    }

    fn short_tuple(&mut self, n: usize) -> Result<(), String> {
        let mut ids = (0..n).map(|_| self.pop()).collect::<Result<Vec<Id>, String>>()?;
        ids.reverse();
        self.push(Value::Tuple(ids))
    }

    fn append(&mut self, ids: Vec<Id>) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::List(items) => items.extend(ids),
            _ => return Err(format!("something is added to no list at byte {}", self.at)),
        }
        Ok(())
    }

    fn set(&mut self, ids: &[Id]) -> Result<(), String> {
        let dict = self.top()?;
        match &mut self.values[dict] {
            Value::Dict(pairs) | Value::Call(Call { items: pairs, .. })
                if ids.len().is_multiple_of(2) =>
            {
                pairs.extend(ids.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => {
                return Err(format!("something is set in no dictionary at byte {}", self.at));
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Result<Range<usize>, String> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().take(256).position(|&b| b == b'\n');
        let end = end.ok_or_else(|| format!("a name at byte {} does not end", self.at))?;
        let range = self.take(end)?;
        self.at += 1;
        Ok(range)
    }

    fn global(&mut self) -> Result<(), String> {
        let (module, name) = (self.line()?, self.line()?);
        self.named(module, name)
    }

    fn stack_global(&mut self) -> Result<(), String> {
        let (name, module) = (self.pop()?, self.pop()?);
        match (&self.values[module], &self.values[name]) {
            (Value::Text(module), Value::Text(name)) => self.named(module.clone(), name.clone()),
            _ => Err(format!("a name at byte {} is no string", self.at)),
        }
    }

    fn named(&mut self, module: Range<usize>, name: Range<usize>) -> Result<(), String> {
        let (module, name) = (&self.bytes[module], &self.bytes[name]);
        let is = |known: &Known| known.0.as_bytes() == module && known.1.as_bytes() == name;
        match self.known.iter().position(is) {
            Some(known) => self.push(Value::Global(known)),
            None => Err(format!(
                "it wants to call {}.{}, which is refused",
                String::from_utf8_lossy(module).escape_default(),
                String::from_utf8_lossy(name).escape_default()
            )),
        }
    }

    fn reduce(&mut self) -> Result<(), String> {
        let (arguments, call) = (self.pop()?, self.pop()?);
        match (&self.values[call], &self.values[arguments]) {
            (Value::Global(name), Value::Tuple(_)) => {
                let call = Call { name: *name, arguments, state: None, items: vec![] };
                self.push(Value::Call(call))
            }
            _ => Err(format!("a call at byte {} is not understood", self.at)),
        }
    }

    /// Sets the state of what a call would have made.
    fn build(&mut self) -> Result<(), String> {
        let state = self.pop()?;
        let object = self.top()?;
        match &mut self.values[object] {
            Value::Call(call) => {
                call.state = Some(state);
                Ok(())
            }
            _ => Err(format!("a state at byte {} belongs to nothing", self.at)),
        }
    }
}
