//! Packing: pictures are decoded by all threads, some megabytes at a time, and written in order.
//!
//! The file is an [`AtomicFile`]: under its own name it is whole or not there, and two at one name
//! do not meet.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_storage::{AtomicFile, Disk, FileSystem, Kind};
use md5::{Digest, Md5};
use rayon::prelude::*;

use super::format::{Entry, Index, PIXELS_START, PartIndex, header};
use super::read::Pack;
use crate::datasets::find_dataset;
use crate::files::{Listing, Part, Picture, archive, picture_named};
use crate::open::find;
use crate::recognise::Contents;
use crate::resize::{Extent, to_rectangle};
use crate::statistics::Sums;
use crate::{DataError, Dataset, LabelChoice, Labels, PREPROCESSING, Progress, Split, crops};

/// Pixels decoded before they are written.
const CHUNK_BYTES: usize = 64 << 20;

/// What was packed.
#[derive(Clone, Debug)]
pub struct Packed {
    /// What the set is called.
    pub name: String,
    /// Pictures in the file.
    pub pictures: usize,
    /// Side of each.
    pub size: usize,
    /// Length of the file.
    pub bytes: u64,
    /// Pictures so large that training on their files would cut crops from more than the squares
    /// that are packed.
    pub cut: usize,
    /// Files that could not be read, each with the reason. They are left out, or seen as plain grey
    /// in a published set.
    pub skipped: Vec<(String, String)>,
    /// Whether it is a published set.
    pub published: bool,
    /// Whether the file was there already, of the same pictures.
    pub unchanged: bool,
}

/// Packs the data set that `spec` names into the file `to`, at `size`×`size` or the set's own size.
///
/// A file that is there already is kept if it was made from the same pictures, and otherwise
/// replaced only by `force`.
pub fn pack(
    spec: &str,
    to: &Path,
    size: Option<usize>,
    force: bool,
    progress: &Progress,
) -> Result<Packed, DataError> {
    pack_on(&Disk, spec, to, size, force, progress)
}

/// The same into a file on any disk; the pictures are read from the real one.
pub fn pack_on(
    disk: &dyn FileSystem,
    spec: &str,
    to: &Path,
    size: Option<usize>,
    force: bool,
    progress: &Progress,
) -> Result<Packed, DataError> {
    if size.is_some_and(|size| !(4..=1024).contains(&size)) {
        return Err(DataError::option("size", "must be between 4 and 1024"));
    }
    // Said before hours of work; and a rename would put a file in the place of a device.
    let there = disk.kind(to).map_err(|e| DataError::io(to, e))?;
    if matches!(there, Kind::Folder | Kind::Other) {
        let why = format!("{} is no file; give the name of one", to.display());
        return Err(DataError::option("output", why));
    }
    let source = Source::of(spec, size)?;
    let fingerprint = source.fingerprint();
    if there == Kind::File && !force {
        let same = |index: &Index| {
            (index.fingerprint, index.preprocessing) == (fingerprint, PREPROCESSING)
        };
        return match Pack::open_on(disk, to) {
            Ok(old) if same(&old.index) => summary(disk, &old.index, to, true),
            _ => Err(DataError::PackExists { path: to.into() }),
        };
    }
    let index = write(disk, &source, fingerprint, to, progress)?;
    summary(disk, &index, to, false)
}

fn summary(
    disk: &dyn FileSystem,
    index: &Index,
    to: &Path,
    unchanged: bool,
) -> Result<Packed, DataError> {
    let entries = index.parts.iter().flat_map(|part| &part.entries);
    let is_cut = |e: &&Entry| crops::shape(e.height_and_width, index.size).is_some();
    Ok(Packed {
        name: index.name.clone(),
        pictures: index.parts.iter().map(PartIndex::readable).sum(),
        size: index.size,
        bytes: disk.length(to).map_err(|e| DataError::io(to, e))?,
        // Of a published set squares are what training takes anyway.
        cut: if index.set.is_empty() { entries.filter(is_cut).count() } else { 0 },
        skipped: unreadable(index),
        published: find_dataset(&index.set).is_some(),
        unchanged,
    })
}

