//! Folders of pictures through a model, whole: every file found, embedded and kept in a journal, so
//! that a job that is stopped or crashes goes on where it was. What an index knows already is not
//! embedded again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::curate::each;
use anchorhood_data::{FolderReport, LabelChoice, PictureFile, name_of};
use anchorhood_engine::Device;
use anchorhood_storage::random::{Draws, Stream};
use anchorhood_storage::{Disk, FileSystem};

use crate::folders::{FoundPictures, absolute, find};
use crate::model::BATCH;
use crate::prefetch::Wanted;
use crate::stream::{embed_todo, stamp};
use crate::{
    Changes, Entry, IndexedFolder, Journal, JournalHeader, Model, PictureIndex, SearchError, Shard,
};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct FolderJob<'a> {
    /// The model.
    pub model: &'a Model,
    /// Folders of pictures, tar archives of them, or lists of files.
    pub folders: &'a [PathBuf],
    /// Whether their sub-folders are classes.
    pub labels: LabelChoice,
    /// The part of the files that is embedded, where it is not all of them.
    pub shard: Option<Shard>,
    /// An index that is to be brought up to date: what it knows is taken from it. One that
    /// [cannot be](PictureIndex::cannot_take_up) must not be given.
    pub known: Option<&'a PictureIndex>,
    /// Where what is done so far is kept.
    pub journal: PathBuf,
    /// Which layer's vectors; none for the last one's.
    pub layer: Option<&'a str>,
    /// Pictures at a time, at most.
    pub batch: usize,
    /// Pixels a side of thumbnails, where there are to be any.
    pub thumbnail: Option<usize>,
    /// Whether checksums of the files are taken, for an index that is to know a file again that was
    /// only written again.
    pub content_sums: bool,
    /// Threads that decode.
    pub threads: usize,
    /// Whether an interrupted job is thrown away.
    pub restart: bool,
    /// Whether somebody looks on: files are embedded in no order, so that the first few stand for
    /// all, and what an interrupted job did before is told, too.
    pub watched: bool,
    /// The disk that the journal is kept on; pictures are read from the real one.
    pub disk: Arc<dyn FileSystem>,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FolderEvent<'a> {
    /// The folders were looked through.
    Found {
        /// The folders.
        folders: &'a [IndexedFolder],
        /// Their files.
        files: &'a [PictureFile],
    },
    /// A folder was looked through.
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
    /// A picture was embedded, or could not be.
    Embedded {
        /// What became of it.
        entry: &'a Entry,
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
    pub folders: Vec<IndexedFolder>,
    /// The files.
    pub files: Vec<PictureFile>,
    /// What each file was when it was looked at.
    pub(crate) stamps: Vec<u64>,
    /// The row of each in the index that was to be brought up to date, where its file is what it
    /// was.
    pub(crate) kept: Vec<Option<usize>>,
    /// What became of the pictures of that index; all are added where there was none.
    pub changes: Changes,
    /// Their vectors, or why there is none.
    pub journal: Journal,
    /// Length of a vector.
    pub dim: usize,
    /// Pictures that have one.
    pub readable: usize,
    /// Pictures embedded now, and not before an interruption.
    pub new: usize,
}

