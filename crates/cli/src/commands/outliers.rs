//! `anchorhood outliers`: pictures of an index that are unlike all others, and blurry, dark, bright
//! and flat ones.

use std::cmp::Ordering;
use std::path::PathBuf;

use anchorhood::curate::{Appearance, outlier_scores};
use anchorhood::search::{PictureIndex, Shown};
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

use crate::commands::folder_job::JobArgs;
use crate::commands::listing::{Listed, ListingArgs};
use crate::commands::living_index::IndexedArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::grouped;

#[derive(Debug, Parser)]
#[command(after_help = help!("outliers"))]
pub struct OutliersArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// What makes a picture odd.
    #[arg(long, value_enum, default_value_t = By::Unlike)]
    pub by: By,
    /// How many to name.
    #[arg(short, default_value_t = 30, value_name = "N")]
    pub n: usize,
    /// Neighbours that a picture is compared with.
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    #[command(flatten)]
    pub listing: ListingArgs,
}

/// What makes a picture odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// It is unlike all others.
    Unlike,
    /// Its edges are soft.
    Blurry,
    /// It is dark.
    Dark,
    /// It is bright.
    Bright,
    /// It has little contrast.
    Flat,
}

/// A picture, the number that says how odd it is, and how it looks.
struct Odd {
    picture: usize,
    score: f32,
    appearance: Option<Appearance>,
}

pub fn run(args: &OutliersArgs) -> Result<(), Failure> {
    args.listing.check()?;
    let index = args.pictures.open(&JobArgs::default())?;
    let mut odd = match args.by {
        By::Unlike => unlike(args, &index)?,
        By::Blurry | By::Dark | By::Bright | By::Flat => looking(args.by, &index),
    };
    odd.sort_by(|a, b| args.by.first(a.score, b.score).then(a.picture.cmp(&b.picture)));
    odd.truncate(args.n);
    let listed = |one: &Odd| {
        let (name, note) = (index.name(one.picture), format!("{:.3}", one.score));
        Listed {
            shown: Shown { picture: one.picture, note, ..Shown::default() },
            object: as_json(args.by, name, one),
            line: format!("{:.4}  {name}", one.score),
        }
    };
    args.listing.show(&index, &odd.iter().map(listed).collect::<Vec<_>>())
}

impl By {
    /// Which of two scores is odder: it is less.
    fn first(self, a: f32, b: f32) -> Ordering {
        match self {
            By::Unlike | By::Bright => b.total_cmp(&a),
            By::Blurry | By::Dark | By::Flat => a.total_cmp(&b),
        }
    }
}

fn unlike(args: &OutliersArgs, index: &PictureIndex) -> Result<Vec<Odd>, Failure> {
    let device = args.pictures.device()?;
    let bar = Bar::new("comparing", false);
    let tell = |done| bar.at(done, index.len());
    let scores =
        outlier_scores(&device, index.vectors()?, index.parts().dim, args.k as usize, &tell);
    drop(bar);
    let odd = |(picture, score)| Odd { picture, score, appearance: None };
    Ok(scores?.into_iter().enumerate().map(odd).collect())
}

fn looking(by: By, index: &PictureIndex) -> Vec<Odd> {
    let paths: Vec<PathBuf> = (0..index.len()).map(|i| index.picture(i)).collect();
    let bar = Bar::new("reading", false);
    let seen = Appearance::of_files(&paths, &|done| bar.at(done, paths.len()));
    drop(bar);
    let (mut odd, mut unread) = (vec![], vec![]);
    for (picture, seen) in seen.into_iter().enumerate() {
        match seen {
            Ok(seen) => {
                odd.push(Odd { picture, score: score(by, &seen), appearance: Some(seen) });
            }
            Err(why) => unread.push((picture, why)),
        }
    }
    if let Some((first, why)) = unread.first() {
        eprintln!(
            "warning: {} pictures could not be read; the first is {} ({why})",
            grouped(unread.len()),
            index.name(*first)
        );
    }
    odd
}

fn score(by: By, seen: &Appearance) -> f32 {
    match by {
        By::Blurry => seen.sharpness,
        By::Dark | By::Bright => seen.brightness,
        By::Flat => seen.contrast,
        By::Unlike => 0.0, // told by vectors
    }
}

fn as_json(by: By, name: &str, one: &Odd) -> Value {
    match one.appearance {
        Some(seen) => json!({
            "path": name,
            "sharpness": seen.sharpness,
            "brightness": seen.brightness,
            "contrast": seen.contrast,
            "by": format!("{by:?}").to_lowercase(),
        }),
        None => json!({ "path": name, "score": one.score, "by": "unlike" }),
    }
}
