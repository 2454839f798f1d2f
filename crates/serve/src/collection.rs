//! Pictures to be shown, and the model behind them: those of a run, which may still be training, of
//! an index, or of folders that are indexed meanwhile.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use anchorhood_data::Split;
use anchorhood_engine::Device;
use anchorhood_index::{Model, PictureIndex};
use anchorhood_report::RoundNeighbourhoods;
use anchorhood_train::RunConfig;

use crate::growing::{Growing, ServedFolders};
use crate::model::{BATCH, LoadedModel, ServedModel};
use crate::run::WatchedRun;
use crate::{Asker, Catalog, ServeError, ServeOptions, Server, Stop, inference_queue};

/// What is to be served.
pub struct Collection {
    shelf: Catalog,
    rounds: Vec<RoundNeighbourhoods>,
    /// The run they are of.
    run: Option<WatchedRun>,
    /// What brings more of them.
    growing: Option<Growing>,
    layer: Option<String>,
    model: Option<ServedModel>,
}

/// Who hears what happens while it is served.
pub struct Hearers<'a> {
    /// Is told where it listens, once it does.
    pub listening: &'a dyn Fn(SocketAddr),
    /// Is told what went wrong without an end to it.
    pub warn: &'a (dyn Fn(&str) + Sync),
}

impl Collection {
    /// The training pictures of a run, as its last checkpoint remembers them, or as its network
    /// sees them on a device; newer checkpoints are taken as they are saved.
    pub fn of_run(
        device: &Device,
        folder: &Path,
        train: Split,
        config: &RunConfig,
    ) -> Result<Collection, ServeError> {
        let run = WatchedRun::new(device, folder.into(), train, config);
        let fresh = run.read()?;
        Ok(Collection {
            shelf: fresh.shelf,
            rounds: fresh.rounds,
            run: Some(run),
            growing: None,
            layer: None,
            model: Some(fresh.model),
        })
    }

    /// The pictures of an index, in folders where some are given; with the model it was made with,
    /// pictures can be uploaded.
    pub fn of_index(
        name: String,
        index: PictureIndex,
        folders: &[PathBuf],
        model: Option<Model>,
    ) -> Result<Collection, ServeError> {
        if let Some(model) = &model {
            index.check_model(model)?;
        }
        Ok(Collection {
            layer: index.parts().layer.clone(),
            shelf: Catalog::of_index(name, index, folders.iter().map(PathBuf::as_path))?,
            rounds: vec![],
            run: None,
            growing: None,
            model: model.map(|model| ServedModel { model, look: None }),
        })
    }

    /// The pictures of folders, which are indexed on a device while they are shown: what is there
    /// already, or the first few, and then more and more.
    pub fn of_folders(device: &Device, served: ServedFolders) -> Result<Collection, ServeError> {
        let model = served.model.clone();
        let (growing, shelf) = Growing::start(device, served)?;
        Ok(Collection {
            shelf,
            rounds: vec![],
            run: None,
            growing: Some(growing),
            layer: None,
            model: Some(ServedModel { model, look: None }),
        })
    }

    /// Whether there is a model to send uploaded pictures through.
    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Serves it, its model on `device`, until `stop`.
    pub fn serve(
        mut self,
        device: &Device,
        options: &ServeOptions,
        stop: Stop,
        hearers: &Hearers,
    ) -> Result<(), ServeError> {
        let Some(model) = self.model.take() else {
            return self.serve_without_model(options, stop, hearers);
        };
        let squaring = model.model.squaring();
        let layer = self.layer.take();
        let loaded = LoadedModel::new(device, model, layer.as_deref())?;
        let (asker, queue) = inference_queue(squaring);
        let (run, growing) = (self.run.clone(), self.growing.take());
        let mut server = self.bind(options, Some(asker), stop)?;
        if let Some(growing) = &growing {
            server.tell_of(growing.indexing.clone());
        }
        let halt = growing.as_ref().map(Growing::halt);
        (hearers.listening)(server.address());
        let (renewer, newer, warn) = (server.renewer(), Mutex::new(None), hearers.warn);
        // The model stays on this thread, where its device is; the server has threads of its own.
        std::thread::scope(|threads| {
            let (ended, end) = std::sync::mpsc::channel();
            let serving = threads.spawn(move || {
                let _ended = ended;
                server.run()
            });
            if let Some(run) = run {
                let (newer, renewer) = (&newer, renewer.clone());
                threads.spawn(move || run.watch(&renewer, newer, &end, warn));
            }
            if let Some(growing) = growing {
                threads.spawn(move || growing.follow(&renewer, &warn));
            }
            let loaded = RefCell::new(loaded);
            queue.answer(
                BATCH,
                |squares| loaded.borrow_mut().renewed(&newer)?.embed(squares),
                |i| loaded.borrow_mut().renewed(&newer)?.look(i),
            );
            if let Some(halt) = halt {
                halt.store(true, Ordering::Relaxed);
            }
            serving.join().unwrap_or_else(|_| Err(ServeError::ended()))
        })
    }

    /// Serves it without a model: pictures can be walked, not uploaded.
    pub fn serve_without_model(
        self,
        options: &ServeOptions,
        stop: Stop,
        hearers: &Hearers,
    ) -> Result<(), ServeError> {
        let server = self.bind(options, None, stop)?;
        (hearers.listening)(server.address());
        server.run()
    }

    fn bind(
        self,
        options: &ServeOptions,
        asker: Option<Asker>,
        stop: Stop,
    ) -> Result<Server, ServeError> {
        let folder = self.run.map(|r| r.folder().into());
        Server::bind(options, self.shelf, self.rounds, folder, asker, stop)
    }
}