impl<'a> FolderJob<'a> {
    /// All of some folders, whose result is to lie at `result`: by the last layer, on all cores, with
    /// checksums and without thumbnails, on the real disk, with nobody looking on.
    pub fn new(model: &'a Model, folders: &'a [PathBuf], result: &Path) -> FolderJob<'a> {
        FolderJob {
            model,
            folders,
            labels: LabelChoice::Auto,
            shard: None,
            known: None,
            journal: Journal::place(result),
            layer: None,
            batch: BATCH,
            thumbnail: None,
            content_sums: true,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            restart: false,
            watched: false,
            disk: Disk::shared(),
        }
    }

    /// Does it. `stop` is looked at between batches.
    pub fn run(
        &self,
        device: &Device,
        tell: &mut dyn FnMut(FolderEvent),
        stop: &AtomicBool,
    ) -> Result<FolderOutcome, SearchError> {
        let FoundPictures { folders, mut files, unreadable, reports } =
            find(self.folders, self.labels)?;
        if let Some(shard) = self.shard {
            files.retain(|file| shard.holds(&file.name));
        }
        tell(FolderEvent::Found { folders: &folders, files: &files });
        for report in &reports {
            tell(FolderEvent::Looked { report });
        }
        for (name, why) in &unreadable {
            tell(FolderEvent::FolderPassedOver { name, why });
        }
        let look = Look::at(files, self.known);
        let todo = look.todo(self.watched);
        let batch = self.batch.min(todo.len());
        let mut embedder = self.model.embedder(device, batch, self.layer)?;
        let dim = embedder.dim();
        let mut journal = self.open_journal(dim, tell)?;
        if self.watched {
            for file in todo.iter().map(|i| &look.files[*i as usize]) {
                let entry = journal.read(&file.name)?;
                let entry = entry
                    .filter(|e| journal.has(&file.name, stamp(&file.path)) && e.vector.is_ok());
                if let Some(entry) = &entry {
                    tell(FolderEvent::Embedded { entry });
                }
            }
        }
        let wanted = Wanted {
            square: embedder.squaring(),
            thumbnail: self.thumbnail_side(),
            content_sum: self.content_sums,
        };
        let missing = todo.iter().map(|i| &look.files[*i as usize]);
        let missing = missing.filter(|file| !journal.has(&file.name, stamp(&file.path)));
        let missing: Vec<&PictureFile> = missing.collect();
        let (total, before) = (look.files.len(), look.files.len() - missing.len());
        tell(FolderEvent::Progress { done: before, total });
        let mut embedded = |new: usize, entry: &Entry| {
            tell(FolderEvent::Embedded { entry });
            if let Err(why) = &entry.vector {
                tell(FolderEvent::Skipped { name: &entry.name, why });
            }
            tell(FolderEvent::Progress { done: before + new, total });
        };
        let threads = self.threads;
        let (new, stopped) = embed_todo(
            &mut embedder,
            &missing,
            &mut journal,
            wanted,
            threads,
            &mut embedded,
            stop,
        )?;
        if stopped {
            return Ok(FolderOutcome::Stopped { done: before + new, total });
        }
        let changes = look.changes(&journal);
        let mut done = FolderVectors {
            folders,
            readable: changes.kept + changes.added + changes.changed,
            changes,
            files: look.files,
            stamps: look.stamps,
            kept: look.kept,
            journal,
            dim,
            new,
        };
        match done.readable {
            // A part may have none.
            0 if self.shard.is_none() || !done.files.is_empty() => {
                let first = done.files.first().map_or("", |f| f.name.as_str());
                let why = done.journal.read(first)?.and_then(|e| e.vector.err());
                Err(self.nothing_readable(&done.files, first, &why.unwrap_or_default()))
            }
            _ => Ok(FolderOutcome::Finished(done)),
        }
    }

    /// Does it to its end.
    pub fn run_whole(
        &self,
        device: &Device,
        tell: &mut dyn FnMut(FolderEvent),
    ) -> Result<FolderVectors, SearchError> {
        match self.run(device, tell, &AtomicBool::new(false))? {
            FolderOutcome::Finished(done) => Ok(done),
            FolderOutcome::Stopped { .. } => unreachable!("nobody asked it to stop"),
        }
    }

    /// An index that has thumbnails goes on to have them.
    fn thumbnail_side(&self) -> Option<usize> {
        let known = || self.known.and_then(PictureIndex::thumbnail_side);
        self.thumbnail.or_else(known)
    }

    fn open_journal(
        &self,
        dim: usize,
        tell: &mut dyn FnMut(FolderEvent),
    ) -> Result<Journal, SearchError> {
        let mut folders = vec![];
        for folder in self.folders {
            folders.push(name_of(absolute(folder)?.as_os_str()));
        }
        let (model, folders) = (self.model.fingerprint(), folders.join(", "));
        let side = self.thumbnail_side();
        let header = JournalHeader::new(model, self.layer, dim, Path::new(&folders), side);
        if self.restart && self.disk.exists(&self.journal) {
            let removed = self.disk.remove(&self.journal);
            removed.map_err(SearchError::io(&self.journal))?;
        }
        let (journal, recovered) = Journal::open_on(self.disk.clone(), &self.journal, &header)?;
        if recovered.lost_bytes > 0 {
            tell(FolderEvent::JournalCut { bytes: recovered.lost_bytes });
        }
        if recovered.pictures > 0 {
            tell(FolderEvent::GoesOn { pictures: recovered.pictures });
        }
        Ok(journal)
    }

    /// Not one picture of the files could be read, of which this is the first.
    pub(crate) fn nothing_readable(
        &self,
        files: &[PictureFile],
        first: &str,
        why: &str,
    ) -> SearchError {
        let folder = self.folders.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
        let count = files.len();
        let why = format!("none of its {count} pictures can be read; the first is {first} ({why})");
        SearchError::failed(folder, why)
    }
}

