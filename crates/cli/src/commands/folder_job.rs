//! A folder of pictures through a model, for every command that needs one: with a bar, with warnings, and so that Ctrl-C or a
//! crash loses nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood::data::{PictureFile, find_pictures};
use anchorhood::engine::Device;
use anchorhood::search::{EmbedOptions, Embedded, Journal, JournalHeader, Model, embed_files};
use clap::Args;

use crate::args::model::io;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{duration, grouped};

/// Failures shown one by one before the rest is only counted.
const SHOWN: usize = 20;

/// Flags that every such command has.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Use this layer instead of the last (conv1 … conv5, fc, or any by its own name): the mean of each channel over all places.
    #[arg(long)]
    pub layer: Option<String>,
    /// Pictures at a time.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub batch: u16,
    /// Begin again instead of going on with an interrupted job.
    #[arg(long)]
    pub restart: bool,
    /// No bar, no lines; warnings only.
    #[arg(long)]
    pub quiet: bool,
}

/// What is to be done.
pub struct Job<'a> {
    pub model: &'a Model,
    pub folder: &'a Path,
    /// Where what is done so far is kept.
    pub journal: PathBuf,
    pub thumbnail: Option<usize>,
    pub threads: usize,
    pub args: &'a JobArgs,
}

/// What was done: the files, and a journal that knows what became of each.
pub struct Done {
    pub files: Vec<PictureFile>,
    pub journal: Journal,
    pub dim: usize,
    /// Pictures that have a vector.
    pub readable: usize,
}

impl Job<'_> {
    /// Does it, or says why it ended; an interrupted job is kept, and goes on the next time.
    pub fn run(&self, device: &Device) -> Result<Done, Failure> {
        let found = find_pictures(self.folder)?;
        for (name, why) in &found.unreadable {
            eprintln!("warning: {name}: the folder was passed over: {why}");
        }
        let files = found.files;
        let layer = self.args.layer.as_deref();
        let batch = usize::from(self.args.batch).min(files.len());
        let mut embedder = self.model.embedder(device, batch, layer)?;
        let dim = embedder.dim();
        let mut journal = self.open_journal(dim)?;
        let stop = stop_on_interrupt()?;
        let bar = Bar::new("reading pictures", self.args.quiet);
        let mut failures = 0;
        let mut begun = false;
        let mut progress = |done: usize, failed: Option<(&str, &str)>| {
            if !begun {
                bar.goes_on_from(done);
                begun = true;
            }
            if let Some((name, why)) = failed {
                failures += 1;
                if failures <= SHOWN {
                    bar.say(&format!("warning: {name}: skipped: {why}"));
                }
            }
            bar.at(done, files.len());
        };
        let options = EmbedOptions {
            threads: self.threads,
            thumbnail: self.thumbnail,
        };
        let result = embed_files(
            &mut embedder,
            &files,
            &mut journal,
            &options,
            &mut progress,
            &stop,
        );
        let seconds = bar.seconds();
        drop(bar);
        let result = result?;
        if failures > SHOWN {
            eprintln!("warning: and {} more", failures - SHOWN);
        }
        if result.stopped {
            eprintln!(
                "stopped after {} of {} pictures; the same command goes on from there",
                grouped(result.kept + result.new),
                grouped(files.len())
            );
            return Err(Failure::interrupted());
        }
        let readable = files.iter().filter(|f| journal.has_vector(&f.name));
        let readable = readable.count();
        self.sum_up(&files, readable, &result, seconds, &mut journal)?;
        Ok(Done {
            files,
            journal,
            dim,
            readable,
        })
    }

    fn open_journal(&self, dim: usize) -> Result<Journal, Failure> {
        let folder = std::path::absolute(self.folder).map_err(io(self.folder))?;
        let layer = self.args.layer.as_deref();
        let fingerprint = self.model.fingerprint();
        let header = JournalHeader::new(fingerprint, layer, dim, &folder, self.thumbnail);
        if self.args.restart && self.journal.exists() {
            std::fs::remove_file(&self.journal).map_err(io(&self.journal))?;
        }
        let (journal, recovered) = Journal::open(&self.journal, &header)?;
        if recovered.lost_bytes > 0 {
            eprintln!(
                "warning: {}: the last {} bytes were cut off or damaged; those pictures are read again",
                self.journal.display(),
                grouped(recovered.lost_bytes as usize)
            );
        }
        if recovered.pictures > 0 && !self.args.quiet {
            let done = grouped(recovered.pictures);
            eprintln!("going on with an interrupted job: {done} pictures are done");
        }
        Ok(journal)
    }

    fn sum_up(
        &self,
        files: &[PictureFile],
        readable: usize,
        result: &Embedded,
        seconds: f64,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let unreadable = files.len() - readable;
        if readable == 0 {
            let first = &files[0].name;
            let why = journal.read(first)?.and_then(|e| e.vector.err());
            return Err(Failure::failed(format!(
                "{}: none of its {} pictures can be read; the first is {first} ({})",
                self.folder.display(),
                grouped(files.len()),
                why.unwrap_or_default()
            )));
        }
        if unreadable > 0 {
            eprintln!(
                "warning: {} of {} pictures could not be read and are left out",
                grouped(unreadable),
                grouped(files.len())
            );
        }
        if !self.args.quiet {
            eprintln!(
                "{} pictures in {} ({:.0} a second)",
                grouped(result.new),
                duration(seconds),
                result.new as f64 / seconds.max(1e-3)
            );
        }
        Ok(())
    }
}

/// The first Ctrl-C asks for an end after this batch, the second ends the program.
fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after these pictures … (once more to end at once)");
    })
    .map_err(|e| Failure::failed(format!("cannot listen for Ctrl-C: {e}")))?;
    Ok(stop)
}
