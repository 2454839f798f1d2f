//! `anchorhood data`: get a data set, see whether it is whole, pack it.

mod check;
pub mod fetch;
mod pack;

use std::path::PathBuf;

use anchorhood::DATASETS;
use clap::{Parser, Subcommand};

use crate::terminal::failure::Failure;

#[derive(Debug, Parser)]
#[command(after_help = help!("data"))]
pub struct DataArgs {
    #[command(subcommand)]
    pub what: Data,
}

#[derive(Debug, Subcommand)]
pub enum Data {
    /// Download a published data set.
    Fetch(FetchArgs),
    /// Say which data set a copy is, and what is missing or broken.
    Check(CheckArgs),
    /// Resize all pictures once, into one file that opens at once.
    Pack(PackArgs),
}

#[derive(Debug, Parser)]
#[command(after_help = help!("data-fetch"))]
pub struct FetchArgs {
    #[arg(help = names_help())]
    pub name: String,
    /// The folder of all sets.
    #[arg(long, value_name = "FOLDER", default_value = "data")]
    pub to: PathBuf,
    /// SVHN's extra pictures too.
    #[arg(long)]
    pub extra: bool,
    /// Download URL/FILE instead of from the official place; the checksum stays the official one.
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
    /// Keep archives after they are unpacked.
    #[arg(long)]
    pub keep: bool,
    /// Milliseconds before the first repetition of a broken download; twice as many before each
    /// next.
    #[arg(long, value_name = "MS", default_value_t = 1000, hide = true)]
    pub pause: u64,
    /// Expect this MD5 sum of FILE rather than the official one: FILE=SUM.
    #[arg(long, value_name = "FILE=SUM", hide = true)]
    pub md5: Vec<String>,
}

#[derive(Debug, Parser)]
#[command(after_help = help!("data-check"))]
pub struct CheckArgs {
    /// A folder, a CIFAR archive, a packed set, or the name of a data set as for `train`.
    pub data: String,
    /// How many missing or broken files to name.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub most: usize,
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = help!("data-pack"))]
pub struct PackArgs {
    /// A folder, or the name of a data set as for `train`.
    pub data: String,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Pixels a side [default: the data set's own].
    #[arg(long)]
    pub size: Option<usize>,
    /// Replace the file if it is there.
    #[arg(long)]
    pub force: bool,
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

/// Which sets can be fetched.
fn names_help() -> String {
    let names = |by_hand: bool| {
        let sets = DATASETS.all().into_iter().filter(|set| set.archives.is_empty() == by_hand);
        sets.map(|set| set.name).collect::<Vec<_>>().join(", ")
    };
    format!("{}; {} for instructions", names(false), names(true))
}

pub fn run(args: &DataArgs) -> Result<(), Failure> {
    match &args.what {
        Data::Fetch(args) => fetch::run(args),
        Data::Check(args) => check::run(args),
        Data::Pack(args) => pack::run(args),
    }
}
