//! Pictures decoded ahead of the network, in their order, and never more than a few chunks of them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use anchorhood_data::{Picture, Squaring, encode_jpeg};
use rayon::prelude::*;

use crate::SearchError;
use crate::stream::content_sum;

/// Chunks that wait for the network; with the one being decoded and the one in use, all that is in
/// memory.
const WAITING: usize = 2;

/// What is wanted of each picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The network's square.
    pub square: Squaring,
    /// Pixels a side of a thumbnail, where there is to be one.
    pub thumbnail: Option<usize>,
    /// Whether its file's checksum is.
    pub content_sum: bool,
}

/// One picture, decoded.
pub(crate) struct Decoded {
    pub square: Vec<u8>,
    /// Of the file; 0 where none was wanted.
    pub content_sum: u64,
    /// Of the whole picture.
    pub height_and_width: [u32; 2],
    /// As a JPEG file.
    pub thumbnail: Vec<u8>,
}

/// Decoded pictures, or why not, of a run of files.
pub(crate) type Chunk = Vec<Result<Decoded, String>>;

/// A thread that decodes files, with a pool to help it.
pub(crate) struct Ahead {
    chunks: Option<Receiver<Chunk>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Decodes `files` in runs of `chunk` on `threads` threads.
    pub fn start(
        files: Vec<PathBuf>,
        wanted: Wanted,
        chunk: usize,
        threads: usize,
    ) -> Result<Ahead, SearchError> {
        let no_threads = |e: &dyn std::fmt::Display| {
            SearchError::Impossible(format!("no threads to decode pictures: {e}"))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1));
        let pool = pool.build().map_err(|e| no_threads(&e))?;
        let (sender, chunks) = sync_channel(WAITING);
        let work = move || {
            for run in files.chunks(chunk.max(1)) {
                let decode = |path: &PathBuf| decode(path, wanted);
                let done: Chunk = pool.install(|| run.par_iter().map(decode).collect());
                if sender.send(done).is_err() {
                    return; // nobody waits any more
                }
            }
        };
        let thread = std::thread::Builder::new().name("decode".into());
        let thread = thread.spawn(work).map_err(|e| no_threads(&e))?;
        Ok(Ahead { chunks: Some(chunks), thread: Some(thread) })
    }

    /// The next run of pictures; none after the last.
    pub fn next(&self) -> Option<Chunk> {
        self.chunks.as_ref()?.recv().ok()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        drop(self.chunks.take()); // so that the thread's next send fails
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // decoders that panic are caught where they are called
        }
    }
}

fn decode(path: &Path, wanted: Wanted) -> Result<Decoded, String> {
    let side = wanted.square.side().max(wanted.thumbnail.unwrap_or(0));
    // First: if the file is written to meanwhile, the checksum is of what was, and it will be
    // noticed.
    let content_sum = if wanted.content_sum { content_sum(path) } else { 0 };
    Picture::read_for(path, side, |picture| {
        let mut square = vec![0; wanted.square.bytes()];
        picture.square_by(wanted.square, &mut square)?;
        let thumbnail = match wanted.thumbnail {
            Some(side) => jpeg(picture, side)?,
            None => vec![],
        };
        Ok(Decoded { square, content_sum, height_and_width: picture.height_and_width(), thumbnail })
    })
}

fn jpeg(picture: &Picture, side: usize) -> Result<Vec<u8>, String> {
    let mut square = vec![0; side * side * 3];
    picture.square(side, &mut square)?;
    encode_jpeg(side as u32, side as u32, &square, 85)
}
