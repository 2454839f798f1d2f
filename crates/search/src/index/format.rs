//! The bytes of an index: safetensors, format version 1.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `vectors` | F32, unit length | pictures × dim |
//! | `names`, `name_ends` | U8 (UTF-8, one after the other), U64 | bytes; pictures |
//! | `classes` | U32, place in the metadata's `classes`, or the largest number for none | pictures (where there are classes) |
//! | `thumbnails`, `thumbnail_ends` | U8 (JPEG files one after the other), U64 | bytes; pictures (where asked for) |
//! | `centres`, `list_starts`, `list_members` | F32, U32, U32 | clusters × dim; clusters + 1; pictures (where divided) |
//!
//! Metadata: `format` (anchorhood-index), `version`, `model` (fingerprint), `layer` (where it is not the last), `folder`,
//! `folder_from_here` (the same relative to the index's own folder, for when both were moved together),
//! `classes` (JSON), `recall` (where divided).

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use anchorhood_files::AtomicFile;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::{IndexParts, Thumbnails};
use crate::Lists;

const FORMAT: &str = "anchorhood-index";
const VERSION: &str = "1";
const NO_CLASS: u32 = u32::MAX;

/// Writes the file, whole or not at all.
pub(super) fn write(parts: &IndexParts, path: &Path) -> std::io::Result<()> {
    let n = parts.names.len();
    let names: Vec<u8> = parts.names.concat().into_bytes();
    let mut end = 0;
    let ends = parts.names.iter().map(|name| {
        end += name.len() as u64;
        end
    });
    let name_ends: Vec<u64> = ends.collect();
    let (class_names, classes) = numbered(&parts.classes);
    let mut tensors: Vec<(&str, Dtype, Vec<usize>, &[u8])> = vec![
        (
            "vectors",
            Dtype::F32,
            vec![n, parts.dim],
            bytes(&parts.vectors),
        ),
        ("names", Dtype::U8, vec![names.len()], &names),
        ("name_ends", Dtype::U64, vec![n], bytes(&name_ends)),
    ];
    if !class_names.is_empty() {
        tensors.push(("classes", Dtype::U32, vec![n], bytes(&classes)));
    }
    if let Some(t) = &parts.thumbnails {
        tensors.push(("thumbnails", Dtype::U8, vec![t.bytes.len()], &t.bytes));
        tensors.push(("thumbnail_ends", Dtype::U64, vec![n], bytes(&t.ends)));
    }
    if let Some((lists, _)) = &parts.lists {
        let shape = vec![lists.len(), parts.dim];
        tensors.push(("centres", Dtype::F32, shape, bytes(&lists.centres)));
        let starts = vec![lists.starts.len()];
        tensors.push(("list_starts", Dtype::U32, starts, bytes(&lists.starts)));
        tensors.push(("list_members", Dtype::U32, vec![n], bytes(&lists.members)));
    }
    let views = tensors.into_iter().map(|(name, dtype, shape, data)| {
        let view = TensorView::new(dtype, shape, data);
        (name, view.expect("the bytes have their shape"))
    });
    let metadata = metadata(parts, &class_names, path);
    let encoded = safetensors::serialize(views, Some(metadata)).map_err(std::io::Error::other)?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(&encoded)?;
    file.finish()
}

/// Files are little endian, as every machine this runs on is.
fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) }
    bytemuck::cast_slice(values)
}

fn numbered(classes: &[Option<String>]) -> (Vec<&String>, Vec<u32>) {
    let mut numbers: BTreeMap<&String, u32> =
        classes.iter().flatten().map(|name| (name, 0)).collect();
    for (number, (_, place)) in numbers.iter_mut().enumerate() {
        *place = number as u32;
    }
    let number = |class: &Option<String>| class.as_ref().map_or(NO_CLASS, |name| numbers[name]);
    let of = classes.iter().map(number).collect();
    (numbers.keys().copied().collect(), of)
}

