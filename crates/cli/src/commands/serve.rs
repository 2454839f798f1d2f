//! `anchorhood serve`: a page to walk through pictures, on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anchorhood::engine::Device;
use anchorhood::search::{Model, PictureIndex};
use anchorhood::serve::{Collection, Hearers, ServeError, ServeOptions, Stop};
use anchorhood::train::{RunDir, model_path};
use clap::Parser;

use crate::args::device;
use crate::args::model::{MachineArgs, load_model};
use crate::args::resolve::{find_run, model_file, model_of};
use crate::args::run_data;
use crate::args::token::{TokenArgs, VARIABLE};
use crate::commands::neighbours::open_index;
use crate::terminal::advice::sentence;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood serve mine                            the pictures of a run, and its curves while it trains
  anchorhood serve pictures.index --model mine     the pictures of an index, and uploads
  anchorhood serve mine --host 0.0.0.0 --token-file word.txt    for other machines that know the word in the file

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
    /// The address to listen on; one that other machines can reach needs a token.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    #[command(flatten)]
    pub token: TokenArgs,
    /// Megabytes of an uploaded picture, at most.
    #[arg(long, value_name = "MB", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub largest_upload: u16,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let token = args.token.token()?;
    if token.as_ref().is_some_and(|token| token.shown) {
        eprintln!(
            "warning: every user of this machine can read --token in the list of processes; --token-file FILE and {VARIABLE} are not shown there"
        );
    }
    let options = ServeOptions {
        host: args.host,
        port: args.port,
        token: token.as_ref().map(|token| token.word.clone()),
        largest_upload: usize::from(args.largest_upload) << 20,
        ..ServeOptions::default()
    };
    let device = || device::open(&args.machine.machine()?);
    args.machine.machine()?;
    let collection = match Path::new(&args.what).is_file() {
        true => collection_of_index(args)?,
        false => collection_of_run(args, &device)?,
    };
    let stop = Stop::default();
    let told = stop.clone();
    ctrlc::set_handler(move || told.now())
        .map_err(|e| Failure::failed(format!("cannot listen for Ctrl-C: {e}")))?;
    // Where nobody can read the address, there is nothing to serve.
    let (end, unread) = (stop.clone(), RefCell::new(None));
    let listening = |address| {
        let word = match &token {
            Some(token) if token.shown => format!("/?token={}", token.word),
            _ => String::new(),
        };
        let hidden = match &token {
            Some(token) if !token.shown => ", with /?token= and the token at its end",
            _ => "",
        };
        match output::line(&format!("http://{address}{word}")) {
            Ok(()) => eprintln!("open this address in a browser{hidden}; Ctrl-C ends the server"),
            Err(failure) => {
                unread.replace(Some(failure));
                end.now();
            }
        }
    };
    let hearers = Hearers {
        listening: &listening,
        warn: &|message| eprintln!("warning: {message}"),
    };
    if !collection.has_model() {
        eprintln!(
            "warning: no model is given, and none of the runs made this index; pictures can be walked, not uploaded (--model)"
        );
        collection.serve_without_model(&options, stop, &hearers)?;
    } else {
        collection.serve(&device()?, &options, stop, &hearers)?;
    }
    unread.into_inner().map_or(Ok(()), Err)
}

fn collection_of_index(args: &ServeArgs) -> Result<Collection, Failure> {
    let path = Path::new(&args.what);
    let index = open_index(path, None)?;
    let model = match &args.model {
        Some(model) => Some(load_model(&model_file(&args.runs, model)?)?),
        None => maker(&args.runs, &index),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = args.folder.as_deref();
    Ok(Collection::of_index(
        name.into_owned(),
        index,
        folder,
        model,
    )?)
}

/// The run whose model made an index, if it is one of these.
fn maker(runs: &Path, index: &PictureIndex) -> Option<Model> {
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let models = folders.map(|f| model_path(&f.path()));
    let mut models = models
        .filter(|p| p.is_file())
        .filter_map(|p| Model::load(&p).ok());
    models.find(|m| index.check_model(m).is_ok())
}

fn collection_of_run(
    args: &ServeArgs,
    device: &dyn Fn() -> Result<Device, Failure>,
) -> Result<Collection, Failure> {
    let run = find_run(&args.runs, &args.what)?;
    let config = RunDir::config_of(&run)?;
    model_of(&run)?;
    let data = run_data::open(&config, args.data.as_deref())?;
    Ok(Collection::of_run(&device()?, &run, data.train, &config)?)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Search(error) => error.into(),
            ServeError::Report(error) => error.into(),
            ServeError::Engine(error) => error.into(),
            ServeError::System(_) | ServeError::Listen { .. } | ServeError::Ended => {
                Failure::failed(sentence(&error))
            }
            ServeError::Taken { .. }
            | ServeError::Open { .. }
            | ServeError::BadToken
            | ServeError::WideFolder { .. }
            | ServeError::OtherPictures { .. }
            | ServeError::Catalog(_) => Failure::usage(sentence(&error)),
        }
    }
}
