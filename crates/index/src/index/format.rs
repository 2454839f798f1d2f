//! The bytes of an index: a container of [`anchorhood_storage`], that is safetensors with checksums,
//! format version 2.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `vectors` | F32, unit length | pictures × dim |
//! | `names`, `name_ends` | U8 (UTF-8, one after the other), U64 | bytes; pictures |
//! | `stamps` | U64, a number that changes when the file does | pictures (where known) |
//! | `content_sums` | U64, a checksum of the file's bytes, 0 where unknown | pictures (where known) |
//! | `sizes` | U32, each picture's height and width in its file, zeros where unknown | pictures × 2 (where known) |
//! | `classes` | U32, place in the metadata's `classes`, or the largest number for none | pictures (where there are classes) |
//! | `thumbnails`, `thumbnail_ends` | U8 (JPEG files one after the other), U64 | bytes; pictures (where asked for) |
//! | `centres`, `list_starts`, `list_members` | F32, U32, U32 | clusters × dim; clusters + 1; pictures (where divided) |
//!
//! Metadata: `format` (anchorhood-index), `model` (fingerprint), `model_path` (what it was called),
//! `layer` (where it is not the last), `preprocessing` (JSON), `dtype` (of the vectors), `folders`
//! (JSON: label, path and `from_here` of each, which is the path relative to the index's own
//! folder, for when both were moved together; both as names of files are written), `classes`
//! (JSON), `recall` (where divided).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{name_of, picture_named};
use anchorhood_storage::{Container, Disk, Dtype, FileSystem, NamedTensor, OpenContainer, Tensor};
use bytemuck::AnyBitPattern;

use super::stored::VECTORS;
use super::thumbnails::THUMBNAILS;
use super::{IndexParts, StoredVectors, Thumbnails};
use crate::checked_lines::to_json;
use crate::labels::numbered_classes;
use crate::{IndexedFolder, Lists, SearchError};

const FORMAT: &str = "anchorhood-index";
/// Type of the vectors' numbers.
const DTYPE: &str = "F32";
const NO_CLASS: u32 = u32::MAX;
const STAMPS: &str = "stamps";
const CONTENT_SUMS: &str = "content_sums";

/// Writes the file, whole or not at all.
pub(super) fn write(
    disk: &dyn FileSystem,
    parts: &IndexParts,
    path: &Path,
) -> Result<(), SearchError> {
    let n = parts.names.len();
    let names: Vec<u8> = parts.names.concat().into_bytes();
    let name_ends = ends(&parts.names);
    let (class_names, classes) = numbered_classes(&parts.classes);
    let classes: Vec<u32> = classes.iter().map(|class| class.unwrap_or(NO_CLASS)).collect();
    let mut tensors = vec![];
    let mut push = |name, dtype, shape: &[usize], data| {
        tensors.push(NamedTensor::new(name, dtype, shape, data));
    };
    push(VECTORS, Dtype::F32, &[n, parts.dim], bytes(parts.vectors.all()?));
    push("names", Dtype::U8, &[names.len()], &names);
    push("name_ends", Dtype::U64, &[n], bytes(&name_ends));
    for (name, numbers) in [(STAMPS, &parts.stamps), (CONTENT_SUMS, &parts.content_sums)] {
        if let Some(numbers) = numbers {
            push(name, Dtype::U64, &[n], bytes(numbers));
        }
    }
    if let Some(sizes) = &parts.sizes {
        push("sizes", Dtype::U32, &[n, 2], bytes(sizes));
    }
    if !class_names.is_empty() {
        push("classes", Dtype::U32, &[n], bytes(&classes));
    }
    if let Some(t) = &parts.thumbnails {
        let all = t.all()?;
        push(THUMBNAILS, Dtype::U8, &[all.len()], all);
        push("thumbnail_ends", Dtype::U64, &[n], bytes(&t.ends));
    }
    if let Some((lists, _)) = &parts.lists {
        push("centres", Dtype::F32, &[lists.len(), parts.dim], bytes(&lists.centres));
        push("list_starts", Dtype::U32, &[lists.starts.len()], bytes(&lists.starts));
        push("list_members", Dtype::U32, &[n], bytes(&lists.members));
    }
    let container =
        Container { metadata: metadata(parts, &class_names, path), clock: String::new(), tensors };
    Ok(anchorhood_storage::write(&container, path, disk)?)
}

/// Where each name ends among all of them.
fn ends(names: &[String]) -> Vec<u64> {
    let lengths = names.iter().map(|name| name.len() as u64);
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    ends.collect()
}

