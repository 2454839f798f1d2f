//! The program `anchorhood` with one method and one data set more. `train --help` lists both:
//!
//! ```text
//! cargo run --release -p anchorhood-vicreg -- train shapes --method vicreg
//! cargo run --release -p anchorhood-vicreg -- train csv:photos.csv --method vicreg
//! ```

use std::process::ExitCode;

use anchorhood::{DATASETS, METHODS};

mod csv;
mod vicreg;

fn main() -> ExitCode {
    let added = METHODS.add(&vicreg::VICREG).and_then(|()| DATASETS.add(&csv::CSV));
    if let Err(taken) = added {
        eprintln!("error: {taken}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(anchorhood_cli::run(std::env::args_os()))
}