fn metadata(parts: &IndexParts, classes: &[&String], path: &Path) -> HashMap<String, String> {
    let mut fields = vec![
        ("format", FORMAT.into()),
        ("version", VERSION.into()),
        ("model", parts.model.clone()),
        ("folder", parts.folder.display().to_string()),
    ];
    if let Some(layer) = &parts.layer {
        fields.push(("layer", layer.clone()));
    }
    let here = std::path::absolute(path).ok();
    let here = here.as_deref().and_then(Path::parent);
    if let Some(from_here) = here.and_then(|here| from_to(here, &parts.folder)) {
        fields.push(("folder_from_here", from_here));
    }
    if !classes.is_empty() {
        let names = serde_json::to_string(classes).expect("plain values become JSON");
        fields.push(("classes", names));
    }
    if let Some((_, recall)) = &parts.lists {
        fields.push(("recall", recall.to_string()));
    }
    fields.into_iter().map(|(k, v)| (k.into(), v)).collect()
}

/// The way from one folder to another, both from the root; with as many `..` as it takes.
fn from_to(from: &Path, to: &Path) -> Option<String> {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return None; // on another disk
    }
    let up = std::iter::repeat_n("..".as_ref(), from.len() - common);
    let down = to[common..].iter().map(|c| c.as_os_str());
    let way: PathBuf = up.chain(down).collect();
    way.to_str().map(str::to_owned)
}

/// The reason is a clause: "the file ends early".
pub(super) fn decode(data: &[u8], path: &Path) -> Result<IndexParts, String> {
    let broken = |e| match data.len() {
        0 => "the file is empty".to_string(),
        _ => format!("the file ends early, was damaged, or is no safetensors file ({e})"),
    };
    let (_, header) = SafeTensors::read_metadata(data).map_err(broken)?;
    let file = SafeTensors::deserialize(data).map_err(broken)?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let field = |name: &str| metadata.get(name).cloned();
    if field("format").as_deref() != Some(FORMAT) {
        return Err("it is of another program, or a checkpoint".into());
    }
    let version = field("version").unwrap_or_default();
    if version != VERSION {
        return Err(format!(
            "it has format version {version}, and this program reads version {VERSION}"
        ));
    }
    let need = |name: &str| field(name).ok_or(format!("it has no `{name}`"));
    let vectors = raw(&file, "vectors", Dtype::F32)?;
    let &[n, dim] = vectors.shape() else {
        return Err("its vectors are no table".into());
    };
    let folder = PathBuf::from(need("folder")?);
    Ok(IndexParts {
        model: need("model")?,
        layer: field("layer"),
        folder: folder_now(path, field("folder_from_here"), folder),
        names: names(&file)?,
        classes: classes(&file, field("classes"), n)?,
        dim,
        vectors: numbers(&vectors, f32::from_le_bytes),
        thumbnails: thumbnails(&file)?,
        lists: lists(&file, field("recall"))?,
    })
}

/// Where the pictures are now: where they were, else where they lie as seen from the index.
fn folder_now(path: &Path, from_here: Option<String>, then: PathBuf) -> PathBuf {
    let here = std::path::absolute(path).ok();
    let here = here.as_deref().and_then(Path::parent);
    let beside = here.zip(from_here).map(|(here, way)| here.join(way));
    let beside = beside.filter(|folder| folder.is_dir() && !then.is_dir());
    beside.unwrap_or(then)
}

