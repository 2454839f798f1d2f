//! `anchorhood serve`: a page to walk through pictures, on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::PathBuf;

use anchorhood::{PageOptions, ServeOptions, open_device};
use anchorhood_serve::{Hearers, Stop};
use clap::Parser;

use crate::args::model::MachineArgs;
use crate::args::pictures::ModelFlag;
use crate::args::token::{TokenArgs, VARIABLE};
use crate::terminal;
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
    let machine = args.machine.machine()?;
    let device = || open_device(&machine, &mut terminal::tell);
    let pages = PageOptions {
        what: args.what.clone(),
        model: args.model.model.clone(),
        runs: args.model.runs.clone(),
        data: args.data.clone(),
        moved: args.folder.clone(),
        threads: machine.thread_count(),
    };
    let collection = pages.open(&device, &mut terminal::tell)?;
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