/// Pictures that could not be read, each with the reason.
fn unreadable(index: &Index) -> Vec<(String, String)> {
    let entries = index.parts.iter().flat_map(|part| &part.entries);
    entries.filter_map(|e| Some((e.name.clone(), e.pixels.clone().err()?))).collect()
}

/// Where the pictures come from.
struct Source {
    name: String,
    set: &'static str,
    size: usize,
    pixels: Pixels,
}

enum Pixels {
    Files(Listing),
    Memory(Dataset),
}

impl Source {
    fn of(spec: &str, size: Option<usize>) -> Result<Source, DataError> {
        let listing = match find(spec)?.contents(LabelChoice::Auto)? {
            Contents::Files(listing) => listing,
            Contents::Images(data) => {
                return Ok(Source {
                    set: find_dataset(&data.name).map_or("", |set| set.name),
                    name: data.name.clone(),
                    size: size.unwrap_or(data.train.pictures.height()),
                    pixels: Pixels::Memory(data),
                });
            }
            Contents::Pack(path) => {
                let why = format!("{} is packed already", path.display());
                return Err(DataError::option("data", why));
            }
        };
        if listing.train.files.is_empty() {
            return Err(listing.empty());
        }
        Ok(Source {
            name: listing.name.clone(),
            set: listing.set.map_or("", |set| set.name),
            size: size.unwrap_or(listing.default_size()),
            pixels: Pixels::Files(listing),
        })
    }

    /// MD5 of names, classes, lengths and times of files, or of the pixels where there are no
    /// files; and of the size.
    fn fingerprint(&self) -> [u8; 16] {
        let mut hash = Md5::new();
        hash.update(format!("{}\n{}\n{}\n", self.name, self.set, self.size));
        match &self.pixels {
            Pixels::Memory(data) => {
                for split in std::iter::once(&data.train).chain(&data.test) {
                    hash.update(split.pictures.raw());
                    let values = split.labels.iter().flat_map(|l| l.values());
                    values.for_each(|v| hash.update(v.to_le_bytes()));
                }
            }
            Pixels::Files(listing) => {
                for (name, part) in listing.parts() {
                    let labels = part.labels.as_ref();
                    let values = labels.map_or(&[][..], Labels::values);
                    hash.update(format!("{name} {:?} {values:?}\n", labels.map(Labels::classes)));
                    let marks = part.files.par_iter().map(|f| mark(&listing.root, f));
                    let marks: Vec<String> = marks.collect();
                    marks.iter().for_each(|m| hash.update(m));
                }
            }
        }
        hash.finalize().into()
    }

    /// Its parts: what is known of each picture, and how it becomes a square.
    fn parts(&self) -> Vec<SourcePart<'_>> {
        match &self.pixels {
            Pixels::Memory(data) => {
                let splits = std::iter::once(&data.train).chain(&data.test);
                splits.map(SourcePart::of_memory).collect()
            }
            Pixels::Files(listing) => {
                let parts = listing.parts().map(|(_, part)| part);
                parts.map(|part| SourcePart::of_files(&listing.root, part)).collect()
            }
        }
    }
}

/// What tells one state of a file from another.
fn mark(root: &Path, file: &str) -> String {
    let (length, time) = archive::about(&picture_named(root, file)).unwrap_or_default();
    let time = time.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{file} {length} {}\n", time.map_or(0, |t| t.as_nanos()))
}

/// Fills in a picture as a square of so many pixels a side; gives its own height and width.
type Fill<'a> = Box<dyn Fn(usize, usize, &mut [u8]) -> Result<[u32; 2], String> + Sync + 'a>;

struct SourcePart<'a> {
    len: usize,
    labels: Option<&'a Labels>,
    /// Of every picture, or of none.
    names: &'a [String],
    fill: Fill<'a>,
}