/// Files are little endian, as every machine this runs on is.
fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) }
    bytemuck::cast_slice(values)
}

fn metadata(parts: &IndexParts, classes: &[&String], path: &Path) -> BTreeMap<String, String> {
    let here = std::path::absolute(path).ok();
    let here = here.as_deref().and_then(Path::parent);
    let folder = |f: &IndexedFolder| FolderField {
        label: f.label.clone(),
        path: name_of(f.path.as_os_str()),
        from_here: here.and_then(|here| from_to(here, &f.path)),
        of_list: f.of_list,
    };
    let folders: Vec<FolderField> = parts.folders.iter().map(folder).collect();
    let mut fields = vec![
        ("format", FORMAT.into()),
        ("model", parts.model.clone()),
        ("dtype", DTYPE.into()),
        ("folders", to_json(&folders)),
    ];
    if let Some(path) = &parts.model_path {
        fields.push(("model_path", path.clone()));
    }
    if let Some(layer) = &parts.layer {
        fields.push(("layer", layer.clone()));
    }
    if let Some(preprocessing) = &parts.preprocessing {
        fields.push(("preprocessing", to_json(preprocessing)));
    }
    if !classes.is_empty() {
        fields.push(("classes", to_json(&classes)));
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
    Some(name_of(way.as_os_str()))
}

/// Opens the file: what is small is read, what is large stays where it is.
pub(super) fn open(path: &Path) -> Result<IndexParts, SearchError> {
    let file = Arc::new(OpenContainer::open(path, &Disk)?);
    let damaged = SearchError::damaged_index(path);
    let field = |name: &str| file.metadata().get(name).cloned();
    let need = |name: &str| field(name).ok_or_else(|| damaged(format!("it has no `{name}`")));
    if field("format").as_deref() != Some(FORMAT) {
        return Err(damaged("it is of another program, or a checkpoint".into()));
    }
    let dtype = need("dtype")?;
    if dtype != DTYPE {
        return Err(damaged(format!("its vectors are {dtype}, not {DTYPE}")));
    }
    let Some((Dtype::F32, &[n, dim])) = file.shape(VECTORS) else {
        return Err(damaged("its vectors are no table of numbers".into()));
    };
    let folders: Vec<FolderField> = json(&need("folders")?).map_err(&damaged)?;
    let preprocessing = field("preprocessing").map(|text| json(&text)).transpose();
    let names = names(&file)?;
    if names.len() != n {
        // A table without columns may have any number of rows, for which nothing is in the file.
        let there = names.len();
        return Err(damaged(format!("it has {there} names and {n} vectors")));
    }
    Ok(IndexParts {
        model: need("model")?,
        model_path: field("model_path"),
        layer: field("layer"),
        preprocessing: preprocessing.map_err(&damaged)?,
        folders: folders.into_iter().map(|folder| folder.now(path)).collect(),
        names,
        stamps: optional(&file, STAMPS, Dtype::U64)?,
        content_sums: optional(&file, CONTENT_SUMS, Dtype::U64)?,
        sizes: optional(&file, "sizes", Dtype::U32)?,
        classes: classes(&file, field("classes"), n)?,
        dim,
        vectors: StoredVectors::of(&file, n, dim)?,
        thumbnails: thumbnails(&file)?,
        lists: lists(&file, field("recall"))?,
    })
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("its metadata: {e}"))
}

/// A folder of pictures.
#[derive(serde::Serialize, serde::Deserialize)]
struct FolderField {
    label: String,
    path: String,
    from_here: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    of_list: bool,
}

/// The path that [`name_of`] wrote.
fn path_named(name: &str) -> PathBuf {
    picture_named(Path::new(""), name)
}

impl FolderField {
    /// Where the pictures are now: where they were, else where they lie as seen from the index.
    fn now(self, index: &Path) -> IndexedFolder {
        let (here, then) = (std::path::absolute(index).ok(), path_named(&self.path));
        let here = here.as_deref().and_then(Path::parent);
        let beside = here.zip(self.from_here).map(|(here, way)| here.join(path_named(&way)));
        let beside = beside.filter(|folder| folder.is_dir() && !then.is_dir());
        let path = beside.unwrap_or(then);
        IndexedFolder { label: self.label, path, of_list: self.of_list }
    }
}