/// What a file may claim and cannot be.
pub(super) fn check(parts: &IndexParts) -> Result<(), String> {
    let n = parts.names.len();
    let whole = parts.dim > 0 && parts.vectors.len() == n * parts.dim;
    if !whole || parts.classes.len() != n {
        return Err(format!(
            "it has {n} names, {} classes and {} values in vectors of {}",
            parts.classes.len(),
            parts.vectors.len(),
            parts.dim
        ));
    }
    if n == 0 {
        return Err("it holds no pictures".into());
    }
    if n > u32::MAX as usize {
        return Err(format!("it holds {n} pictures, more than can be numbered"));
    }
    if parts.thumbnails.as_ref().is_some_and(|t| !t.fits(n)) {
        return Err("its thumbnails are not those of its pictures".into());
    }
    let fit = |(lists, _): &(Lists, f64)| lists.fits(n, parts.dim);
    if !parts.lists.as_ref().is_none_or(fit) {
        return Err("its clusters are not those of its pictures".into());
    }
    Ok(())
}

fn raw<'a>(file: &SafeTensors<'a>, name: &str, dtype: Dtype) -> Result<TensorView<'a>, String> {
    let view = file.tensor(name).map_err(|_| format!("it has no {name}"))?;
    if view.dtype() != dtype {
        return Err(format!("its {name} is {:?}, not {dtype:?}", view.dtype()));
    }
    Ok(view)
}

fn numbers<T, const N: usize>(view: &TensorView, from: fn([u8; N]) -> T) -> Vec<T> {
    let (values, _) = view.data().as_chunks::<N>();
    values.iter().map(|v| from(*v)).collect()
}

fn names(file: &SafeTensors) -> Result<Vec<String>, String> {
    let bytes = raw(file, "names", Dtype::U8)?;
    let ends = numbers(&raw(file, "name_ends", Dtype::U64)?, u64::from_le_bytes);
    let mut start = 0;
    let name = |end: &u64| {
        let end = *end as usize;
        let piece = bytes.data().get(start..end);
        start = end;
        let text = piece.and_then(|p| std::str::from_utf8(p).ok());
        text.map(str::to_owned)
            .ok_or("its names are damaged".into())
    };
    ends.iter().map(name).collect()
}

fn classes(
    file: &SafeTensors,
    names: Option<String>,
    n: usize,
) -> Result<Vec<Option<String>>, String> {
    let Some(names) = names else {
        return Ok(vec![None; n]);
    };
    let names: Vec<String> =
        serde_json::from_str(&names).map_err(|e| format!("its classes: {e}"))?;
    let of = numbers(&raw(file, "classes", Dtype::U32)?, u32::from_le_bytes);
    let name = |number: &u32| match (*number, names.get(*number as usize)) {
        (NO_CLASS, _) => Ok(None),
        (_, Some(name)) => Ok(Some(name.clone())),
        _ => Err(format!("a picture of its class {number}, which it has not")),
    };
    of.iter().map(name).collect()
}

fn thumbnails(file: &SafeTensors) -> Result<Option<Thumbnails>, String> {
    if file.tensor("thumbnails").is_err() {
        return Ok(None);
    }
    let bytes = raw(file, "thumbnails", Dtype::U8)?.data().to_vec();
    let ends = numbers(
        &raw(file, "thumbnail_ends", Dtype::U64)?,
        u64::from_le_bytes,
    );
    Ok(Some(Thumbnails { bytes, ends }))
}

