//! Folders that are shown while they are indexed: first what an index of before knows, or the first
//! few pictures, then more and more of them. A picture keeps its number as long as it is served;
//! the index that is saved at the end is in the order of names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anchorhood_data::{LabelChoice, PictureFile};
use anchorhood_engine::{Device, GrowingValues};
use anchorhood_index::{
    Entry, FolderEvent, FolderJob, FolderOutcome, IndexParts, IndexedFolder, Model, PictureIndex,
    SearchError, StoredVectors,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Catalog, Renewer, ServeError};

/// Pictures that are worth a page.
const FIRST: usize = 48;
/// Pictures that go through the network together: few, so that the first come soon.
const BATCH: usize = 32;
/// More is shown after so long, and later the more there is.
const OFTEN: Duration = Duration::from_secs(1);
/// Pictures for which it is twice as long.
const MANY: f64 = 20_000.0;

/// Folders to be shown and indexed.
#[derive(Clone, Debug)]
pub struct ServedFolders {
    /// What to call them.
    pub name: String,
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// Whether their sub-folders are classes.
    pub labels: LabelChoice,
    /// By which model.
    pub model: Model,
    /// Where the index is kept; never in one of the folders.
    pub index: PathBuf,
    /// Threads that decode.
    pub threads: usize,
}

/// How far the indexing is.
#[derive(Debug, Default)]
pub(crate) struct Indexing {
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Indexing {
    /// Files done, and all.
    pub fn now(&self) -> IndexingProgress {
        let [done, total] = [&self.done, &self.total].map(|n| n.load(Ordering::Relaxed));
        IndexingProgress { done, total }
    }

    fn set(&self, done: usize, total: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }
}

/// Of folders that are indexed while they are shown: how many files are done, and how many there
/// are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct IndexingProgress {
    pub done: usize,
    pub total: usize,
}

/// What the thread that indexes has to say.
enum News {
    /// There is more to be shown.
    More(Box<IndexParts>),
    /// Something is not as it should be.
    Warning(String),
    /// It ended before its end.
    Failed(SearchError),
}

/// Folders on their way to an index.
pub(crate) struct Growing {
    name: String,
    pub indexing: Arc<Indexing>,
    news: Receiver<News>,
    /// What was not as it should be before there was something to show.
    warnings: Vec<String>,
    halt: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Growing {
    /// Begins, and gives what is there to be shown first.
    pub fn start(device: &Device, served: ServedFolders) -> Result<(Growing, Catalog), ServeError> {
        Catalog::refuse_wide_folders(&served.name, &served.folders)?;
        let (send, news) = channel();
        let (indexing, halt) = (Arc::<Indexing>::default(), Arc::<AtomicBool>::default());
        let name = served.name.clone();
        let (device, told, end) = (device.clone(), indexing.clone(), halt.clone());
        let work = move || work(&device, &served, &told, &end, &send);
        let thread = std::thread::Builder::new().name("index".into()).spawn(work)?;
        let mut growing =
            Growing { name, indexing, news, warnings: vec![], halt, thread: Some(thread) };
        loop {
            match growing.news.recv() {
                Ok(News::More(parts)) => {
                    let shelf = growing.catalog(*parts)?;
                    return Ok((growing, shelf));
                }
                Ok(News::Warning(warning)) => growing.warnings.push(warning),
                Ok(News::Failed(error)) => return Err(error.into()),
                Err(_) => return Err(ServeError::ended()),
            }
        }
    }

    fn catalog(&self, parts: IndexParts) -> Result<Catalog, ServeError> {
        let place = PathBuf::from(&self.name);
        let index = PictureIndex::from_parts(&place, parts)?;
        Catalog::of_index(self.name.clone(), index, None)
    }

    /// Hands over what comes until all is indexed or the server has stopped.
    pub fn follow(&self, renewer: &Renewer, warn: &dyn Fn(&str)) {
        self.warnings.iter().for_each(|warning| warn(warning));
        for news in &self.news {
            let shown = match news {
                News::More(parts) => self.catalog(*parts).map(|shelf| renewer.grow(shelf)),
                News::Warning(warning) => {
                    warn(&warning);
                    Ok(())
                }
                News::Failed(error) => Err(error.into()),
            };
            if let Err(error) = shown {
                warn(&format!("the indexing ended: {error}"));
            }
        }
    }

    /// What asks it to stop after a batch.
    pub fn halt(&self) -> Arc<AtomicBool> {
        self.halt.clone()
    }
}

/// What is done so far is kept, and the next time goes on from there.
impl Drop for Growing {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there has been told on stderr
        }
    }
}

