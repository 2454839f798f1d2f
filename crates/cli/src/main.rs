//! The program `anchorhood`.

use std::process::ExitCode;

fn main() -> ExitCode {
    anchorhood_cli::run(std::env::args_os())
}
