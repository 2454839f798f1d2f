//! Folders of images through a model: into an index, made or brought up to date, or into a table.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anchorhood_engine::Device;
use anchorhood_export::{TableFormat, save_folder_table};
use anchorhood_index::{
    FolderEvent, FolderJob, FolderOutcome, FolderVectors, Model, PictureIndex, Shard, cached_index,
};
use anchorhood_report::{duration, grouped};
use anchorhood_storage::Disk;
use anchorhood_train::{Event, LabelsChoice};

use crate::error::usage;
use crate::{Error, Index, OnEvent, folder_report};

/// Files that cannot be read are named, up to so many; the others are only counted.
const NAMED: usize = 20;
/// Somebody who stops nothing.
static NEVER: AtomicBool = AtomicBool::new(false);

/// How folders are embedded.
#[derive(Clone, Debug)]
pub struct FolderOptions {
    /// Whether sub-folders are classes.
    pub labels: LabelsChoice,
    /// The layer whose values are the vectors; the last one where none is named.
    pub layer: Option<String>,
    /// Images at a time.
    pub batch: usize,
    /// Threads that decode; 0 for one a core.
    pub threads: usize,
    /// Whether an interrupted job is thrown away, instead of going on.
    pub restart: bool,
    /// Whether an index that is there is replaced, and not brought up to date.
    pub overwrite: bool,
    /// Pixels a side of small copies of the images in an index, where it is to have some.
    pub thumbnails: Option<usize>,
    /// Whether an index is divided into clusters whatever its size: searches look at the nearest
    /// alone.
    pub approximate: bool,
    /// The part of the files that a table has, where it is not all of them.
    pub shard: Option<Shard>,
}

impl Default for FolderOptions {
    fn default() -> Self {
        FolderOptions {
            labels: LabelsChoice::Auto,
            layer: None,
            batch: 128,
            threads: 0,
            restart: false,
            overwrite: false,
            thumbnails: None,
            approximate: false,
            shard: None,
        }
    }
}

/// Embeds folders of images (or `.tar` archives of them, or texts that list files). Broken off, the
/// same call goes on.
///
/// ```no_run
/// use anchorhood::{FolderEmbedder, Model};
///
/// let model = Model::base()?;
/// let index = FolderEmbedder::new(["photos", "scans"], &model)
///     .on_event(|event| println!("{event:?}"))
///     .index("mine.index")?;
/// FolderEmbedder::new(["photos"], &model).table("photos.parquet")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FolderEmbedder<'a> {
    folders: Vec<PathBuf>,
    model: Model,
    options: FolderOptions,
    device: Option<Device>,
    on_event: Box<dyn FnMut(&Event) + Send + 'a>,
    stop: &'a AtomicBool,
}

impl<'a> FolderEmbedder<'a> {
    /// All images of some folders.
    pub fn new<P: Into<PathBuf>>(folders: impl IntoIterator<Item = P>, model: &Model) -> Self {
        FolderEmbedder {
            folders: folders.into_iter().map(Into::into).collect(),
            model: model.clone(),
            options: FolderOptions::default(),
            device: None,
            on_event: Box::new(|_| {}),
            stop: &NEVER,
        }
    }

    /// How.
    pub fn options(mut self, options: FolderOptions) -> Self {
        self.options = options;
        self
    }

    /// Where the model runs; [`Device::auto`] where nobody says.
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Who hears of progress, and of files that cannot be read and are left out.
    pub fn on_event(mut self, hear: impl FnMut(&Event) + Send + 'a) -> Self {
        self.on_event = Box::new(hear);
        self
    }