/// Indexes on a thread of its own.
fn work(
    device: &Device,
    served: &ServedFolders,
    indexing: &Indexing,
    halt: &AtomicBool,
    news: &Sender<News>,
) {
    let job = FolderJob {
        labels: served.labels,
        batch: BATCH,
        threads: served.threads,
        watched: true,
        ..FolderJob::new(&served.model, &served.folders, &served.index)
    };
    // Whatever is wrong with one of before, it can be made again.
    let known = PictureIndex::load(&served.index).ok();
    let known = known.filter(|index| index.cannot_take_up(&job).is_none() && !index.is_outdated());
    let known = known.filter(|index| index.vectors().is_ok());
    let job = FolderJob { known: known.as_ref(), ..job };
    let mut shown = Shown::new(known.as_ref(), news);
    let outcome = job.run(device, &mut |event| shown.event(event, indexing), halt);
    let ended = outcome.and_then(|outcome| match outcome {
        FolderOutcome::Finished(done) => {
            shown.send();
            done.save(&served.index, &job, device, false).map(|_| ())
        }
        FolderOutcome::Stopped { .. } => Ok(()),
    });
    if shown.skipped > 0 {
        shown.warn(format!("{} files could not be read and are left out", shown.skipped));
    }
    if let Err(error) = ended {
        // Nobody may listen any more, here and below.
        let _ = news.send(News::Failed(error));
    }
}

/// What can be shown so far. All that was shown shares its vectors.
struct Shown<'a> {
    news: &'a Sender<News>,
    /// But for its vectors.
    parts: IndexParts,
    vectors: Vectors,
    /// Where a picture of each name is.
    rows: HashMap<String, usize>,
    classes: HashMap<String, String>,
    /// Pictures that there will be, at most.
    files: usize,
    skipped: usize,
    /// Whether there is something that was not sent yet.
    more: bool,
    sent: Option<Instant>,
}

/// Vectors of unit length, one after the other.
struct Vectors {
    /// Those of the index of before, as long as there are no others.
    known: StoredVectors,
    growing: Option<GrowingValues>,
}

impl Vectors {
    /// To be written to; memory is taken for `most` numbers, where there is so much.
    fn growing(&mut self, most: usize) -> &mut GrowingValues {
        self.growing.get_or_insert_with(|| {
            let known = std::mem::take(&mut self.known);
            let known = known.all().unwrap_or_default();
            let mut growing = GrowingValues::with_capacity(most.max(known.len()));
            growing.extend(known);
            growing
        })
    }

    fn shared(&self) -> StoredVectors {
        match &self.growing {
            None => self.known.clone(),
            Some(growing) => growing.share().into(),
        }
    }
}

