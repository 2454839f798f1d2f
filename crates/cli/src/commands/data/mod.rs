//! `anchorhood data`: get a data set, see whether it is whole, pack it.

mod check;
mod fetch;
mod pack;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::terminal::failure::Failure;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood data fetch cifar10               download CIFAR-10 into data
  anchorhood data check cub200                is the copy in data whole?
  anchorhood data pack ~/pictures -o mine.pack --size 64
  anchorhood train mine.pack                  learn from the packed pictures")]
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
#[command(after_help = "\
Examples:
  anchorhood data fetch svhn                      into data/svhn
  anchorhood data fetch svhn --extra              its 531,131 extra pictures too
  anchorhood data fetch dogs --to /mnt/sets       somewhere else
  anchorhood data fetch cub200 --mirror https://example.org/cub

A download that broke off goes on where it was when the command is given again. A file takes its name when its checksum is
right, and not before. ImageNet needs an account of your own: `data fetch imagenet` says what to put where.")]
pub struct FetchArgs {
    /// cifar10, cifar100, svhn, cub200, dogs; imagenet for instructions.
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
#[command(after_help = "\
Examples:
  anchorhood data check data/CUB_200_2011
  anchorhood data check imagenet:/mnt/imagenet --json
  anchorhood data check mine.pack

Every picture is decoded. The exit code is 1 when something is missing or broken.")]
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
#[command(after_help = "\
Examples:
  anchorhood data pack ~/pictures -o mine.pack --size 64
  anchorhood data pack imagenet -o imagenet.pack      at 224×224, some 193 GB
  anchorhood train mine.pack

A pack holds the pictures, labels and names of the set, resized, as bytes: opening it maps the file, and an epoch reads it at
the speed of memory. It gives the same pictures, parts and order as the set it was made from.")]
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

pub fn run(args: &DataArgs) -> Result<(), Failure> {
    match &args.what {
        Data::Fetch(args) => fetch::run(args),
        Data::Check(args) => check::run(args),
        Data::Pack(args) => pack::run(args),
    }
}
