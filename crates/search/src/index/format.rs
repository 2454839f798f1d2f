//! The bytes of an index: a container of [`anchorhood_files`], that is safetensors with checksums,
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
//! `layer` (where it is not the last), `preprocessing` (JSON), `dtype` (of the vectors), `rows`
//! (JSON: first row and number of all, of which these are a shard), `folder`, `folder_from_here`
//! (the same relative to the index's own folder, for when both were moved together), `classes`
//! (JSON), `recall` (where divided). Of several folders there is `folders` (JSON: label, path and
//! `from_here` of each) in place of `folder` and `folder_from_here`, so that a program which knows
//! of one folder alone refuses the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_files::{Container, Disk, Dtype, FileSystem, NamedTensor, OpenContainer, Tensor};

use super::stored::VECTORS;
use super::thumbnails::THUMBNAILS;
use super::{IndexParts, StoredVectors, Thumbnails};
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
    let (class_names, classes) = numbered(&parts.classes);
    let mut tensors = vec![
        NamedTensor::new(VECTORS, Dtype::F32, &[n, parts.dim], bytes(parts.vectors.all()?)),
        NamedTensor::new("names", Dtype::U8, &[names.len()], &names),
        NamedTensor::new("name_ends", Dtype::U64, &[n], bytes(&name_ends)),
    ];
    if let Some(stamps) = &parts.stamps {
        let stamps = bytes(stamps);
        tensors.push(NamedTensor::new(STAMPS, Dtype::U64, &[n], stamps));
    }
    if let Some(sums) = &parts.content_sums {
        let sums = bytes(sums);
        tensors.push(NamedTensor::new(CONTENT_SUMS, Dtype::U64, &[n], sums));
    }
    if let Some(sizes) = &parts.sizes {
        let sizes = bytes(sizes.as_flattened());
        tensors.push(NamedTensor::new("sizes", Dtype::U32, &[n, 2], sizes));
    }
    if !class_names.is_empty() {
        let classes = bytes(&classes);
        tensors.push(NamedTensor::new("classes", Dtype::U32, &[n], classes));
    }
    if let Some(t) = &parts.thumbnails {
        let (all, ends) = (t.all()?, bytes(&t.ends));
        tensors.push(NamedTensor::new(THUMBNAILS, Dtype::U8, &[all.len()], all));
        tensors.push(NamedTensor::new("thumbnail_ends", Dtype::U64, &[n], ends));
    }
    if let Some((lists, _)) = &parts.lists {
        let mut push = |name, dtype, shape: &[usize], data| {
            tensors.push(NamedTensor::new(name, dtype, shape, data));
        };
        let shape = [lists.len(), parts.dim];
        push("centres", Dtype::F32, &shape, bytes(&lists.centres));
        let starts = [lists.starts.len()];
        push("list_starts", Dtype::U32, &starts, bytes(&lists.starts));
        push("list_members", Dtype::U32, &[n], bytes(&lists.members));
    }
    let container =
        Container { metadata: metadata(parts, &class_names, path), clock: String::new(), tensors };
    Ok(anchorhood_files::write(&container, path, disk)?)
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

