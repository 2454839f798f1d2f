//! PyTorch's own files (`torch.save`: `.pth`, `.pt`, `.bin`): a zip archive with a pickle of the
//! tensors' names and shapes, and a file of plain numbers for each storage.
//!
//! Nothing is executed: the pickle is [read as data](anchorhood_storage::pickle), with the few calls
//! by which tensors are described. Only what PyTorch has written since version 1.6 is read,
//! archives whose files are not compressed.

use std::collections::HashMap;

use anchorhood_storage::pickle::{Call, Id, Known, Pickle, Value};

use rawzip::{CompressionMethod, ZipArchive};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

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

/// Whether bytes begin as a zip archive does.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// All tensors of a state dict; training scripts often keep it in a dictionary under `state_dict`
/// or `model`.
pub(crate) fn tensors(bytes: &[u8]) -> Result<Vec<(String, TensorView<'_>)>, String> {
    let files = archive(bytes)?;
    let (name, pickled) = files
        .iter()
        .find(|(name, _)| name.ends_with("/data.pkl") || *name == "data.pkl")
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
        let tensor = storages.tensor(pickle.value(*value));
        let tensor = tensor.map_err(|why| format!("{}: {why}", name.escape_default()))?;
        tensors.extend(tensor.map(|tensor| (name.into_owned(), tensor)));
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
    files: &'b HashMap<String, &'a [u8]>,
    folder: &'b str,
}

impl<'a> Storages<'a, '_> {
    /// A tensor as it is described; none for what is no tensor, such as the number of an epoch.
    fn tensor(&self, value: &Value) -> Result<Option<TensorView<'a>>, String> {
        match value {
            Value::Call(call) if call.name == PARAMETER => {
                let inner = self.pickle.argument(call, 0).ok_or("it has no values")?;
                match self.pickle.value(inner) {
                    Value::Call(call) if call.name == TENSOR => self.rebuilt(call).map(Some),
                    _ => Err("it has no values".into()),
                }
            }
            Value::Call(call) if call.name == TENSOR => self.rebuilt(call).map(Some),
            _ => Ok(None),
        }
    }

    /// storage, offset, shape, strides, …
    fn rebuilt(&self, call: &Call) -> Result<TensorView<'a>, String> {
        let wrong = "its description is not understood";
        let argument = |place| self.pickle.argument(call, place).ok_or(wrong);
        let sizes = |id: Id| -> Result<Vec<usize>, String> {
            let ids = self.pickle.members(id).ok_or(wrong)?;
            let all: Option<Vec<usize>> = ids.iter().map(|id| self.pickle.size(*id)).collect();
            all.filter(|all| all.len() <= 8).ok_or(wrong.into())
        };
        let (dtype, storage) = self.storage(argument(0)?)?;
        let offset = self.pickle.size(argument(1)?).ok_or(wrong)?;
        let (shape, strides) = (sizes(argument(2)?)?, sizes(argument(3)?)?);
        let expected = row_major(&shape);
        let in_order = |d: usize| shape[d] == 1 || strides.get(d) == Some(&expected[d]);
        if strides.len() != shape.len() || !(0..shape.len()).all(in_order) {
            return Err("its numbers are not one after the other; save model.state_dict() with \
                        contiguous tensors"
                .into());
        }
        let count = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        let bytes = count.and_then(|count| {
            let each = dtype.bitsize() / 8;
            let begin = offset.checked_mul(each)?;
            storage.get(begin..begin.checked_add(count.checked_mul(each)?)?)
        });
        let bytes = bytes.ok_or("the file ends before its numbers do")?;
        TensorView::new(dtype, shape, bytes).map_err(|e| e.to_string())
    }

    /// ('storage', kind, key, device, length), kept beside the pickle.
    fn storage(&self, id: Id) -> Result<(Dtype, &'a [u8]), String> {
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
        let dtype = match KNOWN[*kind].1 {
            "FloatStorage" => Dtype::F32,
            "HalfStorage" => Dtype::F16,
            "BFloat16Storage" => Dtype::BF16,
            "LongStorage" => Dtype::I64,
            "IntStorage" => Dtype::I32,
            "BoolStorage" => Dtype::BOOL,
            "DoubleStorage" => Dtype::F64,
            _ => return Err(wrong()),
        };
        let key = self.pickle.text(key).ok_or_else(wrong)?;
        let file = format!("{}data/{key}", self.folder);
        let bytes = self.files.get(file.as_str());
        Ok((dtype, bytes.ok_or("the archive lacks its numbers")?))
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
fn archive(bytes: &[u8]) -> Result<HashMap<String, &[u8]>, String> {
    let cut = |_| "the archive is cut off or damaged".to_string();
    let archive = ZipArchive::from_slice(bytes).map_err(cut)?;
    let (mut entries, mut files) = (archive.entries(), HashMap::new());
    while let Some(entry) = entries.next_entry().map_err(cut)? {
        if entry.compression_method() != CompressionMethod::STORE {
            return Err("the archive is compressed, which torch.save never does".into());
        }
        let content = archive.get_entry(entry.wayfinder()).map_err(cut)?;
        let (from, to) = content.compressed_data_range(); // found to be in `bytes`
        let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        files.insert(name, &bytes[from as usize..to as usize]);
    }
    Ok(files)
}