fn lists(file: &SafeTensors, recall: Option<String>) -> Result<Option<(Lists, f64)>, String> {
    if file.tensor("centres").is_err() {
        return Ok(None);
    }
    let lists = Lists {
        centres: numbers(&raw(file, "centres", Dtype::F32)?, f32::from_le_bytes),
        starts: numbers(&raw(file, "list_starts", Dtype::U32)?, u32::from_le_bytes),
        members: numbers(&raw(file, "list_members", Dtype::U32)?, u32::from_le_bytes),
    };
    let recall = recall.and_then(|r| r.parse().ok());
    Ok(Some((lists, recall.ok_or("its recall is no number")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_random::{Draws, Stream};

    fn small() -> IndexParts {
        let mut thumbnails = Thumbnails::default();
        thumbnails.push(b"jpeg");
        thumbnails.push(b"");
        thumbnails.push(b"another");
        IndexParts {
            model: "0123".into(),
            layer: Some("conv5".into()),
            folder: "/somewhere/pictures".into(),
            names: ["a.png", "ü/b\n.jpg", "日本.gif"].map(String::from).into(),
            classes: vec![Some("x".into()), None, Some("a".into())],
            dim: 2,
            vectors: vec![1.0, 0.0, 0.6, 0.8, 0.0, -1.0],
            thumbnails: Some(thumbnails),
            lists: Some((
                Lists {
                    centres: vec![1.0, 0.0, 0.0, -1.0],
                    starts: vec![0, 2, 3],
                    members: vec![0, 1, 2],
                },
                0.975,
            )),
        }
    }

    fn written(parts: &IndexParts) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.index");
        write(parts, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (folder, path, bytes)
    }

    #[test]
    fn what_was_written_is_read() {
        for parts in [
            small(),
            IndexParts {
                layer: None,
                classes: vec![None; 3],
                thumbnails: None,
                lists: None,
                ..small()
            },
        ] {
            let (_folder, path, bytes) = written(&parts);
            let back = decode(&bytes, &path).unwrap();
            check(&back).unwrap();
            assert_eq!(back, parts);
        }
        let thumbnails = small().thumbnails.unwrap();
        assert_eq!(thumbnails.get(0), b"jpeg");
        assert_eq!(thumbnails.get(1), b"");
        assert_eq!(thumbnails.get(2), b"another");
    }

    #[test]
    fn index_and_pictures_can_be_moved_together() {
        let root = tempfile::tempdir().unwrap();
        let (before, after) = (root.path().join("before"), root.path().join("after"));
        std::fs::create_dir_all(before.join("pictures")).unwrap();
        std::fs::create_dir(before.join("kept")).unwrap();
        let parts = IndexParts {
            folder: before.join("pictures"),
            ..small()
        };
        write(&parts, &before.join("kept/a.index")).unwrap();
        std::fs::rename(&before, &after).unwrap();
        let path = after.join("kept/a.index");
        let moved = decode(&std::fs::read(&path).unwrap(), &path).unwrap();
        let (now, expected) = (moved.folder, after.join("pictures"));
        assert_eq!(
            now.canonicalize().unwrap(),
            expected.canonicalize().unwrap()
        );
    }

    #[test]
    fn every_truncation_is_an_error() {
        let (_folder, path, bytes) = written(&small());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], &path).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn damaged_files_never_panic() {
        let (_folder, path, good) = written(&small());
        let draws = Draws::new(0, Stream::Test, 0, 0);
        let mut errors = 0;
        for trial in 0..4000_u64 {
            let mut bytes = good.clone();
            for flip in 0..1 + trial % 8 {
                let word = draws.word(trial * 8 + flip) as usize;
                let at = word % bytes.len();
                bytes[at] ^= 1 << (word >> 29);
            }
            let parts = decode(&bytes, &path).and_then(|p| check(&p).map(|()| p));
            match parts {
                Err(_) => errors += 1,
                Ok(parts) => {
                    if let Some(t) = &parts.thumbnails {
                        (0..parts.names.len()).for_each(|i| _ = t.get(i));
                    }
                }
            }
        }
        assert!(errors > 1500, "most damage is noticed: {errors}");
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let path = Path::new("x");
        assert_eq!(decode(b"", path).unwrap_err(), "the file is empty");
        assert!(
            decode(b"PK\x03\x04 a zip", path)
                .unwrap_err()
                .contains("no safetensors")
        );
        let data = [0; 4];
        let view = TensorView::new(Dtype::F32, vec![1], &data).unwrap();
        let other = safetensors::serialize([("weight", view)], None).unwrap();
        assert!(
            decode(&other, path)
                .unwrap_err()
                .contains("another program")
        );
        let empty = IndexParts {
            dim: 4,
            ..IndexParts::default()
        };
        assert_eq!(check(&empty).unwrap_err(), "it holds no pictures");
    }
}
