//! A folder of pictures through a model, for every command that needs one: its flags, its bar, its
//! warnings, and Ctrl-C.

use std::path::{Path, PathBuf};

use anchorhood::Device;
use anchorhood::Model;
use anchorhood::folder_events;
use anchorhood::{Event, LabelsChoice};
use anchorhood_index::{FolderEvent, FolderJob, FolderOutcome, FolderVectors};
use clap::Args;

use crate::args::one_of;
use crate::terminal;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output::{duration, grouped};

/// Failures shown one by one before the rest is only counted.
const SHOWN: usize = 20;

/// Flags that every such command has.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Use this layer instead of the last (conv1 … conv5, fc, or any by its own name): the mean of
    /// each channel over all places.
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

/// What sub-folders are taken for.
#[derive(Debug, Args)]
pub struct LabelsArgs {
    /// Whether sub-folders are classes: auto (where they look like it), folders or none.
    #[arg(long, default_value = "auto", value_parser = one_of::<LabelsChoice>(LabelsChoice::NAMES))]
    pub labels: LabelsChoice,
}

/// For commands without these flags.
impl Default for JobArgs {
    fn default() -> Self {
        JobArgs { layer: None, batch: 128, restart: false, quiet: false }
    }
}

impl JobArgs {
    /// The job that they mean, whose result is to lie at `result`.
    pub fn job<'a>(
        &'a self,
        model: &'a Model,
        folders: &'a [PathBuf],
        result: &Path,
        threads: usize,
    ) -> FolderJob<'a> {
        FolderJob {
            layer: self.layer.as_deref(),
            batch: self.batch.into(),
            threads,
            restart: self.restart,
            ..FolderJob::new(model, folders, result)
        }
    }
}

/// Does a job, or says why it ended; an interrupted one is kept, and goes on the next time.
pub fn run(job: &FolderJob, device: &Device, quiet: bool) -> Result<FolderVectors, Failure> {
    // The first Ctrl-C asks for an end after this batch, the second ends the program.
    let stop =
        stop_when_interrupted(Some("stopping after these pictures … (once more to end at once)"))?;
    let mut drawn = Drawn { journal: &job.journal, bar: None, quiet, skipped: 0 };
    let outcome = job.run(device, &mut |event| drawn.event(event), &stop);
    let seconds = drawn.bar.as_ref().map_or(0.0, Bar::seconds);
    let skipped = drawn.skipped;
    drop(drawn);
    if skipped > SHOWN {
        eprintln!("warning: and {} more", skipped - SHOWN);
    }
    match outcome? {
        FolderOutcome::Finished(done) => {
            sum_up(&done, seconds, quiet);
            Ok(done)
        }
        FolderOutcome::Stopped { done, total } => {
            eprintln!(
                "stopped after {} of {} pictures; the same command goes on from there",
                grouped(done),
                grouped(total)
            );
            Err(Failure::interrupted())
        }
    }
}

/// A job as it is seen.
struct Drawn<'a> {
    journal: &'a Path,
    /// From the first picture on.
    bar: Option<Bar>,
    quiet: bool,
    skipped: usize,
}

impl Drawn<'_> {
    fn event(&mut self, event: FolderEvent) {
        match event {
            FolderEvent::Looked { report } => {
                let events = folder_events(report);
                let said = |e: &&Event| !self.quiet || matches!(e, Event::Warning { .. });
                events.iter().filter(said).for_each(terminal::tell);
            }
            FolderEvent::FolderPassedOver { name, why } => {
                eprintln!("warning: {name}: the folder was passed over: {why}");
            }
            FolderEvent::JournalCut { bytes } => eprintln!(
                "warning: {}: the last {} bytes were cut off or damaged; those pictures are read \
                 again",
                self.journal.display(),
                grouped(bytes as usize)
            ),
            FolderEvent::GoesOn { pictures } if !self.quiet => {
                let done = grouped(pictures);
                eprintln!("going on with an interrupted job: {done} pictures are done");
            }
            FolderEvent::GoesOn { .. }
            | FolderEvent::Found { .. }
            | FolderEvent::Embedded { .. } => {}
            FolderEvent::Skipped { name, why } => {
                self.skipped += 1;
                if let (true, Some(bar)) = (self.skipped <= SHOWN, &self.bar) {
                    bar.say(&format!("warning: {name}: skipped: {why}"));
                }
            }
            FolderEvent::Progress { done, total } => {
                let quiet = self.quiet;
                let bar = self.bar.get_or_insert_with(|| {
                    let bar = Bar::new("reading pictures", quiet);
                    bar.goes_on_from(done);
                    bar
                });
                bar.at(done, total);
            }
        }
    }
}

fn sum_up(done: &FolderVectors, seconds: f64, quiet: bool) {
    let unreadable = done.files.len() - done.readable;
    if unreadable > 0 {
        eprintln!(
            "warning: {} of {} pictures could not be read and are left out",
            grouped(unreadable),
            grouped(done.files.len())
        );
    }
    if !quiet && done.new > 0 {
        eprintln!(
            "{} pictures in {} ({:.0} a second)",
            grouped(done.new),
            duration(seconds),
            done.new as f64 / seconds.max(1e-3)
        );
    }
}
