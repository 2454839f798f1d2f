//! `anchorhood completions` and `anchorhood man`: what a shell and a reader's `man` want to know,
//! from the arguments themselves.

use std::io;
use std::path::{Path, PathBuf};

use anchorhood_storage::{AtomicFile, Disk, FileSystem};
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;

use crate::args::Args;
use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("completions"))]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

#[derive(Debug, Parser)]
#[command(after_help = help!("man"))]
pub struct ManArgs {
    /// A folder to write a page for each command to; without one the program's own page goes to
    /// stdout.
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

/// Writes a completion script to stdout.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Args::command(), "anchorhood", &mut script);
    output::bytes(&script)
}

/// Writes manual pages.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |e: io::Error| failed!("{path}: cannot write the manual: {e}")
    };
    match &args.output {
        Some(folder) => pages(folder).map_err(failed(folder)),
        None => {
            let mut page = vec![];
            let man = clap_mangen::Man::new(Args::command());
            man.render(&mut page).map_err(failed(Path::new("stdout")))?;
            output::bytes(&page)
        }
    }
}

/// A page for the program and one for each command.
fn pages(folder: &Path) -> io::Result<()> {
    Disk.create_folders(folder)?;
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    page(program, folder)
}

fn page(command: Command, folder: &Path) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    shown.cloned().try_for_each(|c| page(c, folder))?;
    let man = clap_mangen::Man::new(command);
    let mut page = vec![];
    man.render(&mut page)?;
    AtomicFile::write(&folder.join(man.get_filename()), &page)
}
