//! What does the user type?
//!
//! Arguments are parsed purely (`args`), and handed to the library by a command
//! each (`commands`). What happens is drawn (`terminal`) as a person or a program
//! wants to see it. Errors are one sentence on stderr; the exit code is 2 for something that cannot
//! be asked for, 1 for something that failed, 130 for a run that was interrupted and saved.

#![forbid(unsafe_code)]

/// As std's, but without a panic where nobody reads stderr any more, which is no reason to end a
/// run of weeks; and nothing in the text acts on the terminal.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*);
        // nobody is there to be told
        let _ = writeln!(std::io::stderr(), "{}", crate::terminal::output::printable(&text));
    }};
}

/// What the help of a command ends with: examples, and what they do.
macro_rules! help {
    ($command:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/help/", $command, ".txt")).trim_end()
    };
}

/// Something that cannot be asked for, as `format!` says it.
macro_rules! usage {
    ($($text:tt)*) => {
        crate::terminal::failure::Failure::usage(format!($($text)*))
    };
}

/// Something that failed.
macro_rules! failed {
    ($($text:tt)*) => {
        crate::terminal::failure::Failure::failed(format!($($text)*))
    };
}

mod args;
mod commands;
mod launcher;
mod terminal;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use args::{Args, Bench, Command};
use terminal::failure::Failure;

/// Runs a command line, whose first word is the program's name, and gives its exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    anchorhood_storage::explain_bus_errors();
    let words: Vec<OsString> = words.into_iter().collect();
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(said) => {
            let _ = said.print(); // nobody is there to be told
            return said.exit_code() as u8;
        }
    };
    let started = launcher::start_several(&args.command, &words);
    match started.unwrap_or_else(|| command(args.command, &words)) {
        Ok(()) => 0,
        Err(failure) => {
            if let Some(message) = &failure.message {
                // So that no line of a message, or of a name in it, looks like one of the
                // program's.
                let message = message.replace('\n', "\n  ");
                match failure.code {
                    Failure::STOPPED => eprintln!("{message}"),
                    _ => eprintln!("error: {message}"),
                }
            }
            failure.code
        }
    }
}

/// Whether a command has a flag of this name, without its dashes.
pub fn is_flag(name: &str) -> bool {
    fn has(command: &clap::Command, name: &str) -> bool {
        let named = |arg: &clap::Arg| {
            let others = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || others.contains(&name)
        };
        let mut below = command.get_subcommands();
        command.get_arguments().any(named) || below.any(|command| has(command, name))
    }
    has(&Args::command(), name)
}

fn command(command: Command, words: &[OsString]) -> Result<(), Failure> {
    use commands::*;
    if is_for_one_process(&command) {
        // The program itself takes no flags that a command can follow.
        args::ranks::refuse_several(&words[1].to_string_lossy())?;
    }
    match command {
        Command::Train(args) => train::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Attention(args) => attention::run(&args),
        Command::Embed(args) => embed::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Neighbours(args) => neighbours::run(&args),
        Command::Duplicates(args) => duplicates::run(&args),
        Command::Select(args) => select::run(&args),
        Command::Outliers(args) => outliers::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}

/// Whether several processes started together would only do it over and over.
fn is_for_one_process(command: &Command) -> bool {
    match command {
        // They do it together, or it is no work.
        Command::Train(_) | Command::Info(_) | Command::Completions(_) | Command::Man(_) => false,
        // Each process its own part.
        Command::Embed(args) => args.shard.is_none(),
        Command::Bench(args) => matches!(args.what, Bench::Step(_)),
        _ => true,
    }
}