impl<'a> Shown<'a> {
    fn new(known: Option<&PictureIndex>, news: &'a Sender<News>) -> Shown<'a> {
        let parts = known.map(|known| known.parts().clone()).unwrap_or_default();
        let n = parts.names.len();
        let mut shown = Shown {
            news,
            rows: parts.names.iter().cloned().zip(0..).collect(),
            vectors: Vectors { known: parts.vectors, growing: None },
            parts: IndexParts {
                vectors: StoredVectors::default(),
                sizes: Some(parts.sizes.unwrap_or_else(|| vec![[0; 2]; n])),
                stamps: Some(parts.stamps.unwrap_or_else(|| vec![0; n])),
                // What the pictures that come have none of.
                thumbnails: None,
                lists: None,
                content_sums: None,
                ..parts
            },
            classes: HashMap::new(),
            files: 0,
            skipped: 0,
            more: known.is_some(),
            sent: None,
        };
        shown.send();
        shown
    }

    fn event(&mut self, event: FolderEvent, indexing: &Indexing) {
        match event {
            FolderEvent::Found { folders, files } => self.begin(folders, files),
            FolderEvent::Looked { report } => {
                let shows = report.passed_over.iter().filter(|kind| kind.why.is_some());
                shows.for_each(|kind| self.warn(kind.to_string()));
            }
            FolderEvent::FolderPassedOver { name, why } => {
                self.warn(format!("{name}: the folder was passed over: {why}"));
            }
            FolderEvent::Embedded { entry } => self.take(entry),
            FolderEvent::Skipped { .. } => self.skipped += 1,
            FolderEvent::Progress { done, total } => indexing.set(done, total),
            FolderEvent::JournalCut { .. } | FolderEvent::GoesOn { .. } => {}
        }
    }

    fn begin(&mut self, folders: &[IndexedFolder], files: &[PictureFile]) {
        if self.parts.names.is_empty() {
            self.parts.folders = folders.to_vec();
        }
        self.files = files.len();
        let class = |f: &PictureFile| Some((f.name.clone(), f.class.clone()?));
        self.classes = files.iter().filter_map(class).collect();
    }

    fn take(&mut self, entry: &Entry) {
        let Ok(vector) = &entry.vector else {
            return;
        };
        let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
        let unit: Vec<f32> = vector.iter().map(|v| v / length).collect();
        let most = self.rows.len().max(self.files) * unit.len();
        let vectors = self.vectors.growing(most);
        let sizes = self.parts.sizes.get_or_insert_default();
        let stamps = self.parts.stamps.get_or_insert_default();
        match self.rows.get(&entry.name) {
            Some(row) => {
                vectors.overwrite(row * unit.len(), &unit);
                sizes[*row] = entry.height_and_width;
                stamps[*row] = entry.stamp;
            }
            None => {
                let row = self.parts.names.len();
                self.rows.insert(entry.name.clone(), row);
                self.parts.dim = unit.len();
                self.parts.names.push(entry.name.clone());
                let class = self.classes.get(&entry.name).cloned();
                self.parts.classes.push(class);
                sizes.push(entry.height_and_width);
                stamps.push(entry.stamp);
                vectors.extend(&unit);
            }
        }
        self.more = true;
        if self.is_time() {
            self.send();
        }
    }

    fn is_time(&self) -> bool {
        let n = self.parts.names.len();
        match self.sent {
            None => n >= FIRST,
            Some(sent) => sent.elapsed() >= OFTEN.mul_f64(1.0 + n as f64 / MANY),
        }
    }

    /// Shows what there is, if there is something new.
    fn send(&mut self) {
        if self.more && !self.parts.names.is_empty() {
            let parts = IndexParts { vectors: self.vectors.shared(), ..self.parts.clone() };
            let _ = self.news.send(News::More(Box::new(parts)));
            self.sent = Some(Instant::now());
            self.more = false;
        }
    }

    fn warn(&self, warning: String) {
        let _ = self.news.send(News::Warning(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::index;

    fn entry(name: &str, vector: [f32; 2]) -> Entry {
        Entry {
            name: name.into(),
            stamp: 9,
            content_sum: 0,
            height_and_width: [2, 3],
            vector: Ok(vector.into()),
            thumbnail: vec![],
        }
    }

    /// What is shown after each of these entries.
    fn all_shown(known: Option<&PictureIndex>, entries: &[Entry]) -> Vec<IndexParts> {
        let (send, news) = channel();
        let mut shown = Shown::new(known, &send);
        shown.files = entries.len();
        for entry in entries {
            shown.take(entry);
            shown.send();
        }
        drop(shown);
        drop(send);
        let parts = news.into_iter().map(|news| match news {
            News::More(parts) => *parts,
            News::Warning(_) | News::Failed(_) => panic!("there is more to be shown"),
        });
        parts.collect()
    }

    fn vectors(parts: &IndexParts) -> &[f32] {
        parts.vectors.all().unwrap()
    }

    #[test]
    fn each_update_shares_the_vectors_of_the_one_before() {
        let entries: Vec<Entry> =
            (0..100).map(|i| entry(&format!("{i}.png"), [1.0, 0.0])).collect();
        let shown = all_shown(None, &entries);
        assert_eq!(shown.len(), entries.len());
        for (parts, n) in shown.iter().zip(1..) {
            assert_eq!((parts.names.len(), vectors(parts).len()), (n, 2 * n));
            assert_eq!(vectors(parts).as_ptr(), vectors(&shown[0]).as_ptr());
        }
    }

    #[test]
    fn a_picture_that_was_written_again_changes_nothing_that_was_shown() {
        let place = std::path::Path::new("");
        let known = index(place, &["a.png", "b.png"], &[], vec![1.0, 0.0, 0.0, 1.0]);
        let known = IndexParts { stamps: Some(vec![5, 6]), ..known.parts().clone() };
        let known = PictureIndex::from_parts(place, known).unwrap();
        let new = [entry("c.png", [2.0, 0.0]), entry("b.png", [3.0, 0.0])];
        let shown = all_shown(Some(&known), &new);
        let expected: [(&[f32], &[u64]); 3] = [
            (&[1.0, 0.0, 0.0, 1.0], &[5, 6]),
            (&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0], &[5, 6, 9]),
            (&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], &[5, 9, 9]),
        ];
        assert_eq!(shown.len(), expected.len());
        for (parts, (values, stamps)) in shown.iter().zip(expected) {
            assert_eq!(vectors(parts), values);
            assert_eq!(parts.stamps.as_deref(), Some(stamps));
        }
    }
}