/// The files of some folders beside what an index knows of them.
struct Look {
    files: Vec<PictureFile>,
    stamps: Vec<u64>,
    kept: Vec<Option<usize>>,
    /// Whether the index has another state of the file.
    changed: Vec<bool>,
    /// Pictures in the index.
    before: usize,
}

impl Look {
    fn at(files: Vec<PictureFile>, known: Option<&PictureIndex>) -> Look {
        let rows = known.map(PictureIndex::rows_by_path).unwrap_or_default();
        let stamps: Vec<u64> = files.iter().map(|file| stamp(&file.path)).collect();
        // Vectors of other pixels would not compare with those made now.
        let usable = !known.is_some_and(PictureIndex::is_outdated);
        let found = each(files.len(), &|_| {}, |i| {
            let row = rows.get(&files[i].path)?;
            Some((row.number, usable && row.is_of(&files[i].path, stamps[i])))
        });
        let kept =
            |found: &Option<(usize, bool)>| found.filter(|(_, same)| *same).map(|(row, _)| row);
        let changed = |found: &Option<(usize, bool)>| found.is_some_and(|(_, same)| !same);
        Look {
            kept: found.iter().map(kept).collect(),
            changed: found.iter().map(changed).collect(),
            before: known.map_or(0, PictureIndex::len),
            files,
            stamps,
        }
    }

    /// Which files are to be embedded.
    fn todo(&self, shuffled: bool) -> Vec<u32> {
        let files = (0..).zip(&self.kept);
        let new = files.filter(|(_, kept)| kept.is_none()).map(|(i, _)| i);
        let new: Vec<u32> = new.collect();
        if !shuffled {
            return new;
        }
        let order = Draws::new(0, Stream::Split, 0, 0).permutation(new.len());
        order.into_iter().map(|i| new[i as usize]).collect()
    }

    fn changes(&self, journal: &Journal) -> Changes {
        let mut changes = Changes::default();
        for (i, file) in self.files.iter().enumerate() {
            match (self.kept[i], self.changed[i]) {
                (Some(_), _) => changes.kept += 1,
                (None, _) if !journal.has_vector(&file.name) => {}
                (None, true) => changes.changed += 1,
                (None, false) => changes.added += 1,
            }
        }
        // An index without stamps knows of no picture what it was, and all are added.
        changes.removed = self.before.saturating_sub(changes.kept + changes.changed);
        changes
    }
}

impl FolderVectors {
    /// Makes the index, divides it into clusters where that is asked for or it is large, saves it
    /// at `path`, and forgets the job. Where all is as it was in the index that was to be brought
    /// up to date, nothing is written.
    pub fn save(
        mut self,
        path: &Path,
        job: &FolderJob,
        device: &Device,
        divide: bool,
    ) -> Result<(PictureIndex, Changes), SearchError> {
        let (mut index, changes) = (self.index(path, job)?, self.changes);
        let divided = |index: &PictureIndex| index.parts().lists.is_some();
        let divide = divide || index.is_large() || job.known.is_some_and(divided);
        let same = |known: &PictureIndex| {
            let (a, b) = (known.parts(), index.parts());
            let names = (&a.names, &a.classes, &a.stamps) == (&b.names, &b.classes, &b.stamps);
            changes.none() && names && divided(known) == divide
        };
        if let Some(known) = job.known.filter(|known| same(known)) {
            self.journal.remove()?;
            return Ok((known.clone(), changes));
        }
        if divide {
            index.divide(device, &mut |_| {})?;
        }
        index.save_on(&*job.disk)?;
        self.journal.remove()?;
        Ok((index, changes))
    }
}
