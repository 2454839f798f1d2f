//! What a page in the browser shows: folders that are indexed while it is open, an index, or a run.

use std::path::{Path, PathBuf};

use anchorhood_engine::Device;
use anchorhood_index::{Model, cached_index};
use anchorhood_serve::{Collection, ServedFolders};
use anchorhood_train::{Event, LabelsChoice};

use crate::error::usage;
use crate::find::check_folders;
use crate::find::checkpoint_of;
use crate::find::is_folder;
use crate::{Error, Index, OnEvent, Run, find_run, load_model, open_images_of};

/// What is to be shown.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Folders of images, a run's name or folder, or an index.
    pub what: Vec<PathBuf>,
    /// The model, by a word; `base` where there is none, and of an index the one that made it.
    pub model: Option<String>,
    /// Where runs are kept.
    pub runs: PathBuf,
    /// Where a run's data set is now, if it has moved.
    pub data: Option<String>,
    /// Where an index's folders are now; of several `LABEL=FOLDER`.
    pub moved: Vec<PathBuf>,
    /// Threads that decode.
    pub threads: usize,
}

impl PageOptions {
    /// These folders, this run or this index.
    pub fn new<P: Into<PathBuf>>(what: impl IntoIterator<Item = P>) -> PageOptions {
        PageOptions {
            what: what.into_iter().map(Into::into).collect(),
            model: None,
            runs: "runs".into(),
            data: None,
            moved: vec![],
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }

    /// Opens it, to be served. Where a name is that of a run and of a folder, it is the run. A
    /// device is opened where it is needed.
    pub fn open(
        &self,
        device: &dyn Fn() -> Result<Device, Error>,
        on_event: OnEvent,
    ) -> Result<Collection, Error> {
        let [one] = &self.what[..] else {
            check_folders(&self.runs, &self.what)?;
            return self.folders(device, on_event);
        };
        let name = one.to_string_lossy();
        if one.is_file() && !is_folder(one) {
            return self.index(one, on_event);
        }
        match find_run(&self.runs, &name) {
            Ok(run) => {
                if one.is_dir() && !one.join("config.toml").is_file() {
                    on_event(&Event::note(format!(
                        "note: `{name}` is taken as the run; ./{name} means the folder of this name"
                    )));
                }
                self.run(&run, device)
            }
            Err(_) if is_folder(one) => self.folders(device, on_event),
            Err(error) => Err(usage!("{name}: there is no such folder or index, and {error}")),
        }
    }

    fn load(&self, on_event: OnEvent) -> Result<Model, Error> {
        load_model(&self.runs, self.model.as_deref().unwrap_or(Model::BASE), on_event)
    }

    fn folders(
        &self,
        device: &dyn Fn() -> Result<Device, Error>,
        on_event: OnEvent,
    ) -> Result<Collection, Error> {
        if let Some(other) = self.what.iter().find(|word| !is_folder(word)) {
            return Err(usage!(
                "{}: is no folder of pictures; several words are folders",
                other.display()
            ));
        }
        let model = self.load(on_event)?;
        let index = cached_index(&model, &self.what, None)?;
        let name = |path: &PathBuf| {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
        };
        let served = ServedFolders {
            name: self.what.iter().map(name).collect::<Vec<_>>().join(", "),
            folders: self.what.clone(),
            labels: LabelsChoice::Auto.into(),
            model,
            index,
            threads: self.threads,
        };
        Ok(Collection::of_folders(&device()?, served)?)
    }

    fn index(&self, path: &Path, on_event: OnEvent) -> Result<Collection, Error> {
        let mut index = Index::open(path)?.with_runs(&self.runs);
        if self.model.is_some() {
            index = index.with_model(&self.load(on_event)?)?;
        }
        let model = index.model().cloned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Collection::of_index(name, index.parts().clone(), &self.moved, model)?)
    }

    fn run(
        &self,
        run: &Path,
        device: &dyn Fn() -> Result<Device, Error>,
    ) -> Result<Collection, Error> {
        let config = Run::open(run)?.config().clone();
        checkpoint_of(run)?;
        let data = open_images_of(&config, self.data.as_deref())?;
        Ok(Collection::of_run(&device()?, run, data.train, &config)?)
    }
}
