//! Arrays of a MATLAB file: what a variable holds.

use std::io::{Read, Take};

use super::Reason;
use super::element::{self, INT8, INT32, MATRIX, Tag, UINT8, UINT32, numbers, read_bytes};

/// Cells in cells in structures: deeper than any published list.
const DEEPEST: usize = 8;
/// Names and sizes are short.
const SHORT: u64 = 4096;
/// All field names of a structure.
const FIELD_NAMES: u64 = 1 << 16;

const CELL: u8 = 1;
const STRUCTURE: u8 = 2;
const TEXT: u8 = 4;
const DOUBLE: u8 = 6;
const BYTES: u8 = 9;
const LAST_NUMERIC: u8 = 15;

/// What a variable holds. Elements are in MATLAB's order: the first dimension changes fastest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Unsigned bytes, with the sizes of all dimensions.
    Bytes(Vec<usize>, Vec<u8>),
    /// Other numbers.
    Numbers(Vec<f64>),
    /// Characters.
    Text(String),
    /// Cells, each with a value of its own.
    Cells(Vec<Value>),
    /// Structures, each with a value for every field.
    Structures(Vec<String>, Vec<Vec<Value>>),
}

impl Value {
    /// Numbers, also where they are stored as bytes.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Value::Numbers(numbers) => Some(numbers.clone()),
            Value::Bytes(_, bytes) => Some(bytes.iter().map(|&b| f64::from(b)).collect()),
            _ => None,
        }
    }

    /// Text, as it is or as the only cell.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Cells(cells) if cells.len() == 1 => cells[0].text(),
            _ => None,
        }
    }

    /// The field of a structure in an array of structures.
    pub fn field(&self, element: usize, name: &str) -> Option<&Value> {
        let Value::Structures(fields, rows) = self else {
            return None;
        };
        let at = fields.iter().position(|field| field == name)?;
        rows.get(element)?.get(at)
    }

    fn empty() -> Self {
        Value::Numbers(Vec::new())
    }
}

/// The variable that follows, with its place in `wanted`, if its name is there. The rest of `input`
/// may be left unread.
pub(super) fn read_wanted(
    input: &mut Take<impl Read>,
    wanted: &[&str],
    most: u64,
) -> Result<Option<(usize, Value)>, Reason> {
    let bytes = input.limit();
    let head = Head::read(input)?;
    let Some(at) = wanted.iter().position(|name| *name == head.name) else {
        return Ok(None);
    };
    if bytes > most + SHORT {
        return Err(format!("{} has {bytes} bytes where at most {most} are expected", head.name));
    }
    Ok(Some((at, read_rest(input, head, most, 0)?)))
}

/// What comes before an array's data.
struct Head {
    class: u8,
    dimensions: Vec<usize>,
    name: String,
}

impl Head {
    fn read(input: &mut impl Read) -> Result<Head, Reason> {
        let (kind, flags) = read_bytes(input, SHORT)?;
        if kind != UINT32 || flags.len() != 8 {
            return Err("an array begins in an unknown way".into());
        }
        let (kind, sizes) = read_bytes(input, SHORT)?;
        if kind != INT32 {
            return Err("an array without sizes".into());
        }
        let sizes = sizes.chunks_exact(4);
        let size = |b: &[u8]| i32::from_le_bytes(b.try_into().expect("four bytes"));
        let dimensions = sizes.map(|b| usize::try_from(size(b)).ok());
        let dimensions: Option<Vec<usize>> = dimensions.collect();
        let dimensions = dimensions.ok_or("an array of negative size")?;
        let (_, name) = read_bytes(input, SHORT)?;
        Ok(Head { class: flags[0], dimensions, name: String::from_utf8_lossy(&name).into_owned() })
    }

    fn elements(&self) -> Result<usize, Reason> {
        let product = self.dimensions.iter().try_fold(1, |p: usize, &d| p.checked_mul(d));
        product.ok_or_else(|| "an array of impossible size".into())
    }
}

fn read_rest(input: &mut impl Read, head: Head, most: u64, depth: usize) -> Result<Value, Reason> {
    let elements = head.elements()?;
    let name = head.name;
    let other_count = |of, found| format!("{name} is to have {elements} {of}, and has {found}");
    match head.class {
        CELL => cells(input, elements, most, depth).map(Value::Cells),
        STRUCTURE => structures(input, elements, most, depth),
        TEXT => {
            let (kind, bytes) = read_bytes(input, most)?;
            Ok(Value::Text(text(kind, &bytes)?))
        }
        BYTES => {
            let (kind, bytes) = read_bytes(input, most)?;
            match kind == UINT8 && bytes.len() == elements {
                true => Ok(Value::Bytes(head.dimensions, bytes)),
                false => Err(other_count("bytes", bytes.len())),
            }
        }
        DOUBLE..=LAST_NUMERIC => {
            let (kind, bytes) = read_bytes(input, most)?;
            let numbers = numbers(kind, &bytes)?;
            match numbers.len() == elements {
                true => Ok(Value::Numbers(numbers)),
                false => Err(other_count("numbers", numbers.len())),
            }
        }
        other => Err(format!("{name} is of a class that is not read here ({other})")),
    }
}

fn text(kind: u32, bytes: &[u8]) -> Result<String, Reason> {
    if kind == element::UTF8 || kind == UINT8 || kind == INT8 {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let units: Vec<u16> = numbers(kind, bytes)?.iter().map(|&n| n as u16).collect();
    Ok(String::from_utf16_lossy(&units))
}

fn cells(
    input: &mut impl Read,
    elements: usize,
    most: u64,
    depth: usize,
) -> Result<Vec<Value>, Reason> {
    // No room is taken for a count: the cells must arrive.
    (0..elements).map(|_| cell(input, most, depth)).collect()
}

fn cell(input: &mut impl Read, most: u64, depth: usize) -> Result<Value, Reason> {
    if depth >= DEEPEST {
        return Err(format!("cells nest deeper than {DEEPEST}"));
    }
    let tag = Tag::read(input)?;
    if tag.kind != MATRIX {
        return Err("a cell holds no array".into());
    }
    if tag.bytes == 0 {
        return Ok(Value::empty());
    }
    // `dyn`, for otherwise every depth would be a type of its own.
    let mut body = (input as &mut dyn Read).take(tag.bytes);
    let head = Head::read(&mut body)?;
    let value = read_rest(&mut body, head, most, depth + 1)?;
    element::skip(&mut body)?;
    Ok(value)
}

fn structures(
    input: &mut impl Read,
    elements: usize,
    most: u64,
    depth: usize,
) -> Result<Value, Reason> {
    let (_, width) = read_bytes(input, 4)?;
    let width = match <[u8; 4]>::try_from(width) {
        Ok(bytes) => u32::from_le_bytes(bytes) as usize,
        Err(_) => 0,
    };
    if !(1..=SHORT as usize).contains(&width) {
        return Err("a structure whose field names have no length".into());
    }
    let (_, names) = read_bytes(input, FIELD_NAMES)?;
    let names: Vec<String> = names
        .chunks_exact(width)
        .map(|name| {
            let end = name.iter().position(|&b| b == 0).unwrap_or(width);
            String::from_utf8_lossy(&name[..end]).into_owned()
        })
        .collect();
    if names.is_empty() {
        // Without fields nothing would arrive to bound the count.
        return Ok(Value::Structures(names, Vec::new()));
    }
    let row = |input: &mut _| cells(input, names.len(), most, depth);
    let mut rows = Vec::new();
    for _ in 0..elements {
        rows.push(row(input)?);
    }
    Ok(Value::Structures(names, rows))
}
