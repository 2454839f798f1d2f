//! An index brought up to date: the one a command writes, or one in the user's cache for a command
//! that is given folders and needs an index. Nothing is ever written into a folder of pictures.

use std::path::{Path, PathBuf};

use anchorhood::Device;
use anchorhood::{Model, PictureIndex};
use anchorhood_index::{Changes, FolderJob, cached_index};
use clap::Args;

use crate::args::device;
use crate::args::model::MachineArgs;
use crate::args::pictures::{ModelFlag, is_folder};
use crate::commands::folder_job::{self, JobArgs};
use crate::terminal::failure::Failure;
use crate::terminal::output::grouped;

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
    pub fn open(&self, job: &JobArgs) -> Result<PictureIndex, Failure> {
        let (words, model) = (&self.pictures, &self.model);
        let index = open_or_make(words, model, &self.folder, job, &self.machine)?;
        if model.model.is_some() && !words.iter().all(|word| is_folder(word)) {
            model.load_for(&index)?;
        }
        Ok(index)
    }

    /// Other pictures, an index or a folder, by the model of these.
    pub fn open_beside(
        &self,
        own: &PictureIndex,
        other: &PathBuf,
    ) -> Result<PictureIndex, Failure> {
        if !is_folder(other) {
            return open(other, &[]);
        }
        let model = self.model.load_for(own)?;
        let model = model.ok_or_else(|| unknown_model(own))?;
        let (machine, folders) = (self.machine.machine()?, std::slice::from_ref(other));
        let job = JobArgs { layer: own.parts().layer.clone(), ..JobArgs::default() };
        let device = device::open(&machine)?;
        cached(&model, folders, &job, machine.thread_count(), &device)
    }

    /// Where to compare.
    pub fn device(&self) -> Result<Device, Failure> {
        device::open(&self.machine.machine()?)
    }
}

/// The model that made an index cannot be found.
pub fn unknown_model(index: &PictureIndex) -> Failure {
    let named = index.parts().model_path.as_deref();
    let named = named.map_or(String::new(), |path| format!(" ({path})"));
    usage!(
        "{}: the model that made it{named} is not found, neither there nor among the runs; name it \
         by --model",
        index.path().display()
    )
}

/// The index of what was named: itself, or of folders one in the cache.
pub fn open_or_make(
    words: &[PathBuf],
    flag: &ModelFlag,
    moved: &[PathBuf],
    job: &JobArgs,
    machine: &MachineArgs,
) -> Result<PictureIndex, Failure> {
    if let [index] = words
        && index.is_file()
        && !is_folder(index)
    {
        return open(index, moved);
    }
    flag.check_folders(words)?;
    match words {
        [index] if !is_folder(index) => open(index, moved),
        folders if folders.iter().all(|word| is_folder(word)) => {
            let model = flag.load()?;
            let machine = machine.machine()?;
            let device = device::open(&machine)?;
            cached(&model, folders, job, machine.thread_count(), &device)
        }
        several => {
            let other = several.iter().find(|word| !is_folder(word));
            let other = other.map_or(String::new(), |word| word.display().to_string());
            Err(usage!(
                "{other}: is no folder of pictures; several words are folders, and an index is \
                 named alone"
            ))
        }
    }
}

/// Opens an index whose pictures may have been moved.
pub fn open(path: &Path, moved: &[PathBuf]) -> Result<PictureIndex, Failure> {
    if !path.exists() {
        return Err(usage!(
            "{}: there is no such index; make one with `anchorhood index`",
            path.display()
        ));
    }
    let mut index = PictureIndex::load(path)?;
    index.moved_to(moved)?;
    Ok(index)
}

/// The index of folders in the user's cache, made or brought up to date.
pub fn cached(
    model: &Model,
    folders: &[PathBuf],
    job: &JobArgs,
    threads: usize,
    device: &Device,
) -> Result<PictureIndex, Failure> {
    let path = cached_index(model, folders, job.layer.as_deref())?;
    let job_of_all = job.job(model, folders, &path, threads);
    let known = match PictureIndex::to_bring_up_to_date(&path, &job_of_all) {
        Err(why) if path.exists() => {
            eprintln!("warning: {}: {why}; it is made again", path.display());
            None
        }
        known => known.ok(),
    };
    let (index, changes) = bring_up_to_date(&path, known, &job_of_all, device, job.quiet, false)?;
    if !job.quiet && !changes.none() {
        eprintln!("{}: {}", path.display(), told(&changes));
    }
    Ok(index)
}

/// Does a job and saves its index, with what `known` knows; where nothing changed, nothing is
/// written.
pub fn bring_up_to_date(
    path: &Path,
    known: Option<PictureIndex>,
    job: &FolderJob,
    device: &Device,
    quiet: bool,
    approximate: bool,
) -> Result<(PictureIndex, Changes), Failure> {
    if known.as_ref().is_some_and(PictureIndex::is_outdated) {
        eprintln!(
            "{}: made by a version of the program that decoded images in another way; all of its \
             vectors are made again",
            path.display()
        );
    }
    let job = FolderJob { known: known.as_ref(), ..job.clone() };
    let done = folder_job::run(&job, device, quiet)?;
    if !quiet && (approximate || done.readable > PictureIndex::EXACT_UP_TO) {
        eprintln!("dividing {} vectors into clusters", grouped(done.readable));
    }
    Ok(done.save(path, &job, device, approximate)?)
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