impl<'a> SourcePart<'a> {
    fn of_memory(split: &'a Split) -> Self {
        let pictures = &split.pictures;
        let own = [pictures.height(), pictures.width()];
        SourcePart {
            len: pictures.len(),
            labels: split.labels.as_ref(),
            names: &split.names,
            fill: Box::new(move |i, size, out| {
                let sides = own.map(Extent::from);
                to_rectangle(pictures.picture(i), sides, [size, size], out)?;
                Ok(own.map(|pixels| pixels as u32))
            }),
        }
    }

    fn of_files(root: &'a Path, part: &'a Part) -> Self {
        SourcePart {
            len: part.files.len(),
            labels: part.labels.as_ref(),
            names: &part.files,
            fill: Box::new(move |i, size, out| {
                Picture::read_for(picture_named(root, &part.files[i]), size, |picture| {
                    picture.square(size, out)?;
                    Ok(picture.height_and_width())
                })
            }),
        }
    }
}

fn write(
    disk: &dyn FileSystem,
    source: &Source,
    fingerprint: [u8; 16],
    path: &Path,
    progress: &Progress,
) -> Result<Index, DataError> {
    let io = |e| DataError::io(path, e);
    let parts = source.parts();
    let total = parts.iter().map(|part| part.len).sum();
    let done = AtomicUsize::new(0);
    let step = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let mut file = AtomicFile::create_on(disk, path).map_err(io)?;
    file.seek(SeekFrom::Start(PIXELS_START)).map_err(io)?;
    let mut index = Index {
        name: source.name.clone(),
        set: source.set.into(),
        size: source.size,
        holds_out: matches!(&source.pixels, Pixels::Files(l) if l.holds_out),
        shuffled: matches!(source.pixels, Pixels::Memory(_)),
        fingerprint,
        preprocessing: PREPROCESSING,
        parts: Vec::new(),
    };
    for part in &parts {
        let entries = write_part(part, source.size, &mut file, &step).map_err(io)?;
        let classes = part.labels.map(|labels| labels.classes().to_vec());
        let rows = [0, entries.len() as u64];
        index.parts.push(PartIndex { classes, rows, entries });
    }
    let skipped = unreadable(&index);
    // As when a folder is opened: some are left out, many are an error.
    if let Pixels::Files(listing) = &source.pixels
        && skipped.len() * 10 > total
    {
        let (root, first) = (&listing.root, skipped.first());
        return Err(DataError::too_many_unreadable(root, skipped.len(), total, first));
    }
    let start = file.stream_position().map_err(io)?;
    let bytes = index.encode();
    let finished = file
        .write_all(&bytes)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(&header(start, &bytes)))
        .and_then(|()| file.finish());
    finished.map_err(io)?;
    Ok(index)
}

fn write_part(
    part: &SourcePart,
    size: usize,
    file: &mut impl Write,
    step: &(dyn Fn() + Sync),
) -> std::io::Result<Vec<Entry>> {
    let one = size * size * 3;
    let at_once = (CHUNK_BYTES / one).max(1);
    let mut pixels = vec![0; at_once.min(part.len) * one];
    let mut entries = Vec::with_capacity(part.len);
    for start in (0..part.len).step_by(at_once) {
        let count = at_once.min(part.len - start);
        let chunk = pixels[..count * one].par_chunks_exact_mut(one).enumerate();
        let results: Vec<Result<_, String>> = chunk
            .map(|(i, out)| {
                let filled = (part.fill)(start + i, size, out);
                step();
                filled.map(|own| (own, crc32fast::hash(out), Sums::of(out)))
            })
            .collect();
        for (i, result) in results.into_iter().enumerate() {
            if result.is_ok() {
                file.write_all(&pixels[i * one..][..one])?;
            }
            entries.push(Entry {
                name: part.names.get(start + i).cloned().unwrap_or_default(),
                class: part.labels.map_or(0, |labels| labels.get(start + i)),
                height_and_width: result.as_ref().map_or([0; 2], |r| r.0),
                pixels: result.map(|(_, crc, sums)| (crc, sums)),
            });
        }
    }
    Ok(entries)
}
