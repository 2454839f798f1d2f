//! Tests from outside, together in one program, since each program is linked anew.

mod compare;
mod lab;

use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_reproduce::{ReproduceError, Told};
use anchorhood_train::Event;

/// Sets `stop` when so many epochs have ended. A run that begins after another's round 0 is on
/// pictures that are known, so that nobody is warned.
fn stopping(stop: &AtomicBool, after: Option<usize>) -> impl FnMut(Told) + Send {
    let mut epochs = 0;
    move |told: Told| match told {
        Told::Event(Event::EpochEnded(_)) => {
            epochs += 1;
            stop.store(after.is_some_and(|n| epochs >= n), Ordering::Relaxed);
        }
        Told::Event(Event::Warning { message }) => panic!("{message}"),
        _ => {}
    }
}

/// Goes on until it is not stopped any more, which happens more than so many times.
fn to_its_end<T>(stops: usize, go: impl Fn() -> Result<T, ReproduceError>) -> T {
    for call in 1..30 {
        match go() {
            Err(ReproduceError::Stopped) => {}
            ended => {
                assert!(call > stops, "it was stopped: {call}");
                return ended.unwrap();
            }
        }
    }
    panic!("it never ends")
}
