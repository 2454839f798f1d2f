//! Which images of an index are odd: unlike all others, or blurry, dark, bright, flat?

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anchorhood_engine::Device;
use anchorhood_index::PictureIndex;
use anchorhood_index::curate::{Appearance, outlier_scores};
use anchorhood_train::Event;

use crate::{Error, Tell};

/// What makes an image odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
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
pub fn outliers(
    index: &PictureIndex,
    device: &Device,
    by: Oddity,
    tell: Tell,
) -> Result<Vec<Outlier>, Error> {
    let mut found = match by {
        Oddity::Unlike(k) => unlike(index, device, k, tell)?,
        Oddity::Blurry | Oddity::Dark | Oddity::Bright | Oddity::Flat => looking(index, by, tell),
    };
    found.sort_by(|a, b| by.first(a.score, b.score).then(a.picture.cmp(&b.picture)));
    Ok(found)
}

impl Oddity {
    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Oddity::Unlike(_) => "unlike",
            Oddity::Blurry => "blurry",
            Oddity::Dark => "dark",
            Oddity::Bright => "bright",
            Oddity::Flat => "flat",
        }
    }

    /// The one of a name.
    pub fn named(name: &str, k: usize) -> Option<Oddity> {
        let all = [Oddity::Unlike(k), Oddity::Blurry, Oddity::Dark, Oddity::Bright, Oddity::Flat];
        all.into_iter().find(|oddity| oddity.name() == name)
    }

    /// Which of two scores is odder: it is less.
    fn first(self, a: f32, b: f32) -> Ordering {
        match self {
            Oddity::Unlike(_) | Oddity::Bright => b.total_cmp(&a),
            Oddity::Blurry | Oddity::Dark | Oddity::Flat => a.total_cmp(&b),
        }
    }

    fn score(self, seen: &Appearance) -> f32 {
        match self {
            Oddity::Blurry => seen.sharpness,
            Oddity::Dark | Oddity::Bright => seen.brightness,
            Oddity::Flat => seen.contrast,
            Oddity::Unlike(_) => 0.0, // told by vectors
        }
    }
}

fn unlike(
    index: &PictureIndex,
    device: &Device,
    k: usize,
    tell: Tell,
) -> Result<Vec<Outlier>, Error> {
    let tell = Mutex::new(tell);
    let (vectors, dim, pictures) = (index.vectors()?, index.parts().dim, index.len());
    let tell = |done| loading(&tell, done, pictures);
    let scores = outlier_scores(device, vectors, dim, k, &tell);
    let odd = |(picture, score)| Outlier { picture, score, appearance: None };
    Ok(scores?.into_iter().enumerate().map(odd).collect())
}

fn looking(index: &PictureIndex, by: Oddity, tell: Tell) -> Vec<Outlier> {
    let tell = Mutex::new(tell);
    let paths: Vec<PathBuf> = (0..index.len()).map(|i| index.picture(i)).collect();
    let seen = Appearance::of_files(&paths, &|done| loading(&tell, done, paths.len()));
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
        let tell = tell.into_inner().unwrap_or_else(PoisonError::into_inner);
        tell(&Event::warning(format!(
            "{} pictures could not be read; the first is {} ({why})",
            unread.len(),
            index.name(*first)
        )));
    }
    odd
}

/// Tells that so many are done, unless somebody else is telling it.
fn loading(tell: &Mutex<Tell>, done: usize, pictures: usize) {
    if let Ok(mut tell) = tell.try_lock() {
        tell(&Event::Loading { done, pictures });
    }
}
