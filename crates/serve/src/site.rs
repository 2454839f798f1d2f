//! Everything a request may ask about. What is shown can be replaced whole while requests go on:
//! each takes what is there when it begins, and keeps it to its end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anchorhood_report::RoundNeighbourhoods;
use anchorhood_train::evaluation::Layout;
use serde::Serialize;
use tokio::sync::{OnceCell, Semaphore, watch};
use utoipa::ToSchema;

use crate::budget::Budget;
use crate::clusters::{DIVISIONS, Division};
use crate::duplicates::Search;
use crate::error::Refusal;
use crate::filter::Filters;
use crate::growing::Indexing;
use crate::live::News;
use crate::neighbourhoods::Round;
use crate::outliers::Outliers;
use crate::session::Session;
use crate::{Asker, Catalog, ServeError, Stop};

/// What is shown: pictures with their vectors, and what belongs to these vectors.
#[derive(Debug)]
pub(crate) struct Contents {
    pub shelf: Catalog,
    pub rounds: Vec<Round>,
    /// Every label once, sorted.
    pub classes: Vec<String>,
    /// Where the pictures lie on the map, once somebody has asked.
    pub map: OnceCell<Layout>,
    /// Likewise which folders and labels there are, …
    pub filters: OnceCell<Filters>,
    /// … which pictures are unlike all others, which are the same, …
    pub outliers: OnceCell<Outliers>,
    pub copies: Search,
    /// … and which clusters they form, by how many.
    pub divisions: [OnceCell<Division>; DIVISIONS.len()],
    /// 0 for what the server began with, and one more each time it was replaced.
    pub version: u64,
}

impl Contents {
    pub fn new(shelf: Catalog, rounds: Vec<RoundNeighbourhoods>, version: u64) -> Contents {
        let n = shelf.len();
        let fits = |f: &RoundNeighbourhoods| f.found.len() == n;
        let classes: BTreeSet<&String> = shelf.index.parts().classes.iter().flatten().collect();
        Contents {
            classes: classes.into_iter().cloned().collect(),
            rounds: rounds.into_iter().filter(fits).map(Round::new).collect(),
            shelf,
            map: OnceCell::new(),
            filters: OnceCell::new(),
            outliers: OnceCell::new(),
            copies: Search::default(),
            divisions: std::array::from_fn(|_| OnceCell::new()),
            version,
        }
    }

    /// An image in words.
    pub fn describe(&self, i: usize) -> ImageInfo {
        let index = &self.shelf.index;
        ImageInfo { id: i, name: index.name(i).into(), label: index.parts().classes[i].clone() }
    }

    /// With how similar it is to what was asked for.
    pub fn describe_similar(&self, i: usize, similarity: f32) -> Neighbour {
        Neighbour { image: self.describe(i), similarity: similarity.into() }
    }
}

// What an image is called.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImageInfo {
    pub id: usize,
    pub name: String,
    #[schema(required)]
    pub label: Option<String>,
}

/// An image beside another, or near the centre of its cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct Neighbour {
    #[serde(flatten)]
    image: ImageInfo,
    /// The cosine: 1 for the same picture.
    similarity: f64,
}

/// What is shown, and what holds for all requests.
#[derive(Debug)]
pub(crate) struct Site {
    pub contents: Arc<RwLock<Arc<Contents>>>,
    pub run: Option<PathBuf>,
    pub asker: Option<Asker>,
    /// Where a token is needed.
    pub session: Option<Session>,
    /// Whether pages of this machine may show it in a frame.
    pub framed: bool,
    pub largest_upload: usize,
    pub longest_upload: Duration,
    pub most_pixels: u64,
    /// What uploads hold together.
    pub uploads: Budget,
    /// Pictures are decoded a few at a time: each may need a gigabyte.
    pub decoding: Arc<Semaphore>,
    /// So are searches made: each uses all threads, and one that had begun would wait while others
    /// are taken up in between.
    pub searching: Arc<Semaphore>,
    /// What is computed once for all who ask uses all threads for seconds: one thing at a time.
    pub computing: Arc<Semaphore>,
    /// Files being read and charts being drawn.
    pub reading: Arc<Semaphore>,
    /// Places for those who listen to a run's news.
    pub listening: Arc<Semaphore>,
    pub news: watch::Receiver<News>,
    /// How far the indexing is, where folders are shown that are not indexed yet.
    pub indexing: Option<Arc<Indexing>>,
    pub stop: Stop,
}

impl Site {
    /// What is shown at this moment.
    pub fn now(&self) -> Arc<Contents> {
        current(&self.contents)
    }

    pub fn run_folder(&self) -> Result<&PathBuf, Refusal> {
        let none = || {
            Refusal::missing("an index has neither curves nor attention; serve a run to see them")
        };
        self.run.as_ref().ok_or_else(none)
    }
}

/// Threads that the machine has for us.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn current(contents: &RwLock<Arc<Contents>>) -> Arc<Contents> {
    // Nothing is done under the lock that could leave it half done.
    let held = contents.read().unwrap_or_else(PoisonError::into_inner);
    held.clone()
}

/// Replaces what a server shows, from any thread, as when a run has saved a newer checkpoint. Pages
/// that are open are told.
#[derive(Clone, Debug)]
pub struct Renewer(pub(crate) Arc<RwLock<Arc<Contents>>>);

impl Renewer {
    /// The same pictures with newer vectors and rounds.
    pub fn renew(
        &self,
        shelf: Catalog,
        rounds: Vec<RoundNeighbourhoods>,
    ) -> Result<(), ServeError> {
        let old = current(&self.0);
        if shelf.len() != old.shelf.len() {
            return Err(ServeError::Catalog(format!(
                "{}: there are {} pictures now where {} are shown",
                shelf.name,
                shelf.len(),
                old.shelf.len()
            )));
        }
        self.replace(shelf, rounds, &old);
        Ok(())
    }

    /// More pictures after those that are shown.
    pub(crate) fn grow(&self, shelf: Catalog) {
        let old = current(&self.0);
        self.replace(shelf, vec![], &old);
    }

    fn replace(&self, shelf: Catalog, rounds: Vec<RoundNeighbourhoods>, old: &Contents) {
        let shelf = shelf.with_copies_of(&old.shelf);
        let new = Arc::new(Contents::new(shelf, rounds, old.version + 1));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
    }
}
