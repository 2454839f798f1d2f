//! Which images of an index are odd: unlike all others, or blurry, dark, bright, flat?

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anchorhood_index::curate::{Appearance, outlier_scores};
use anchorhood_train::Event;

use crate::index::loading;
use crate::{Error, Index, OnEvent};

/// What makes an image odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlierKind {
    /// It is unlike those most like it, of which so many are looked at.
    Unlike(usize),
    /// Its edges are soft.
    Blurry,
    /// It is dark.
    Dark,
    /// It is bright.
    Bright,
    /// It has little contrast.
    Flat,
}

/// An image of an index that is odd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Its number in the index.
    pub picture: usize,
    /// How odd it is; which end of the scale is odd follows from the question.
    pub score: f32,
    /// How it looks, where that was asked.
    pub appearance: Option<Appearance>,
}

/// All images of an index, the oddest first; of what files look like, those that can be read.
pub(crate) fn outliers(
    index: &Index,
    by: OutlierKind,
    on_event: OnEvent,
) -> Result<Vec<Outlier>, Error> {
    let mut found = match by {
        OutlierKind::Unlike(k) => unlike(index, k, on_event)?,
        OutlierKind::Blurry | OutlierKind::Dark | OutlierKind::Bright | OutlierKind::Flat => {
            looking(index, by, on_event)
        }
    };
    found.sort_by(|a, b| by.first(a.score, b.score).then(a.picture.cmp(&b.picture)));
    Ok(found)
}

impl OutlierKind {
    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            OutlierKind::Unlike(_) => "unlike",
            OutlierKind::Blurry => "blurry",
            OutlierKind::Dark => "dark",
            OutlierKind::Bright => "bright",
            OutlierKind::Flat => "flat",
        }
    }

    /// The one of a name.
    pub fn named(name: &str, k: usize) -> Option<OutlierKind> {
        let all = [
            OutlierKind::Unlike(k),
            OutlierKind::Blurry,
            OutlierKind::Dark,
            OutlierKind::Bright,
            OutlierKind::Flat,
        ];
        all.into_iter().find(|oddity| oddity.name() == name)
    }

    /// Which of two scores is odder: it is less.
    fn first(self, a: f32, b: f32) -> Ordering {
        match self {
            OutlierKind::Unlike(_) | OutlierKind::Bright => b.total_cmp(&a),
            OutlierKind::Blurry | OutlierKind::Dark | OutlierKind::Flat => a.total_cmp(&b),
        }
    }

    fn score(self, seen: &Appearance) -> f32 {
        match self {
            OutlierKind::Blurry => seen.sharpness,
            OutlierKind::Dark | OutlierKind::Bright => seen.brightness,
            OutlierKind::Flat => seen.contrast,
            OutlierKind::Unlike(_) => 0.0, // told by vectors
        }
    }
}

fn unlike(index: &Index, k: usize, on_event: OnEvent) -> Result<Vec<Outlier>, Error> {
    let (vectors, dim, device) = (index.vectors()?, index.dim(), index.device());
    let on_event = Mutex::new(on_event);
    let on_event = |done| loading(&on_event, done, index.len());
    let scores = device.within(|| outlier_scores(device, vectors, dim, k, &on_event));
    let odd = |(picture, score)| Outlier { picture, score, appearance: None };
    Ok(scores?.into_iter().enumerate().map(odd).collect())
}

fn looking(index: &Index, by: OutlierKind, on_event: OnEvent) -> Vec<Outlier> {
    let on_event = Mutex::new(on_event);
    let paths: Vec<PathBuf> = (0..index.len()).map(|i| index.path(i)).collect();
    let seen = Appearance::of_files(&paths, &|done| loading(&on_event, done, paths.len()));
    let (mut odd, mut unread) = (vec![], vec![]);
    for (picture, seen) in seen.into_iter().enumerate() {
        match seen {
            Ok(seen) => {
                odd.push(Outlier { picture, score: by.score(&seen), appearance: Some(seen) });
            }
            Err(why) => unread.push((picture, why)),
        }
    }
    if let Some((first, why)) = unread.first() {
        let on_event = on_event.into_inner().unwrap_or_else(PoisonError::into_inner);
        on_event(&Event::warning(format!(
            "{} pictures could not be read; the first is {} ({why})",
            unread.len(),
            index.name(*first)
        )));
    }
    odd
}
