//! `anchorhood outliers`: pictures of an index that are unlike all others, and blurry, dark, bright
//! and flat ones.

use anchorhood::{Outlier, OutlierKind};
use anchorhood_report::Shown;
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

use crate::commands::indexed::{IndexedArgs, JobArgs, drawn};
use crate::commands::listing::{Listed, ListingArgs};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;

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

impl By {
    fn kind(self, k: u32) -> OutlierKind {
        match self {
            By::Unlike => OutlierKind::Unlike(k as usize),
            By::Blurry => OutlierKind::Blurry,
            By::Dark => OutlierKind::Dark,
            By::Bright => OutlierKind::Bright,
            By::Flat => OutlierKind::Flat,
        }
    }
}

pub fn run(args: &OutliersArgs) -> Result<(), Failure> {
    args.listing.check()?;
    let job = JobArgs::default();
    let (what, index) = match args.by {
        By::Unlike => ("comparing", args.pictures.open_on_device(&job)?),
        _ => ("reading", args.pictures.open(&job)?), // nothing is computed
    };
    let bar = Bar::new(what, false);
    let found = index.outliers(args.by.kind(args.k), &mut drawn(&bar));
    drop(bar);
    let mut odd = found?;
    odd.truncate(args.n);
    let listed = |one: &Outlier| {
        let (name, note) = (index.name(one.picture), format!("{:.3}", one.score));
        Listed {
            shown: Shown { picture: one.picture, note, ..Shown::default() },
            object: as_json(args.by.kind(args.k), name, one),
            line: format!("{:.4}  {name}", one.score),
        }
    };
    args.listing.show(&index, &odd.iter().map(listed).collect::<Vec<_>>())
}

fn as_json(by: OutlierKind, name: &str, one: &Outlier) -> Value {
    match one.appearance {
        Some(seen) => json!({
            "path": name,
            "sharpness": seen.sharpness,
            "brightness": seen.brightness,
            "contrast": seen.contrast,
            "by": by.name(),
        }),
        None => json!({ "path": name, "score": one.score, "by": by.name() }),
    }
}
