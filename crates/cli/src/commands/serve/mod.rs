//! `anchorhood serve`: a page to walk through pictures, on this machine.

mod look;
mod model;
mod run;

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anchorhood::engine::Device;
use anchorhood::report::Findings;
use anchorhood::search::{Model, PictureIndex};
use anchorhood::serve::{ServeError, ServeOptions, Server, Shelf, Stop, desk};
use anchorhood::train::{RunDir, checkpoint_path};
use clap::Parser;

use crate::args::device;
use crate::args::model::MachineArgs;
use crate::args::resolve::{find_run, last_of, model_file};
use crate::args::run_data;
use crate::commands::neighbours::open_index;
use crate::terminal::failure::Failure;
use crate::terminal::output;
use model::{BATCH, Thinker, Thinking};
use run::WatchedRun;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood serve mine                            the pictures of a run, and its curves while it trains
  anchorhood serve pictures.index --model mine     the pictures of an index, and uploads
  anchorhood serve mine --host 0.0.0.0 --token a-long-word    for other machines that know the word

Open the address it prints. Ctrl-C ends it. A run that trains is shown as it is: newer checkpoints are
taken when they are saved. Programs find the same under /api, described at /api/openapi.json.")]
pub struct ServeArgs {
    /// A run's name or folder, or an index made by `anchorhood index`.
    pub what: String,
    /// The model an index was made with: a run or a checkpoint [default: looked for among the runs].
    #[arg(long, value_name = "RUN")]
    pub model: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Where a run's data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// Where an index's pictures are now, if the folder was moved.
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 4242)]
    pub port: u16,
    /// The address to listen on; one that other machines can reach needs --token.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// A word of at least 8 letters or digits, without which nothing is shown.
    #[arg(long, value_name = "WORD")]
    pub token: Option<String>,
    /// Megabytes of an uploaded picture, at most.
    #[arg(long, value_name = "MB", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub largest_upload: u16,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// What is to be served.
struct Goods {
    shelf: Shelf,
    rounds: Vec<Findings>,
    /// The run they are of, which may still be training.
    run: Option<WatchedRun>,
    layer: Option<String>,
    thinker: Option<Thinker>,
}

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let options = ServeOptions {
        host: args.host,
        port: args.port,
        token: args.token.clone(),
        largest_upload: usize::from(args.largest_upload) << 20,
        ..ServeOptions::default()
    };
    let machine = args.machine.machine()?;
    let goods = match Path::new(&args.what).is_file() {
        true => index_goods(args)?,
        false => run_goods(args)?,
    };
    let stop = Stop::default();
    let told = stop.clone();
    ctrlc::set_handler(move || told.now())
        .map_err(|e| Failure::failed(format!("cannot listen for Ctrl-C: {e}")))?;
    match goods.thinker.is_some() {
        true => {
            let device = device::open(&machine)?;
            let serving = Serving {
                goods,
                options,
                stop,
            };
            serving.on(&device)
        }
        false => {
            eprintln!(
                "warning: no model is given, and none of the runs made this index; pictures can be walked, not uploaded (--model)"
            );
            let server = bound(goods, &options, None, stop)?;
            Ok(server.run()?)
        }
    }
}

fn index_goods(args: &ServeArgs) -> Result<Goods, Failure> {
    let path = Path::new(&args.what);
    let index = open_index(path, args.folder.as_deref())?;
    let model = match &args.model {
        Some(model) => {
            let model = Model::load(&model_file(&args.runs, model)?)?;
            index.check_model(&model)?;
            Some(model)
        }
        None => maker(&args.runs, &index),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Goods {
        layer: index.parts().layer.clone(),
        shelf: Shelf::of_index(name.into_owned(), index)?,
        rounds: vec![],
        run: None,
        thinker: model.map(|model| Thinker { model, look: None }),
    })
}

/// The run whose model made an index, if it is one of these.
fn maker(runs: &Path, index: &PictureIndex) -> Option<Model> {
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let lasts = folders.map(|f| checkpoint_path(&f.path(), "last"));
    let mut models = lasts
        .filter(|p| p.is_file())
        .filter_map(|p| Model::load(&p).ok());
    models.find(|m| index.check_model(m).is_ok())
}

fn run_goods(args: &ServeArgs) -> Result<Goods, Failure> {
    let run = find_run(&args.runs, &args.what)?;
    let config = RunDir::config_of(&run)?;
    last_of(&run)?;
    let data = run_data::open(&config, args.data.as_deref())?;
    let run = WatchedRun::new(run, data.train, &config);
    let fresh = run.read()?;
    Ok(Goods {
        shelf: fresh.shelf,
        rounds: fresh.rounds,
        run: Some(run),
        layer: None,
        thinker: Some(fresh.thinker),
    })
}

struct Serving {
    goods: Goods,
    options: ServeOptions,
    stop: Stop,
}

impl Serving {
    fn on(mut self, device: &Device) -> Result<(), Failure> {
        let Some(thinker) = self.goods.thinker.take() else {
            return Ok(());
        };
        let size = thinker.model.input().size;
        let layer = self.goods.layer.take();
        let mut thinking = Thinking::new(device, thinker, layer.as_deref())?;
        let run = self.goods.run.clone();
        let (asker, desk) = desk(size);
        let server = bound(self.goods, &self.options, Some(asker), self.stop)?;
        let renewer = server.renewer();
        let newer = Mutex::new(None);
        // The model stays on this thread, where its device is; the server has threads of its own.
        let served = std::thread::scope(|threads| {
            let (ended, end) = std::sync::mpsc::channel();
            let serving = threads.spawn(move || {
                let _ended = ended;
                server.run()
            });
            if let Some(run) = run {
                let newer = &newer;
                threads.spawn(move || run.watch(&renewer, newer, &end));
            }
            let thinking = RefCell::new(&mut thinking);
            desk.answer(
                BATCH,
                |squares| thinking.borrow_mut().renewed(&newer)?.embed(squares),
                |i| thinking.borrow_mut().renewed(&newer)?.look(i),
            );
            serving.join()
        });
        match served {
            Ok(served) => Ok(served?),
            Err(_) => Err(Failure::failed("the server ended unexpectedly")),
        }
    }
}

fn bound(
    goods: Goods,
    options: &ServeOptions,
    asker: Option<anchorhood::serve::Asker>,
    stop: Stop,
) -> Result<Server, Failure> {
    let folder = goods.run.map(|r| r.folder().into());
    let server = Server::bind(options, goods.shelf, goods.rounds, folder, asker, stop)?;
    let token = options.token.as_ref();
    let token = token.map(|t| format!("/?token={t}")).unwrap_or_default();
    output::line(&format!("http://{}{token}", server.address()))?;
    eprintln!("open this address in a browser; Ctrl-C ends the server");
    Ok(server)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::System(_) | ServeError::Listen { .. } => Failure::failed(error.to_string()),
            error => Failure::usage(error.to_string()),
        }
    }
}
