//! `anchorhood serve`: a page to walk through pictures, on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anchorhood::Device;
use anchorhood::LabelsChoice;
use anchorhood::ServeOptions;
use anchorhood::research::RunDir;
use anchorhood::{checkpoint_of, find_run, open_images_of};
use anchorhood_index::cached_index;
use anchorhood_serve::{Collection, Hearers, ServedFolders, Stop};
use clap::Parser;

use crate::args::device;
use crate::args::model::MachineArgs;
use crate::args::pictures::{ModelFlag, is_folder};
use crate::args::token::{TokenArgs, VARIABLE};
use crate::commands::living_index;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("serve"))]
pub struct ServeArgs {
    /// Folders of pictures, a run's name or folder, or an index made by `anchorhood index`.
    #[arg(value_name = "FOLDER", required = true)]
    pub what: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelFlag,
    /// Where a run's data set is now, if it has moved.
    #[arg(long)]
    pub data: Option<String>,
    /// Where an index's pictures are now, if the folder was moved; of several folders LABEL=FOLDER.
    #[arg(long)]
    pub folder: Vec<PathBuf>,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 4242)]
    pub port: u16,
    /// The address to listen on; one that other machines can reach has a token.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    #[command(flatten)]
    pub token: TokenArgs,
    /// Browsers reach the page by https, through a proxy with TLS: send its cookie by https alone.
    #[arg(long)]
    pub https: bool,
    /// Megabytes of an uploaded picture, at most.
    #[arg(long, value_name = "MB", default_value_t = 32,
          value_parser = clap::value_parser!(u16).range(1..=512))]
    pub largest_upload: u16,
    #[command(flatten)]
    pub machine: MachineArgs,
}

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let token = args.token.token(args.host)?;
    if args.token.token.is_some() {
        eprintln!(
            "warning: every user of this machine can read --token in the list of processes; \
             --token-file FILE and {VARIABLE} are not shown there"
        );
    }
    let options = ServeOptions {
        host: args.host,
        port: args.port,
        token: token.as_ref().map(|token| token.word.clone()),
        https: args.https,
        largest_upload: usize::from(args.largest_upload) << 20,
        ..ServeOptions::default()
    };
    let device = || device::open(&args.machine.machine()?);
    args.machine.machine()?;
    let collection = collection(args, &device)?;
    let stop = Stop::default();
    let told = stop.clone();
    ctrlc::set_handler(move || told.now()).map_err(|e| failed!("cannot listen for Ctrl-C: {e}"))?;
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
    let hearers =
        Hearers { listening: &listening, warn: &|message| eprintln!("warning: {message}") };
    if !collection.has_model() {
        eprintln!(
            "warning: no model is given, and none of the runs made this index; pictures can be \
             walked, not uploaded (--model)"
        );
        collection.serve_without_model(&options, stop, &hearers)?;
    } else {
        collection.serve(&device()?, &options, stop, &hearers)?;
    }
    unread.into_inner().map_or(Ok(()), Err)
}

/// What is meant: an index, a run, or folders. Where a name is that of a run and of a folder, it is
/// the run.
fn collection(
    args: &ServeArgs,
    device: &dyn Fn() -> Result<Device, Failure>,
) -> Result<Collection, Failure> {
    let [one] = &args.what[..] else {
        args.model.check_folders(&args.what)?;
        return collection_of_folders(args, device);
    };
    let name = one.to_string_lossy();
    if one.is_file() && !is_folder(one) {
        return collection_of_index(args, one);
    }
    match find_run(&args.model.runs, &name) {
        Ok(run) => {
            if one.is_dir() && !one.join("config.toml").is_file() {
                eprintln!(
                    "note: `{name}` is taken as the run; ./{name} means the folder of this name"
                );
            }
            collection_of_run(args, &run, device)
        }
        Err(_) if is_folder(one) => collection_of_folders(args, device),
        Err(error) => Err(usage!("{name}: there is no such folder or index, and {error}")),
    }
}

fn collection_of_folders(
    args: &ServeArgs,
    device: &dyn Fn() -> Result<Device, Failure>,
) -> Result<Collection, Failure> {
    if let Some(other) = args.what.iter().find(|word| !is_folder(word)) {
        return Err(usage!(
            "{}: is no folder of pictures; several words are folders",
            other.display()
        ));
    }
    let model = args.model.load()?;
    let index = cached_index(&model, &args.what, None)?;
    let name = |path: &PathBuf| {
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
    };
    let served = ServedFolders {
        name: args.what.iter().map(name).collect::<Vec<_>>().join(", "),
        folders: args.what.clone(),
        labels: LabelsChoice::Auto.into(),
        model,
        index,
        threads: args.machine.machine()?.thread_count(),
    };
    Ok(Collection::of_folders(&device()?, served)?)
}

fn collection_of_index(args: &ServeArgs, path: &Path) -> Result<Collection, Failure> {
    let index = living_index::open(path, &[])?;
    let model = args.model.load_for(&index)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.into_owned();
    Ok(Collection::of_index(name, index, &args.folder, model)?)
}

fn collection_of_run(
    args: &ServeArgs,
    run: &Path,
    device: &dyn Fn() -> Result<Device, Failure>,
) -> Result<Collection, Failure> {
    let config = RunDir::config_of(run)?;
    checkpoint_of(run)?;
    let data = open_images_of(&config, args.data.as_deref())?;
    Ok(Collection::of_run(&device()?, run, data.train, &config)?)
}