/// What a file may claim and cannot be.
pub(super) fn check(parts: &IndexParts) -> Result<(), String> {
    let n = parts.names.len();
    let values = n.checked_mul(parts.dim);
    let whole = parts.dim > 0 && values == Some(parts.vectors.len());
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
    let of_each = [
        ("thumbnails", parts.thumbnails.as_ref().is_none_or(|t| t.fits(n))),
        ("stamps", parts.stamps.as_ref().is_none_or(|stamps| stamps.len() == n)),
        ("checksums", parts.content_sums.as_ref().is_none_or(|sums| sums.len() == n)),
        ("sizes", parts.sizes.as_ref().is_none_or(|sizes| sizes.len() == n)),
        ("clusters", parts.lists.as_ref().is_none_or(|(lists, _)| lists.fits(n, parts.dim))),
    ];
    if let Some((what, _)) = of_each.iter().find(|(_, fits)| !fits) {
        return Err(format!("its {what} are not those of its pictures"));
    }
    let mut labels: Vec<&str> = parts.folders.iter().map(|f| f.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let several = labels.len() > 1;
    let plain = |label: &&str| label.is_empty() != several && !label.contains('/');
    if labels.len() != parts.folders.len() || !labels.iter().all(plain) {
        return Err("its folders have labels that cannot be told apart".into());
    }
    // Centres are means of vectors of unit length.
    let near = |v: &f32| (-1.001..=1.001).contains(v);
    let can_be = |(lists, recall): &(Lists, f64)| {
        (0.0..=1.0).contains(recall) && lists.centres.iter().all(near)
    };
    if !parts.lists.as_ref().is_none_or(can_be) {
        return Err("its clusters have centres, or a recall, that cannot be".into());
    }
    Ok(())
}

/// A tensor of that type, checked.
fn raw<'a>(file: &'a OpenContainer, name: &str, dtype: Dtype) -> Result<Tensor<'a>, SearchError> {
    let tensor = file.tensor(name)?;
    if tensor.dtype != dtype {
        let reason = format!("its {name} is {:?}, not {dtype:?}", tensor.dtype);
        return Err(SearchError::damaged_index(file.path())(reason));
    }
    Ok(tensor)
}

/// The numbers of a tensor of that type, or as many together as `T` has.
pub(super) fn numbers<T: AnyBitPattern>(
    file: &OpenContainer,
    name: &str,
    dtype: Dtype,
) -> Result<Vec<T>, SearchError> {
    let values = raw(file, name, dtype)?.data.chunks_exact(size_of::<T>());
    Ok(values.map(bytemuck::pod_read_unaligned).collect())
}

fn names(file: &OpenContainer) -> Result<Vec<String>, SearchError> {
    let damaged = || SearchError::damaged_index(file.path())("its names are damaged".into());
    let bytes = raw(file, "names", Dtype::U8)?;
    let ends: Vec<u64> = numbers(file, "name_ends", Dtype::U64)?;
    let mut start = 0;
    let name = |end: &u64| {
        let end = *end as usize;
        let piece = bytes.data.get(start..end);
        start = end;
        let text = piece.and_then(|p| std::str::from_utf8(p).ok());
        text.map(str::to_owned).ok_or_else(damaged)
    };
    ends.iter().map(name).collect()
}

/// Numbers of the pictures' files, where they are kept.
fn optional<T: AnyBitPattern>(
    file: &OpenContainer,
    name: &str,
    dtype: Dtype,
) -> Result<Option<Vec<T>>, SearchError> {
    file.shape(name).map(|_| numbers(file, name, dtype)).transpose()
}

fn classes(
    file: &OpenContainer,
    names: Option<String>,
    n: usize,
) -> Result<Vec<Option<String>>, SearchError> {
    let damaged = SearchError::damaged_index(file.path());
    let Some(names) = names else {
        return Ok(vec![None; n]);
    };
    let names: Vec<String> = json(&names).map_err(&damaged)?;
    let of: Vec<u32> = numbers(file, "classes", Dtype::U32)?;
    let name = |number: &u32| match (*number, names.get(*number as usize)) {
        (NO_CLASS, _) => Ok(None),
        (_, Some(name)) => Ok(Some(name.clone())),
        _ => Err(damaged(format!("a picture of its class {number}, which it has not"))),
    };
    of.iter().map(name).collect()
}

fn thumbnails(file: &Arc<OpenContainer>) -> Result<Option<Thumbnails>, SearchError> {
    if file.shape(THUMBNAILS).is_none() {
        return Ok(None);
    }
    let ends = numbers(file, "thumbnail_ends", Dtype::U64)?;
    Ok(Some(Thumbnails { bytes: vec![], file: Some(Arc::clone(file)), ends }))
}