fn metadata(parts: &IndexParts, classes: &[&String], path: &Path) -> BTreeMap<String, String> {
    let json = |v: serde_json::Result<String>| v.expect("plain values become JSON");
    let rows = parts.rows.unwrap_or([0, parts.names.len() as u64]);
    let mut fields = vec![
        ("format", FORMAT.into()),
        ("model", parts.model.clone()),
        ("dtype", DTYPE.into()),
        ("rows", json(serde_json::to_string(&rows))),
    ];
    if let Some(path) = &parts.model_path {
        fields.push(("model_path", path.clone()));
    }
    if let Some(layer) = &parts.layer {
        fields.push(("layer", layer.clone()));
    }
    if let Some(preprocessing) = &parts.preprocessing {
        let preprocessing = json(serde_json::to_string(preprocessing));
        fields.push(("preprocessing", preprocessing));
    }
    let here = std::path::absolute(path).ok();
    let here = here.as_deref().and_then(Path::parent);
    let from_here = |folder: &Path| from_to(here?, folder);
    if parts.folders.is_empty() {
        fields.push(("folder", parts.folder.display().to_string()));
        let way = from_here(&parts.folder);
        fields.extend(way.map(|way| ("folder_from_here", way)));
    } else {
        let folder = |f: &IndexedFolder| FolderField {
            label: f.label.clone(),
            path: f.path.display().to_string(),
            from_here: from_here(&f.path),
        };
        let all: Vec<FolderField> = parts.folders.iter().map(folder).collect();
        fields.push(("folders", json(serde_json::to_string(&all))));
    }
    if !classes.is_empty() {
        fields.push(("classes", json(serde_json::to_string(classes))));
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

/// Opens the file: what is small is read, what is large stays where it is.
pub(super) fn open(path: &Path) -> Result<IndexParts, SearchError> {
    let file = Arc::new(OpenContainer::open(path, &Disk)?);
    let damaged = |reason: String| SearchError::DamagedIndex { path: path.into(), reason };
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
    let several: Option<Vec<FolderField>> = json(field("folders")).map_err(damaged)?;
    let folder = match &several {
        Some(_) => PathBuf::new(),
        None => folder_now(path, field("folder_from_here"), need("folder")?.into()),
    };
    let several = several.unwrap_or_default().into_iter();
    let names = names(&file).map_err(|e| e.in_file(path))?;
    if names.len() != n {
        // A table without columns may have any number of rows, for which nothing is in the file.
        let there = names.len();
        return Err(damaged(format!("it has {there} names and {n} vectors")));
    }
    Ok(IndexParts {
        model: need("model")?,
        model_path: field("model_path"),
        layer: field("layer"),
        preprocessing: json(field("preprocessing")).map_err(damaged)?,
        rows: json(Some(need("rows")?)).map_err(damaged)?,
        folder,
        folders: several.map(|field| field.now(path)).collect(),
        names,
        stamps: numbers_of_files(&file, STAMPS)?,
        content_sums: numbers_of_files(&file, CONTENT_SUMS)?,
        sizes: sizes(&file)?,
        classes: classes(&file, field("classes"), n).map_err(|e| e.in_file(path))?,
        dim,
        vectors: StoredVectors::of(&file, n, dim)?,
        thumbnails: thumbnails(&file)?,
        lists: lists(&file, field("recall")).map_err(|e| e.in_file(path))?,
    })
}

/// Why a part cannot be read.
enum Wrong {
    File(SearchError),
    Reason(String),
}

impl Wrong {
    fn in_file(self, path: &Path) -> SearchError {
        match self {
            Wrong::File(error) => error,
            Wrong::Reason(reason) => SearchError::DamagedIndex { path: path.into(), reason },
        }
    }
}

impl From<SearchError> for Wrong {
    fn from(error: SearchError) -> Self {
        Wrong::File(error)
    }
}

impl From<String> for Wrong {
    fn from(reason: String) -> Self {
        Wrong::Reason(reason)
    }
}

fn json<T: serde::de::DeserializeOwned>(text: Option<String>) -> Result<Option<T>, String> {
    let value = text.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|e| format!("its metadata: {e}"))
}

/// One of several folders.
#[derive(serde::Serialize, serde::Deserialize)]
struct FolderField {
    label: String,
    path: String,
    from_here: Option<String>,
}

impl FolderField {
    fn now(self, index: &Path) -> IndexedFolder {
        IndexedFolder {
            label: self.label,
            path: folder_now(index, self.from_here, self.path.into()),
        }
    }
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
    if parts.thumbnails.as_ref().is_some_and(|t| !t.fits(n)) {
        return Err("its thumbnails are not those of its pictures".into());
    }
    for (what, each) in [("stamps", &parts.stamps), ("checksums", &parts.content_sums)] {
        if each.as_ref().is_some_and(|each| each.len() != n) {
            return Err(format!("its {what} are not those of its pictures"));
        }
    }
    let mut labels: Vec<&str> = parts.folders.iter().map(|f| f.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let plain = |label: &&str| !label.is_empty() && !label.contains('/');
    if labels.len() != parts.folders.len() || !labels.iter().all(plain) {
        return Err("its folders have labels that cannot be told apart".into());
    }
    if parts.sizes.as_ref().is_some_and(|sizes| sizes.len() != n) {
        return Err("its sizes are not those of its pictures".into());
    }
    let within = |[first, total]: [u64; 2]| first.checked_add(n as u64).is_some_and(|e| e <= total);
    if !parts.rows.is_none_or(within) {
        return Err("its rows are not some of all".into());
    }
    let fit = |(lists, _): &(Lists, f64)| lists.fits(n, parts.dim);
    if !parts.lists.as_ref().is_none_or(fit) {
        return Err("its clusters are not those of its pictures".into());
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
pub(super) fn raw<'a>(
    file: &'a OpenContainer,
    name: &str,
    dtype: Dtype,
) -> Result<Tensor<'a>, SearchError> {
    let tensor = file.tensor(name)?;
    if tensor.dtype != dtype {
        return Err(SearchError::DamagedIndex {
            path: file.path().into(),
            reason: format!("its {name} is {:?}, not {dtype:?}", tensor.dtype),
        });
    }
    Ok(tensor)
}

fn numbers<T, const N: usize>(tensor: &Tensor, from: fn([u8; N]) -> T) -> Vec<T> {
    let (values, _) = tensor.data.as_chunks::<N>();
    values.iter().map(|v| from(*v)).collect()
}

fn names(file: &OpenContainer) -> Result<Vec<String>, Wrong> {
    let bytes = raw(file, "names", Dtype::U8)?;
    let ends = numbers(&raw(file, "name_ends", Dtype::U64)?, u64::from_le_bytes);
    let mut start = 0;
    let name = |end: &u64| {
        let end = *end as usize;
        let piece = bytes.data.get(start..end);
        start = end;
        let text = piece.and_then(|p| std::str::from_utf8(p).ok());
        text.map(str::to_owned).ok_or(Wrong::Reason("its names are damaged".into()))
    };
    ends.iter().map(name).collect()
}

/// A number of each picture's file, where they are kept.
fn numbers_of_files(file: &OpenContainer, name: &str) -> Result<Option<Vec<u64>>, SearchError> {
    if file.shape(name).is_none() {
        return Ok(None);
    }
    let tensor = raw(file, name, Dtype::U64)?;
    Ok(Some(numbers(&tensor, u64::from_le_bytes)))
}

fn sizes(file: &OpenContainer) -> Result<Option<Vec<[u32; 2]>>, SearchError> {
    if file.shape("sizes").is_none() {
        return Ok(None);
    }
    let sizes = numbers(&raw(file, "sizes", Dtype::U32)?, u32::from_le_bytes);
    Ok(Some(sizes.as_chunks().0.to_vec()))
}

fn classes(
    file: &OpenContainer,
    names: Option<String>,
    n: usize,
) -> Result<Vec<Option<String>>, Wrong> {
    let Some(names) = json::<Vec<String>>(names)? else {
        return Ok(vec![None; n]);
    };
    let of = numbers(&raw(file, "classes", Dtype::U32)?, u32::from_le_bytes);
    let name = |number: &u32| match (*number, names.get(*number as usize)) {
        (NO_CLASS, _) => Ok(None),
        (_, Some(name)) => Ok(Some(name.clone())),
        _ => Err(format!("a picture of its class {number}, which it has not").into()),
    };
    of.iter().map(name).collect()
}

fn thumbnails(file: &Arc<OpenContainer>) -> Result<Option<Thumbnails>, SearchError> {
    if file.shape(THUMBNAILS).is_none() {
        return Ok(None);
    }
    let ends = raw(file, "thumbnail_ends", Dtype::U64)?;
    Ok(Some(Thumbnails {
        bytes: Vec::new(),
        file: Some(Arc::clone(file)),
        ends: numbers(&ends, u64::from_le_bytes),
    }))
}

fn lists(file: &OpenContainer, recall: Option<String>) -> Result<Option<(Lists, f64)>, Wrong> {
    if file.shape("centres").is_none() {
        return Ok(None);
    }
    let lists = Lists {
        centres: numbers(&raw(file, "centres", Dtype::F32)?, f32::from_le_bytes),
        starts: numbers(&raw(file, "list_starts", Dtype::U32)?, u32::from_le_bytes),
        members: numbers(&raw(file, "list_members", Dtype::U32)?, u32::from_le_bytes),
    };
    let recall = recall.and_then(|r| r.parse().ok());
    let recall = recall.ok_or_else(|| "its recall is no number".to_string())?;
    Ok(Some((lists, recall)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::{small_index as small, small_index_of_two as small_of_two};
    use anchorhood_random::{Draws, Stream};

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
        let parts = IndexParts { folder: before.join("pictures"), ..small() };
        write(&Disk, &parts, &before.join("kept/a.index")).unwrap();
        std::fs::rename(&before, &after).unwrap();
        let moved = open(&after.join("kept/a.index")).unwrap();
        let (now, expected) = (moved.folder, after.join("pictures"));
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
            vectors: one.cycle().take(n * dim).collect(),
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
        let container = |change: fn(&mut Container)| {
            let (_folder, path, _) = written(&small());
            let mut content = anchorhood_files::read(&path, &Disk).unwrap();
            change(&mut content);
            anchorhood_files::write(&content, &path, &Disk).unwrap();
            touched(&path).unwrap_err()
        };
        let said = container(|c| _ = c.metadata.insert("rows".into(), "[1,3]".into()));
        assert!(said.contains("rows are not some of all"), "{said}");
        let twice = r#"[{"label":"a","path":"/a"},{"label":"a","path":"/b"}]"#;
        let empty = r#"[{"label":"","path":"/a"}]"#;
        let deep = r#"[{"label":"a/b","path":"/a"}]"#;
        for folders in [twice, empty, deep] {
            let (_folder, path, _) = written(&small_of_two());
            let mut content = anchorhood_files::read(&path, &Disk).unwrap();
            content.metadata.insert("folders".into(), folders.into());
            anchorhood_files::write(&content, &path, &Disk).unwrap();
            let said = touched(&path).unwrap_err();
            assert!(said.contains("cannot be told apart"), "{said}");
        }
        let said = container(|c| {
            let stamps = c.tensors.iter_mut().find(|t| t.name == "stamps").unwrap();
            stamps.shape = vec![1];
            stamps.data.to_mut().truncate(8);
        });
        assert!(said.contains("stamps are not those"), "{said}");
        let said = container(|c| _ = c.metadata.insert("dtype".into(), "F16".into()));
        assert!(said.contains("vectors are F16"), "{said}");
        let said = container(|c| _ = c.metadata.remove("model"));
        assert!(said.contains("has no `model`"), "{said}");
        let said = container(|c| c.tensors.retain(|t| t.name != "names"));
        assert!(said.contains("no names"), "{said}");
        let said = container(|c| {
            let sizes = c.tensors.iter_mut().find(|t| t.name == "sizes").unwrap();
            sizes.shape = vec![1, 2];
            sizes.data.to_mut().truncate(8);
        });
        assert!(said.contains("sizes are not those"), "{said}");
        for (first, length) in [(1e30, "1e30"), (f32::NAN, "NaN"), (0.5, "0.5")] {
            let (_folder, path, _) = written(&small());
            let mut content = anchorhood_files::read(&path, &Disk).unwrap();
            let vectors = content.tensors.iter_mut().find(|t| t.name == VECTORS);
            let bytes = vectors.unwrap().data.to_mut();
            bytes[..4].copy_from_slice(&first.to_le_bytes());
            anchorhood_files::write(&content, &path, &Disk).unwrap();
            let said = touched(&path).unwrap_err();
            let expected = format!("picture 0 has the length {length}, not 1");
            assert!(said.contains(&expected), "{said}");
            let index = crate::PictureIndex::load(&path).unwrap();
            assert!(index.vector(0).is_err() && index.nearest(&[1.0, 0.0], 1).is_err());
        }
        let said = container(|c| _ = c.metadata.insert("recall".into(), "NaN".into()));
        assert!(said.contains("centres, or a recall"), "{said}");
        for centre in [f32::NAN, f32::INFINITY, 1e30] {
            let (_folder, path, _) = written(&small());
            let mut content = anchorhood_files::read(&path, &Disk).unwrap();
            let centres = content.tensors.iter_mut().find(|t| t.name == "centres");
            let bytes = centres.unwrap().data.to_mut();
            bytes[4..8].copy_from_slice(&centre.to_le_bytes());
            anchorhood_files::write(&content, &path, &Disk).unwrap();
            let said = touched(&path).unwrap_err();
            assert!(said.contains("centres, or a recall"), "{said}");
        }
        let said = container(|c| {
            let ends = c.tensors.iter_mut().find(|t| t.name == "name_ends");
            ends.unwrap().data.to_mut()[0] = 200;
        });
        assert!(said.contains("names are damaged"), "{said}");
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
