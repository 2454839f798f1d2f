//! The program `anchorhood`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(anchorhood_cli::run(std::env::args_os()))
}
