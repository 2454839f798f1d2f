//! Ctrl-C: the first asks for an end at the next good moment, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::terminal::failure::Failure;

/// The flag of the present work, and what is said when it is set.
type Work = (Arc<AtomicBool>, Option<&'static str>);

/// None before the first work: the system takes one handler for all of them.
static NOW: Mutex<Option<Work>> = Mutex::new(None);

/// A flag that the first Ctrl-C sets, with a word about it where there is one to say. The flag of
/// the work before is set no more.
pub fn stop_when_interrupted(word: Option<&'static str>) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
    if now.is_none() {
        ctrlc::set_handler(interrupt).map_err(|e| failed!("cannot listen for Ctrl-C: {e}"))?;
    }
    *now = Some((stop.clone(), word));
    Ok(stop)
}

fn interrupt() {
    let now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((flag, word)) = &*now else {
        return;
    };
    if flag.swap(true, Ordering::Relaxed) {
        std::process::exit(130);
    }
    if let Some(word) = word {
        eprintln!("\n{word}");
    }
}
