//! PyTorch's own files (`torch.save`: `.pth`, `.pt`, `.bin`): a zip archive with a pickle of the
//! tensors' names and shapes, and a file of plain numbers for each storage.
//!
//! Nothing is executed: the pickle is [read as data](anchorhood_files::pickle), with the few calls
//! by which tensors are described. Only what PyTorch has written since version 1.6 is read,
//! archives whose files are not compressed.

use std::collections::HashMap;

use anchorhood_files::pickle::{Call, Id, Known, Pickle, Value};

use crate::raw_tensor::{Number, RawTensor};

const KNOWN: &[Known] = &[
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("collections", "OrderedDict"),
    ("torch", "FloatStorage"),
    ("torch", "HalfStorage"),
    ("torch", "BFloat16Storage"),
    ("torch", "LongStorage"),
    ("torch", "IntStorage"),
    ("torch", "BoolStorage"),
    ("torch", "DoubleStorage"),
    ("torch", "Size"),
];
const TENSOR: usize = 0;
const PARAMETER: usize = 1;
const ORDERED_DICT: usize = 2;
const STORAGES: std::ops::Range<usize> = 3..10;

/// Whether bytes begin as a zip archive does.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// All tensors of a state dict; training scripts often keep it in a dictionary under `state_dict`
/// or `model`.
pub(crate) fn tensors(bytes: &[u8]) -> Result<Vec<RawTensor<'_>>, String> {
    let files = archive(bytes)?;
    let (name, pickled) = files
        .iter()
        .find(|(name, _)| name.ends_with("/data.pkl") || **name == "data.pkl")
        .ok_or("the archive has no data.pkl, so PyTorch did not write it")?;
    let folder = name.trim_end_matches("data.pkl");
    let pickle = Pickle::parse(pickled, KNOWN)?;
    let inside = ["state_dict", "model"].map(|key| pickle.get(pickle.top(), key));
    let inside = inside.into_iter().flatten().find(|v| is_dict(v));
    let top = inside.unwrap_or(pickle.top());
    if !is_dict(top) {
        return Err("it does not hold a dictionary of tensors".into());
    }
    let storages = Storages { pickle: &pickle, files: &files, folder };
    let mut tensors = vec![];
    for (key, value) in pickle.items(top).unwrap_or_default() {
        let name = pickle.text(*key).ok_or("a tensor has no name")?;
        let tensor = storages.tensor(&name, pickle.value(*value));
        tensors.extend(tensor.map_err(|why| format!("{}: {why}", name.escape_default()))?);
    }
    Ok(tensors)
}

fn is_dict(value: &Value) -> bool {
    match value {
        Value::Dict(_) => true,
        Value::Call(call) => call.name == ORDERED_DICT,
        _ => false,
    }
}

struct Storages<'a, 'b> {
    pickle: &'b Pickle<'a>,
    files: &'b HashMap<&'a str, &'a [u8]>,
    folder: &'b str,
}

impl<'a> Storages<'a, '_> {
    /// A tensor as it is described; none for what is no tensor, such as the number of an epoch.
    fn tensor(&self, name: &str, value: &Value) -> Result<Option<RawTensor<'a>>, String> {
        match value {
            Value::Call(call) if call.name == PARAMETER => {
                let inner = self.pickle.argument(call, 0).ok_or("it has no values")?;
                match self.pickle.value(inner) {
                    Value::Call(call) if call.name == TENSOR => self.rebuilt(name, call).map(Some),
                    _ => Err("it has no values".into()),
                }
            }
            Value::Call(call) if call.name == TENSOR => self.rebuilt(name, call).map(Some),
            _ => Ok(None),
        }
    }

    /// storage, offset, shape, strides, …
    fn rebuilt(&self, name: &str, call: &Call) -> Result<RawTensor<'a>, String> {
        let wrong = "its description is not understood";
        let argument = |place| self.pickle.argument(call, place).ok_or(wrong);
        let sizes = |id: Id| -> Result<Vec<usize>, String> {
            let ids = self.pickle.members(id).ok_or(wrong)?;
            let all: Option<Vec<usize>> = ids.iter().map(|id| self.pickle.size(*id)).collect();
            all.filter(|all| all.len() <= 8).ok_or(wrong.into())
        };
        let (kind, storage) = self.storage(argument(0)?)?;
        let offset = self.pickle.size(argument(1)?).ok_or(wrong)?;
        let (shape, strides) = (sizes(argument(2)?)?, sizes(argument(3)?)?);
        let expected = row_major(&shape);
        let in_order = |d: usize| shape[d] == 1 || strides.get(d) == Some(&expected[d]);
        if strides.len() != shape.len() || !(0..shape.len()).all(in_order) {
            return Err("its numbers are not one after the other; save model.state_dict() with contiguous tensors".into());
        }
        let count = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        let range = count.and_then(|count| {
            let begin = offset.checked_mul(kind.bytes())?;
            let end = begin.checked_add(count.checked_mul(kind.bytes())?)?;
            storage.get(begin..end)
        });
        Ok(RawTensor {
            name: name.into(),
            shape,
            kind,
            bytes: range.ok_or("the file ends before its numbers do")?,
        })
    }

    /// ('storage', kind, key, device, length), kept beside the pickle.
    fn storage(&self, id: Id) -> Result<(Number, &'a [u8]), String> {
        let wrong = || "its storage is not understood".to_string();
        let Value::Persistent(id) = self.pickle.value(id) else {
            return Err(wrong());
        };
        let &[_, kind, key, _, _] = self.pickle.members(*id).ok_or_else(wrong)? else {
            return Err(wrong());
        };
        let Value::Global(kind) = self.pickle.value(kind) else {
            return Err(wrong());
        };
        let kind = match KNOWN[*kind].1 {
            "FloatStorage" => Number::F32,
            "HalfStorage" => Number::F16,
            "BFloat16Storage" => Number::Bf16,
            _ if STORAGES.contains(kind) => Number::Other,
            _ => return Err(wrong()),
        };
        let key = self.pickle.text(key).ok_or_else(wrong)?;
        let file = format!("{}data/{key}", self.folder);
        let bytes = self.files.get(file.as_str());
        Ok((kind, bytes.ok_or("the archive lacks its numbers")?))
    }
}