    /// Ends soon after this is set, with what is done kept for the next call.
    pub fn stop_when(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// The index of all in a file: made, or brought up to date where it is there.
    pub fn index(self, path: impl AsRef<Path>) -> Result<Index, Error> {
        self.index_at(path.as_ref(), false)
    }

    /// The same in a file of the user's cache.
    pub fn cached_index(self) -> Result<Index, Error> {
        let path = cached_index(&self.model, &self.folders, self.options.layer.as_deref())?;
        self.index_at(&path, true)
    }

    fn index_at(mut self, path: &Path, is_ours: bool) -> Result<Index, Error> {
        let device = self.device.take().unwrap_or_else(Device::auto);
        let Self { folders, model, options, mut on_event, stop, .. } = self;
        let job =
            FolderJob { thumbnail: options.thumbnails, ..options.job(&model, &folders, path) };
        let known = match path.exists() && !options.overwrite {
            true => known(path, &job, is_ours, &mut *on_event)?,
            false => None,
        };
        if known.as_ref().is_some_and(PictureIndex::is_outdated) {
            on_event(&Event::note(format!(
                "{}: made by a version of the program that decoded images in another way; all of \
                 its vectors are made again",
                path.display()
            )));
        }
        let job = FolderJob { known: known.as_ref(), ..job };
        let done = run(&job, &device, stop, &mut *on_event)?;
        if options.approximate || done.readable > PictureIndex::EXACT_UP_TO {
            let vectors = grouped(done.readable);
            on_event(&Event::note(format!("dividing {vectors} vectors into clusters")));
        }
        let (index, changes) = done.save(path, &job, &device, options.approximate)?;
        Ok(Index::of(index).made_by(model, device, changes))
    }

    /// The vectors of all as a table for other programs, whose ending says of which kind: rows and
    /// values of each.
    pub fn table(mut self, path: impl AsRef<Path>) -> Result<(usize, usize), Error> {
        let path = path.as_ref();
        let format = TableFormat::of(path).ok_or_else(|| {
            let endings = TableFormat::ALL.map(|format| format.to_string()).join(", ");
            usage!(
                "{}: its name must end in one of {endings}, which says how it is written",
                path.display()
            )
        })?;
        let device = self.device.take().unwrap_or_else(Device::auto);
        let mut job = self.options.job(&self.model, &self.folders, path);
        (job.content_sums, job.shard) = (false, self.options.shard);
        let done = run(&job, &device, self.stop, &mut *self.on_event)?;
        let (rows, dim) = (done.readable, done.dim);
        save_folder_table(&Disk, format, path, &self.model, done)?;
        Ok((rows, dim))
    }
}

impl FolderOptions {
    fn job<'j>(&'j self, model: &'j Model, folders: &'j [PathBuf], to: &Path) -> FolderJob<'j> {
        let usual = FolderJob::new(model, folders, to);
        FolderJob {
            labels: self.labels.into(),
            layer: self.layer.as_deref(),
            batch: self.batch,
            threads: if self.threads == 0 { usual.threads } else { self.threads },
            restart: self.restart,
            ..usual
        }
    }
}

/// The index that is there, if a job can bring it up to date; one of the cache is ours to make
/// again.
fn known(
    path: &Path,
    job: &FolderJob,
    is_ours: bool,
    on_event: OnEvent,
) -> Result<Option<PictureIndex>, Error> {
    let place = path.display();
    match PictureIndex::to_bring_up_to_date(path, job) {
        Ok(index) => Ok(Some(index)),
        Err(why) if is_ours => {
            on_event(&Event::warning(format!("{place}: {why}; it is made again")));
            Ok(None)
        }
        Err(why) => Err(usage!(
            "{place}: exists already, and {why}; choose another name for it, or give --overwrite \
             to replace it"
        )),
    }
}

/// Does a job, and says what there is to know of it.
fn run(
    job: &FolderJob,
    device: &Device,
    stop: &AtomicBool,
    on_event: OnEvent,
) -> Result<FolderVectors, Error> {
    let (mut named, mut began) = (0, None);
    let mut hear = |event: FolderEvent| match event {
        FolderEvent::Looked { report } => {
            folder_report::folder_events(report).iter().for_each(&mut *on_event);
        }
        FolderEvent::FolderPassedOver { name, why } => {
            on_event(&Event::warning(format!("{name}: the folder was passed over: {why}")));
        }
        FolderEvent::JournalCut { bytes } => on_event(&Event::warning(format!(
            "{}: the last {} bytes were cut off or damaged; those pictures are read again",
            job.journal.display(),
            grouped(bytes as usize)
        ))),
        FolderEvent::GoesOn { pictures } => {
            let done = grouped(pictures);
            on_event(&Event::note(format!(
                "going on with an interrupted job: {done} pictures are done"
            )));
        }
        FolderEvent::Skipped { name, why } => {
            named += 1;
            if named <= NAMED {
                on_event(&Event::warning(format!("{name}: skipped: {why}")));
            }
        }
        FolderEvent::Progress { done, total } => {
            began.get_or_insert_with(Instant::now);
            on_event(&Event::Loading { done, pictures: total });
        }
        FolderEvent::Found { .. } | FolderEvent::Embedded { .. } => {}
    };
    let done = match job.run(device, &mut hear, stop)? {
        FolderOutcome::Finished(done) => done,
        FolderOutcome::Stopped { done, total } => {
            return Err(Error::stopped(format!(
                "stopped after {} of {} pictures; the same command goes on from there",
                grouped(done),
                grouped(total)
            )));
        }
    };
    let unreadable = done.files.len() - done.readable;
    if unreadable > 0 {
        on_event(&Event::warning(format!(
            "{} of {} pictures could not be read and are left out",
            grouped(unreadable),
            grouped(done.files.len())
        )));
    }
    if done.new > 0 {
        let seconds = began.map_or(0.0, |began: Instant| began.elapsed().as_secs_f64());
        on_event(&Event::note(format!(
            "{} pictures in {} ({:.0} a second)",
            grouped(done.new),
            duration(seconds),
            done.new as f64 / seconds.max(1e-3)
        )));
    }
    Ok(done)
}
