//! `anchorhood model fetch`: download and verify, so that every command finds the model by its
//! name.

use std::time::Duration;

use anchorhood::{FetchOptions, fetch_model};

use super::FetchArgs;
use crate::commands::data::fetch::drawn;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &FetchArgs) -> Result<(), Failure> {
    let options = FetchOptions {
        mirror: args.mirror.clone(),
        sha256: args.sha256.clone(),
        pause: Duration::from_millis(args.pause),
        ..FetchOptions::default()
    };
    let file = drawn(|on_event| fetch_model(&args.model, &options, on_event))?;
    let known = anchorhood_index::KnownModel::named(&args.model).map(|known| known.name);
    let own = file.file_name().unwrap_or_default().to_string_lossy();
    let name = known.unwrap_or(&own);
    output::line(&format!(
        "{name} is in {}. See what it is with\n  anchorhood model show {name}\nFine-tune it \
         with\n  anchorhood train ~/pictures --from {name}",
        file.display()
    ))
}