/// Where the next value along each dimension lies.
fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].saturating_mul(shape[d + 1]);
    }
    strides
}

/// The files of a zip archive that are not compressed, by name.
fn archive(bytes: &[u8]) -> Result<HashMap<&str, &[u8]>, String> {
    let cut = || "the archive is cut off or damaged".to_string();
    let end = bytes.len().checked_sub(22).ok_or_else(cut)?;
    // A comment of up to 64 KiB may follow the end record.
    let from = end.saturating_sub(1 << 16);
    let record = (from..=end).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06"));
    let record = record.ok_or_else(cut)?;
    let (mut count, mut at) = (
        number(bytes, record + 10, 2).ok_or_else(cut)?,
        number(bytes, record + 16, 4).ok_or_else(cut)?,
    );
    // What does not fit is said by the record of zip64, and that one is named 20 bytes before.
    let locator = record.checked_sub(20).filter(|at| bytes[*at..].starts_with(b"PK\x06\x07"));
    if let Some(locator) = locator {
        let record = number(bytes, locator + 8, 8).ok_or_else(cut)?;
        count = number(bytes, record.checked_add(32).ok_or_else(cut)?, 8).ok_or_else(cut)?;
        at = number(bytes, record.checked_add(48).ok_or_else(cut)?, 8).ok_or_else(cut)?;
    }
    let mut files = HashMap::new();
    for _ in 0..count {
        let (name, content, next) = entry(bytes, at).ok_or_else(cut)?;
        match content {
            Some(content) => files.insert(name, content),
            None => return Err("the archive is compressed, which torch.save never does".into()),
        };
        at = next;
    }
    Ok(files)
}

/// A file of the directory: its name, its bytes unless they are compressed, and where the next
/// entry is.
fn entry(bytes: &[u8], at: usize) -> Option<(&str, Option<&[u8]>, usize)> {
    let field = |offset: usize, width| number(bytes, at.checked_add(offset)?, width);
    if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (method, name_length, extra_length) = (field(10, 2)?, field(28, 2)?, field(30, 2)?);
    let comment = field(32, 2)?;
    let name_at = at + 46;
    let name = std::str::from_utf8(bytes.get(name_at..name_at + name_length)?).ok()?;
    let extra = bytes.get(name_at + name_length..name_at + name_length + extra_length)?;
    let (length, header) = zip64(field(24, 4)?, field(20, 4)?, field(42, 4)?, extra)?;
    let local = bytes.get(header..)?;
    if !local.starts_with(b"PK\x03\x04") {
        return None;
    }
    let begin = header
        .checked_add(30)?
        .checked_add(number(local, 26, 2)?)?
        .checked_add(number(local, 28, 2)?)?;
    let content = bytes.get(begin..begin.checked_add(length)?)?;
    let next = name_at + name_length + extra_length + comment;
    Some((name, (method == 0).then_some(content), next))
}

/// An entry's length and place, from its extra field where they have no room.
fn zip64(length: usize, packed: usize, place: usize, extra: &[u8]) -> Option<(usize, usize)> {
    const ELSEWHERE: usize = 0xffff_ffff;
    let mut values = [length, packed, place];
    if !values.contains(&ELSEWHERE) {
        return Some((length, place));
    }
    let mut at = 0;
    while let (Some(id), Some(size)) = (number(extra, at, 2), number(extra, at + 2, 2)) {
        if id == 1 {
            let mut from = at + 4;
            for value in values.iter_mut().filter(|v| **v == ELSEWHERE) {
                *value = number(extra, from, 8)?;
                from += 8;
            }
            return Some((values[0], values[2]));
        }
        at += 4 + size;
    }
    None
}

/// A little-endian number of `width` bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?)?.iter().rev();
    usize::try_from(bytes.fold(0_u64, |n, b| n << 8 | u64::from(*b))).ok()
}
