//! A folder of any size through the network: decoding runs ahead, what is done is kept, an
//! interrupted job goes on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anchorhood_data::{PictureFile, about_picture, picture_bytes};
use anchorhood_storage::checksum;

use crate::prefetch::{Ahead, Chunk, Wanted};
use crate::{Embedder, Entry, Journal, SearchError};

/// Pictures decoded together where a batch is smaller: enough to keep every thread busy.
const LEAST_CHUNK: usize = 64;
/// Of a larger file no checksum is taken.
const MOST_BYTES: u64 = 1 << 30;

/// Embeds files that are not in the journal yet. A file that cannot be read is noted there with the
/// reason. `progress` is told how many are done, and of each what became of it. `stop` is looked at
/// between batches. Gives how many were embedded, and whether it was asked to stop before the end;
/// what is done is kept.
pub(crate) fn embed_todo(
    embedder: &mut Embedder,
    todo: &[&PictureFile],
    journal: &mut Journal,
    wanted: Wanted,
    threads: usize,
    progress: &mut dyn FnMut(usize, &Entry),
    stop: &AtomicBool,
) -> Result<(usize, bool), SearchError> {
    let mut new = 0;
    let run = LEAST_CHUNK.next_multiple_of(embedder.batch());
    // What each was before it is looked at: one that changes meanwhile is embedded again the next
    // time.
    let todo: Vec<(&PictureFile, u64)> = todo.iter().map(|f| (*f, stamp(&f.path))).collect();
    let paths = todo.iter().map(|(file, _)| file.path.clone()).collect();
    let ahead = Ahead::start(paths, wanted, run, threads)?;
    let mut runs = todo.chunks(run).peekable();
    while let Some(files) = runs.next() {
        let decoded = ahead.next().unwrap_or_default();
        let vectors = vectors_of(embedder, &decoded)?;
        for (((file, stamp), decoded), vector) in files.iter().zip(decoded).zip(vectors) {
            let (content_sum, height_and_width, thumbnail) = match decoded {
                Ok(d) => (d.content_sum, d.height_and_width, d.thumbnail),
                Err(_) => (0, [0; 2], vec![]),
            };
            let (name, stamp) = (file.name.clone(), *stamp);
            let entry = Entry { name, stamp, content_sum, height_and_width, vector, thumbnail };
            new += 1;
            progress(new, &entry);
            journal.append(&entry)?;
        }
        journal.flush()?;
        if stop.load(Ordering::Relaxed) && runs.peek().is_some() {
            return Ok((new, true));
        }
    }
    Ok((new, false))
}

/// The vectors of picture files, in their order, kept nowhere: of each its vector, or why there is
/// none. `progress` is told how many are done. `stop` is looked at between batches; what was not
/// come to is then left out.
pub fn embed_paths(
    embedder: &mut Embedder,
    paths: Vec<PathBuf>,
    threads: usize,
    progress: &mut dyn FnMut(usize),
    stop: &AtomicBool,
) -> Result<Vec<Result<Vec<f32>, String>>, SearchError> {
    let wanted = Wanted { square: embedder.squaring(), thumbnail: None, content_sum: false };
    let chunk = LEAST_CHUNK.next_multiple_of(embedder.batch());
    let ahead = Ahead::start(paths, wanted, chunk, threads)?;
    let mut all = vec![];
    while let Some(decoded) = ahead.next() {
        all.extend(vectors_of(embedder, &decoded)?);
        progress(all.len());
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all)
}

/// Of each picture its vector, or why there is none.
fn vectors_of(
    embedder: &mut Embedder,
    decoded: &Chunk,
) -> Result<Vec<Result<Vec<f32>, String>>, SearchError> {
    let one = embedder.size() * embedder.size() * 3;
    let squares: Vec<&[u8]> = decoded.iter().flatten().map(|d| &d.square[..]).collect();
    let squares = squares.concat();
    let mut vectors = vec![];
    for batch in squares.chunks(one * embedder.batch()) {
        embedder.embed(batch, &mut vectors)?;
    }
    let mut vectors = vectors.chunks_exact(embedder.dim());
    let vector = |decoded: &Result<_, String>| match decoded {
        Ok(_) => finite(vectors.next().expect("a vector for each picture read")),
        Err(why) => Err(why.clone()),
    };
    Ok(decoded.iter().map(vector).collect())
}

/// A vector that can be compared, or why it cannot.
fn finite(vector: &[f32]) -> Result<Vec<f32>, String> {
    match vector.iter().find(|v| !v.is_finite()) {
        Some(v) => Err(format!("the model's numbers overflow on it: its vector holds {v}")),
        None => Ok(vector.to_vec()),
    }
}

/// A checksum of a picture's file. 0 for one that cannot be read.
pub(crate) fn content_sum(path: &Path) -> u64 {
    let bytes = picture_bytes(path, MOST_BYTES);
    bytes.map_or(0, |bytes| checksum(&bytes) as u64)
}

/// A number that changes when the file does: from its length and the time it was written. 0 for a
/// file that is gone.
pub(crate) fn stamp(path: &Path) -> u64 {
    about_picture(path).map_or(0, |(length, written)| stamp_of(length, written))
}

/// The same of a picture whose length is known, and when its file, or its archive, was written.
pub fn stamp_of(length: u64, written: Option<SystemTime>) -> u64 {
    let since = written.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let nanos = since.map_or(0, |d| d.as_nanos() as u64);
    nanos.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ length
}
