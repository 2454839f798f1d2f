//! `anchorhood model`: which models there are, get one, see what one is.

mod fetch;
mod list;
mod show;

use std::path::PathBuf;

use anchorhood_index::models_folder;
use clap::{Parser, Subcommand};

use crate::terminal::failure::Failure;

#[derive(Debug, Parser)]
#[command(after_help = help!("model"))]
pub struct ModelCommandArgs {
    #[command(subcommand)]
    pub what: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Models that can be fetched by name, and those that are here.
    List(ListArgs),
    /// Download a model, verify it, and keep it for every command that takes one.
    Fetch(FetchArgs),
    /// What a model is: network, input, features, fingerprint, and how it was trained.
    Show(ShowArgs),
}

#[derive(Debug, Parser)]
pub struct ListArgs {
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = help!("model-fetch"))]
pub struct FetchArgs {
    /// A name of `model list`, or the address of a file.
    pub model: String,
    /// The SHA-256 that its bytes must have, 64 hexadecimal digits; needed with an address.
    #[arg(long, value_name = "SUM", value_parser = sha256)]
    pub sha256: Option<String>,
    /// Download URL/FILE instead of from the official place; the checksum stays the official one.
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
    /// Milliseconds before the first repetition of a broken download; twice as many before each
    /// next.
    #[arg(long, value_name = "MS", default_value_t = 1000, hide = true)]
    pub pause: u64,
}

#[derive(Debug, Parser)]
pub struct ShowArgs {
    /// A run's name or folder, a model file, or the name of a fetched model.
    pub model: String,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// As one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &ModelCommandArgs) -> Result<(), Failure> {
    match &args.what {
        ModelCommand::List(args) => list::run(args),
        ModelCommand::Fetch(args) => fetch::run(args),
        ModelCommand::Show(args) => show::run(args),
    }
}

/// Where fetched models are kept.
fn folder() -> Result<PathBuf, Failure> {
    models_folder().ok_or_else(|| {
        Failure::usage("there is no folder to keep models in: set ANCHORHOOD_CACHE to one, or HOME")
    })
}

fn sha256(text: &str) -> Result<String, String> {
    let hex = text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    match hex {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("a SHA-256 is 64 hexadecimal digits, as sha256sum prints them".into()),
    }
}
