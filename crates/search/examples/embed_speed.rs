//! How much slower is a folder of pictures than the network alone?
//!
//! `cargo run --release -p anchorhood-search --example embed_speed -- CHECKPOINT FOLDER [THREADS]`

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anchorhood_data::{LabelChoice, find_pictures};
use anchorhood_engine::Device;
use anchorhood_search::{EmbedOptions, Journal, JournalHeader, Model, embed_files};

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut path = || args.next().map(PathBuf::from).ok_or("CHECKPOINT FOLDER");
    let (checkpoint, folder) = (path()?, path()?);
    let threads: usize = args.next().map_or(Ok(2), |t| t.parse())?;
    let device = Device::cpu(threads);
    let model = Model::load(&checkpoint)?;
    let mut embedder = model.embedder(&device, BATCH, None)?;
    let files = find_pictures(&folder, LabelChoice::Auto)?.files;

    let squares = vec![128; BATCH * embedder.size() * embedder.size() * 3];
    let mut vectors = vec![];
    let batches = files.len().div_ceil(BATCH);
    embedder.embed(&squares, &mut vectors)?;
    let start = Instant::now();
    for _ in 0..batches {
        vectors.clear();
        embedder.embed(&squares, &mut vectors)?;
    }
    let alone = (batches * BATCH) as f64 / start.elapsed().as_secs_f64();

    let kept = tempfile::tempdir()?;
    let header = JournalHeader::new(model.fingerprint(), None, embedder.dim(), &folder, None);
    let (mut journal, _) = Journal::open(&kept.path().join("journal"), &header)?;
    let options = EmbedOptions { threads, ..EmbedOptions::default() };
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    embed_files(&mut embedder, &files, &mut journal, &options, &mut |_, _| {}, &stop)?;
    let whole = files.len() as f64 / start.elapsed().as_secs_f64();
    println!(
        "{} pictures, {threads} threads: the network alone {alone:.0} a second, from files {whole:.0} a second ({:.2})",
        files.len(),
        whole / alone
    );
    Ok(())
}
