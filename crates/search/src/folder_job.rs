//! A folder of pictures through a model, whole: every file found, embedded and kept in a journal, so that a job that is stopped
//! or crashes goes on where it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anchorhood_data::{FolderReport, LabelChoice, PictureFile, find_pictures};
use anchorhood_engine::Device;
use anchorhood_files::FileSystem;

use crate::{EmbedOptions, Journal, JournalHeader, Model, PictureIndex, SearchError, embed_files};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct FolderJob<'a> {
    /// The model.
    pub model: &'a Model,
    /// The folder of pictures, a tar archive of them, or a list of files.
    pub folder: &'a Path,
    /// Whether its sub-folders are classes.
    pub labels: LabelChoice,
    /// Where what is done so far is kept.
    pub journal: PathBuf,
    /// Which layer's vectors; none for the last one's.
    pub layer: Option<&'a str>,
    /// Pictures at a time, at most.
    pub batch: usize,
    /// Pixels a side of thumbnails, where there are to be any.
    pub thumbnail: Option<usize>,
    /// Threads that decode.
    pub threads: usize,
    /// Whether an interrupted job is thrown away.
    pub restart: bool,
    /// The disk that the journal is kept on; pictures are read from the real one.
    pub disk: Arc<dyn FileSystem>,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FolderEvent<'a> {
    /// The folder was looked through.
    Looked {
        /// What was found beside pictures, and decided.
        report: &'a FolderReport,
    },
    /// A folder inside cannot be looked into.
    FolderPassedOver {
        /// Its name.
        name: &'a str,
        /// Why.
        why: &'a str,
    },
    /// The end of the journal was damaged; what it held is done again.
    JournalCut {
        /// So much of it.
        bytes: u64,
    },
    /// An interrupted job goes on.
    GoesOn {
        /// So many pictures are done.
        pictures: usize,
    },
    /// A picture cannot be read.
    Skipped {
        /// Its name.
        name: &'a str,
        /// Why.
        why: &'a str,
    },
    /// So many of all files are done.
    Progress {
        /// Files done.
        done: usize,
        /// All.
        total: usize,
    },
}

/// How it ended.
#[expect(clippy::large_enum_variant, reason = "there is one for a whole folder")]
#[derive(Debug)]
pub enum FolderOutcome {
    /// All files are done.
    Finished(FolderVectors),
    /// It was asked to stop; the same job goes on from there.
    Stopped {
        /// Files done.
        done: usize,
        /// All.
        total: usize,
    },
}

/// The files of a folder, and a journal that knows what became of each.
#[derive(Debug)]
pub struct FolderVectors {
    /// What their names are relative to.
    pub root: PathBuf,
    /// The files.
    pub files: Vec<PictureFile>,
    /// Their vectors, or why there is none.
    pub journal: Journal,
    /// Length of a vector.
    pub dim: usize,
    /// Pictures that have one.
    pub readable: usize,
    /// Pictures embedded now, and not before an interruption.
    pub new: usize,
}

impl FolderJob<'_> {
    /// Does it. `stop` is looked at between batches.
    pub fn run(
        &self,
        device: &Device,
        tell: &mut dyn FnMut(FolderEvent),
        stop: &AtomicBool,
    ) -> Result<FolderOutcome, SearchError> {
        let found = find_pictures(self.folder, self.labels)?;
        tell(FolderEvent::Looked {
            report: &found.report,
        });
        for (name, why) in &found.unreadable {
            tell(FolderEvent::FolderPassedOver { name, why });
        }
        let files = found.files;
        let batch = self.batch.min(files.len());
        let mut embedder = self.model.embedder(device, batch, self.layer)?;
        let dim = embedder.dim();
        let mut journal = self.open_journal(dim, tell)?;
        let options = EmbedOptions {
            threads: self.threads,
            thumbnail: self.thumbnail,
        };
        let total = files.len();
        let mut progress = |done: usize, failed: Option<(&str, &str)>| {
            if let Some((name, why)) = failed {
                tell(FolderEvent::Skipped { name, why });
            }
            tell(FolderEvent::Progress { done, total });
        };
        let result = embed_files(
            &mut embedder,
            &files,
            &mut journal,
            &options,
            &mut progress,
            stop,
        )?;
        if result.stopped {
            let done = result.kept + result.new;
            return Ok(FolderOutcome::Stopped { done, total });
        }
        let readable = files.iter().filter(|f| journal.has_vector(&f.name));
        let readable = readable.count();
        if readable == 0 {
            return Err(self.nothing_readable(&files, &mut journal)?);
        }
        Ok(FolderOutcome::Finished(FolderVectors {
            root: found.root,
            files,
            journal,
            dim,
            readable,
            new: result.new,
        }))
    }

    fn open_journal(
        &self,
        dim: usize,
        tell: &mut dyn FnMut(FolderEvent),
    ) -> Result<Journal, SearchError> {
        let folder = std::path::absolute(self.folder).map_err(SearchError::io(self.folder))?;
        let fingerprint = self.model.fingerprint();
        let header = JournalHeader::new(fingerprint, self.layer, dim, &folder, self.thumbnail);
        if self.restart && self.disk.exists(&self.journal) {
            let removed = self.disk.remove(&self.journal);
            removed.map_err(SearchError::io(&self.journal))?;
        }
        let (journal, recovered) = Journal::open_on(self.disk.clone(), &self.journal, &header)?;
        if recovered.lost_bytes > 0 {
            tell(FolderEvent::JournalCut {
                bytes: recovered.lost_bytes,
            });
        }
        if recovered.pictures > 0 {
            tell(FolderEvent::GoesOn {
                pictures: recovered.pictures,
            });
        }
        Ok(journal)
    }

    fn nothing_readable(
        &self,
        files: &[PictureFile],
        journal: &mut Journal,
    ) -> Result<SearchError, SearchError> {
        let first = files.first().map_or("", |f| f.name.as_str());
        let why = journal.read(first)?.and_then(|e| e.vector.err());
        Ok(SearchError::NothingReadable {
            folder: self.folder.into(),
            count: files.len(),
            first: first.into(),
            why: why.unwrap_or_default(),
        })
    }
}

impl FolderVectors {
    /// The index of the folder, to be kept at `path`; it is not written yet. `job` is what was done.
    pub fn index(&mut self, path: &Path, job: &FolderJob) -> Result<PictureIndex, SearchError> {
        PictureIndex::collect(
            path,
            job.model,
            job.layer,
            &self.root,
            self.dim,
            &self.files,
            &mut self.journal,
        )
    }
}
