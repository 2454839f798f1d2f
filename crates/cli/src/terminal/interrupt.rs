//! Ctrl-C: the first asks for an end at the next good moment, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::terminal::failure::Failure;

/// A flag that the first Ctrl-C sets, with a word about it where there is one to say.
pub fn stop_when_interrupted(word: Option<&'static str>) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        if let Some(word) = word {
            eprintln!("\n{word}");
        }
    })
    .map_err(|e| Failure::failed(format!("cannot listen for Ctrl-C: {e}")))?;
    Ok(stop)
}