fn lists(
    file: &OpenContainer,
    recall: Option<String>,
) -> Result<Option<(Lists, f64)>, SearchError> {
    if file.shape("centres").is_none() {
        return Ok(None);
    }
    let lists = Lists {
        centres: numbers(file, "centres", Dtype::F32)?,
        starts: numbers(file, "list_starts", Dtype::U32)?,
        members: numbers(file, "list_members", Dtype::U32)?,
    };
    let recall = recall.and_then(|r| r.parse().ok());
    let damaged = || SearchError::damaged_index(file.path())("its recall is no number".into());
    Ok(Some((lists, recall.ok_or_else(damaged)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::{small_index as small, small_index_of_two as small_of_two};
    use anchorhood_storage::random::{Draws, Stream};

    fn written(parts: &IndexParts) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.index");
        write(&Disk, parts, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (folder, path, bytes)
    }

    /// Everything in a file that can be touched; the error says what is wrong.
    fn touched(path: &Path) -> Result<IndexParts, String> {
        let parts = open(path).map_err(|e| e.to_string())?;
        check(&parts)?;
        parts.vectors.all().map_err(|e| e.to_string())?;
        if let Some(t) = &parts.thumbnails {
            for i in 0..parts.names.len() {
                t.get(i).map_err(|e| e.to_string())?;
            }
        }
        Ok(parts)
    }

    fn touched_as(path: &Path, bytes: &[u8]) -> Result<IndexParts, String> {
        std::fs::write(path, bytes).unwrap();
        touched(path)
    }

    #[test]
    fn what_was_written_is_read() {
        for parts in [
            small(),
            small_of_two(),
            IndexParts {
                layer: None,
                model_path: None,
                preprocessing: None,
                stamps: None,
                content_sums: None,
                sizes: None,
                classes: vec![None; 3],
                thumbnails: None,
                lists: None,
                ..small()
            },
        ] {
            let (_folder, path, bytes) = written(&parts);
            let back = touched(&path).unwrap();
            assert_eq!(back, parts);
            write(&Disk, &back, &path).unwrap();
            assert!(std::fs::read(&path).unwrap() == bytes, "the same bytes");
        }
        let thumbnails = small().thumbnails.unwrap();
        assert_eq!(thumbnails.get(0).unwrap(), b"jpeg");
        assert_eq!(thumbnails.get(1).unwrap(), b"");
        assert_eq!(thumbnails.get(2).unwrap(), b"another");
    }

    #[test]
    fn index_and_pictures_can_be_moved_together() {
        let root = tempfile::tempdir().unwrap();
        let (before, after) = (root.path().join("before"), root.path().join("after"));
        std::fs::create_dir_all(before.join("pictures")).unwrap();
        std::fs::create_dir(before.join("kept")).unwrap();
        let alone = IndexedFolder::alone(before.join("pictures"));
        let folders = vec![IndexedFolder { of_list: true, ..alone }];
        let parts = IndexParts { folders, ..small() };
        write(&Disk, &parts, &before.join("kept/a.index")).unwrap();
        std::fs::rename(&before, &after).unwrap();
        let moved = open(&after.join("kept/a.index")).unwrap();
        assert!(moved.folders[0].of_list);
        let (now, expected) = (&moved.folders[0].path, after.join("pictures"));
        assert_eq!(now.canonicalize().unwrap(), expected.canonicalize().unwrap());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let (_folder, path, bytes) = written(&small());
        for length in 0..bytes.len() {
            let cut = touched_as(&path, &bytes[..length]);
            assert!(cut.is_err(), "{length} bytes");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (_folder, path, good) = written(&small());
        let draws = Draws::new(0, Stream::Test, 0, 0);
        for trial in 0..1000 {
            let word = draws.word(trial) as usize;
            let (at, bit) = (word % good.len(), word >> 29);
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let said = touched_as(&path, &bytes).map(|_| ());
            let said = said.expect_err(&format!("bit {bit} of byte {at}"));
            assert!(said.contains("a.index"), "{said}");
        }
    }

    /// Opening reads no vector; a block that is damaged is met by whoever touches it, and nobody
    /// else.
    #[test]
    fn vectors_are_checked_when_they_are_touched() {
        let (n, dim) = (5000, 128);
        let one = [1.0].into_iter().chain([0.0; 127]);
        let parts = IndexParts {
            names: (0..n).map(|i| format!("{i}.png")).collect(),
            classes: vec![None; n],
            dim,
            vectors: one.cycle().take(n * dim).collect::<Vec<f32>>().into(),
            ..IndexParts::default()
        };
        let (_folder, path, mut bytes) = written(&parts);
        bytes[1_500_000] ^= 1; // in the second block of three; the names are in the third
        std::fs::write(&path, &bytes).unwrap();
        let index = crate::PictureIndex::load(&path).unwrap();
        assert_eq!(index.vector(0).unwrap()[0], 1.0);
        let said = index.nearest(&[1.0; 128], 3).unwrap_err().to_string();
        assert!(said.contains("met in vectors"), "{said}");
        assert!(index.vectors().is_err());
    }

    /// Behind right checksums too, nothing that a file claims is believed.
    #[test]
    fn what_makes_no_sense_is_refused() {
        type Change = Box<dyn Fn(&mut Container)>;
        fn field(name: &'static str, value: &'static str) -> Change {
            Box::new(move |c| _ = c.metadata.insert(name.into(), value.into()))
        }
        fn tensor(name: &'static str, change: impl Fn(&mut NamedTensor) + 'static) -> Change {
            Box::new(move |c| change(c.tensors.iter_mut().find(|t| t.name == name).unwrap()))
        }
        let number = |name, at: usize, value: f32| {
            tensor(name, move |t| {
                t.data.to_mut()[at..at + 4].copy_from_slice(&value.to_le_bytes());
            })
        };
        let of_one = |name, shape: &'static [usize]| {
            tensor(name, move |t| {
                t.shape = shape.to_vec();
                t.data.to_mut().truncate(8);
            })
        };
        let folders = |json| ("cannot be told apart", field("folders", json));
        let length = |value| (LENGTH, number(VECTORS, 0, value));
        let centre = |value| ("centres, or a recall", number("centres", 4, value));
        const LENGTH: &str = "picture 0 has the length";
        let cases = [
            folders(r#"[{"label":"a","path":"/a"},{"label":"a","path":"/b"}]"#),
            folders(r#"[{"label":"","path":"/a"},{"label":"b","path":"/b"}]"#),
            folders(r#"[{"label":"a/b","path":"/a"},{"label":"b","path":"/b"}]"#),
            ("stamps are not those", of_one("stamps", &[1])),
            ("sizes are not those", of_one("sizes", &[1, 2])),
            ("vectors are F16", field("dtype", "F16")),
            ("has no `model`", Box::new(|c| _ = c.metadata.remove("model"))),
            ("has no `folders`", Box::new(|c| _ = c.metadata.remove("folders"))),
            ("no names", Box::new(|c| c.tensors.retain(|t| t.name != "names"))),
            ("names are damaged", tensor("name_ends", |t| t.data.to_mut()[0] = 200)),
            ("centres, or a recall", field("recall", "NaN")),
            length(1e30),
            length(f32::NAN),
            length(0.5),
            centre(f32::NAN),
            centre(f32::INFINITY),
            centre(1e30),
        ];
        for (expected, change) in cases {
            let (_folder, path, _) = written(&small());
            let mut content = anchorhood_storage::read(&path, &Disk).unwrap();
            change(&mut content);
            anchorhood_storage::write(&content, &path, &Disk).unwrap();
            let said = touched(&path).unwrap_err();
            assert!(said.contains(expected), "{expected}: {said}");
            if expected == LENGTH {
                let index = crate::PictureIndex::load(&path).unwrap();
                assert!(index.vector(0).is_err() && index.nearest(&[1.0, 0.0], 1).is_err());
            }
        }
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let reason = |bytes: &[u8]| touched_as(&path, bytes).unwrap_err();
        assert!(reason(b"").contains("the file is empty"));
        assert!(reason(b"PK\x03\x04 a zip").contains("no safetensors"));
        let data = [0; 4];
        let view = safetensors::tensor::TensorView::new(Dtype::F32, vec![1], &data).unwrap();
        let other = safetensors::serialize([("weight", &view)], None).unwrap();
        assert!(reason(&other).contains("another program"));
        let fields = [("format", FORMAT), ("version", "1")].map(|(k, v)| (k.into(), v.into()));
        let old = safetensors::serialize([("weight", &view)], Some(fields.into())).unwrap();
        assert!(reason(&old).contains("format version 1"));
        let empty = IndexParts { dim: 4, ..IndexParts::default() };
        assert_eq!(check(&empty).unwrap_err(), "it holds no pictures");
    }
}
