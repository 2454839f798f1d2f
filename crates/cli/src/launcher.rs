//! Several GPUs without a launcher: `--device cuda:0,1` and `cuda:all` have the program start
//! itself, once for each.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command as Program;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood::research::{RunDir, gpus_of};
use anchorhood_distributed::{Launch, Processes};

use crate::args::Command;
use crate::commands::train::resumed_run;
use crate::terminal::failure::Failure;

/// Starts as many processes as a command is to have and waits for them; nothing is done where it is
/// one, or one of several already.
pub fn start_several(command: &Command, words: &[OsString]) -> Option<Result<(), Failure>> {
    let count = wanted(command).transpose()?;
    Some(count.and_then(|count| start(count, words)))
}

/// How many processes are to be started.
fn wanted(command: &Command) -> Result<Option<usize>, Failure> {
    // What cannot be meant is told by the command.
    if !matches!(Launch::from_environment(), Ok(None)) {
        return Ok(None);
    }
    let Command::Train(args) = command else {
        return Ok(None);
    };
    if args.explain {
        return Ok(None);
    }
    let resumed = resumed_run(args)?;
    let resumed = resumed.map(|run| RunDir::config_of(&run)).transpose()?;
    let gpus = gpus_of(args.start.options().device(resumed.as_ref())?)?.len();
    Ok([gpus, asked_for()].into_iter().find(|count| *count > 1))
}

/// Processes of any device, for trying it where there is no GPU.
fn asked_for() -> usize {
    let asked = std::env::var("ANCHORHOOD_PROCESSES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(1)
}

fn start(count: usize, words: &[OsString]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| failed!("{count} processes could not be started: {e}");
    let program = std::env::current_exe().map_err(failed)?;
    let stops = pass_on_interrupts()?;
    let command = || {
        let mut command = Program::new(&program);
        if is_python(&program) {
            command.args(["-m", "anchorhood"]);
        }
        command.args(words.iter().skip(1));
        command
    };
    let processes = Processes::start(count, command).map_err(failed)?;
    match processes.wait(&stops).map_err(failed)? {
        0 => Ok(()),
        // They have said why.
        code => Err(Failure { message: None, code }),
    }
}

/// How often it was asked to stop.
fn pass_on_interrupts() -> Result<Arc<AtomicUsize>, Failure> {
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = stops.clone();
    ctrlc::set_handler(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    })
    .map_err(|e| failed!("cannot listen for Ctrl-C: {e}"))?;
    Ok(stops)
}

/// Whether the program is Python's, which runs this one as a module.
fn is_python(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python")
}
