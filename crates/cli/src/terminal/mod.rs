//! What does a person see, and the shell? Bars and lines on stderr, results on stdout, and how it
//! ended.

pub mod bar;
pub mod draw;
pub mod failure;
pub mod interrupt;
pub mod output;

use anchorhood::Event;

/// Says what the library tells beside a result: a warning, or what is good to know.
pub fn tell(event: &Event) {
    match event {
        Event::Warning { message } => eprintln!("warning: {message}"),
        Event::Note { message } => eprintln!("{message}"),
        _ => {}
    }
}
