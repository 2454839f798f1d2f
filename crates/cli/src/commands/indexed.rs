//! Folders of images embedded as a command asks for it: its flags, its bar, its warnings, and
//! Ctrl-C. And the index of what was named: itself, or of folders one in the user's cache. Nothing
//! is ever written into a folder of pictures.

use std::path::{Path, PathBuf};

use anchorhood::{
    Device, Event, FolderEmbedder, FolderOptions, Images, Index, LabelsChoice, Model,
};
use anchorhood_index::Changes;
use clap::Args;

use crate::args::model::MachineArgs;
use crate::args::pictures::ModelFlag;
use crate::args::{device, one_of};
use crate::terminal;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output::grouped;

/// Flags of every command that embeds folders.
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
    /// As the library takes them.
    pub fn options(&self, threads: usize) -> FolderOptions {
        FolderOptions {
            layer: self.layer.clone(),
            batch: self.batch.into(),
            threads,
            restart: self.restart,
            ..FolderOptions::default()
        }
    }
}

/// Embeds folders; an interrupted job is kept, and goes on the next time.
pub fn embed<T>(
    folders: &[PathBuf],
    model: &Model,
    device: &Device,
    options: FolderOptions,
    quiet: bool,
    finish: impl FnOnce(FolderEmbedder) -> Result<T, anchorhood::Error>,
) -> Result<T, Failure> {
    // The first Ctrl-C asks for an end after this batch, the second ends the program.
    let stop =
        stop_when_interrupted(Some("stopping after these pictures … (once more to end at once)"))?;
    let mut bar: Option<Bar> = None;
    let embedder = FolderEmbedder::new(folders, model)
        .options(options)
        .device(device.clone())
        .stop_when(&stop)
        .on_event(|event| match event {
            Event::Loading { done, pictures } => {
                let bar = bar.get_or_insert_with(|| {
                    let bar = Bar::new("reading pictures", quiet);
                    bar.goes_on_from(*done);
                    bar
                });
                bar.at(*done, *pictures);
            }
            Event::Note { .. } if quiet => {}
            Event::Note { message } => say(bar.as_ref(), message),
            Event::Warning { message } => say(bar.as_ref(), &format!("warning: {message}")),
            _ => {}
        });
    Ok(finish(embedder)?)
}

fn say(bar: Option<&Bar>, text: &str) {
    match bar {
        Some(bar) => bar.say(text),
        None => eprintln!("{text}"),
    }
}

/// Which pictures, for every command that wants them indexed.
#[derive(Debug, Args)]
pub struct IndexedArgs {
    /// Folders of pictures, or an index made by `anchorhood index`.
    #[arg(value_name = "FOLDER", required = true)]
    pub pictures: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// Where an index's pictures are now, if the folder was moved; of several folders LABEL=FOLDER.
    #[arg(long)]
    pub folder: Vec<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

impl IndexedArgs {
    /// Their index: the one that was named, or that of the folders. A model that was named must be
    /// the index's.
    pub fn open(&self, job: &JobArgs) -> Result<Index, Failure> {
        open_or_make(&self.pictures, &self.model, &self.folder, job, &self.machine)
    }

    /// The same, on the device that was named.
    pub fn open_on_device(&self, job: &JobArgs) -> Result<Index, Failure> {
        Ok(self.open(job)?.on(device::open(&self.machine.machine()?)?))
    }

    /// Other pictures, an index or a folder, by the model of these.
    pub fn open_beside(&self, own: &Index, other: &PathBuf) -> Result<Index, Failure> {
        if !Images::are_in(other) {
            return Ok(Index::open(other)?);
        }
        let (model, folders) = (own.needed_model()?, std::slice::from_ref(other));
        let job = JobArgs { layer: own.parts().parts().layer.clone(), ..JobArgs::default() };
        let threads = self.machine.machine()?.thread_count();
        cached(model, folders, &job, threads, own.device())
    }
}

/// The index of what was named: itself, or of folders one in the cache.
pub fn open_or_make(
    words: &[PathBuf],
    flag: &ModelFlag,
    moved: &[PathBuf],
    job: &JobArgs,
    machine: &MachineArgs,
) -> Result<Index, Failure> {
    if let [index] = words
        && index.is_file()
        && !Images::are_in(index)
    {
        return open(index, flag, moved);
    }
    flag.check_folders(words)?;
    match words {
        [index] if !Images::are_in(index) => open(index, flag, moved),
        folders if folders.iter().all(|word| Images::are_in(word)) => {
            let model = flag.load()?;
            let machine = machine.machine()?;
            let device = device::open(&machine)?;
            cached(&model, folders, job, machine.thread_count(), &device)
        }
        several => {
            let other = several.iter().find(|word| !Images::are_in(word));
            let other = other.map_or(String::new(), |word| word.display().to_string());
            Err(usage!(
                "{other}: is no folder of pictures; several words are folders, and an index is \
                 named alone"
            ))
        }
    }
}

fn open(path: &Path, flag: &ModelFlag, moved: &[PathBuf]) -> Result<Index, Failure> {
    let index = Index::open(path)?.moved_to(moved)?.with_runs(&flag.runs);
    Ok(match flag.model {
        Some(_) => index.with_model(&flag.load()?)?,
        None => index,
    })
}

/// The index of folders in the user's cache, made or brought up to date.
fn cached(
    model: &Model,
    folders: &[PathBuf],
    job: &JobArgs,
    threads: usize,
    device: &Device,
) -> Result<Index, Failure> {
    let options = job.options(threads);
    let index =
        embed(folders, model, device, options, job.quiet, |folders| folders.cached_index())?;
    let changes = index.changes().filter(|changes| !job.quiet && !changes.none());
    if let Some(changes) = changes {
        eprintln!("{}: {}", index.file().display(), told(&changes));
    }
    Ok(index)
}

/// "12 added, 3 changed, 1 removed, 4,984 kept".
pub fn told(changes: &Changes) -> String {
    format!(
        "{} added, {} changed, {} removed, {} kept",
        grouped(changes.added),
        grouped(changes.changed),
        grouped(changes.removed),
        grouped(changes.kept)
    )
}

/// Shows how far something is, and says what there is to know of it.
pub fn drawn(bar: &Bar) -> impl FnMut(&Event) + Send + '_ {
    |event| match event {
        Event::Loading { done, pictures } => bar.at(*done, *pictures),
        other => terminal::tell(other),
    }
}
