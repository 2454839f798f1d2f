//! What `reproduce` is doing: a bar on a terminal, a line for each experiment, run and round in a
//! pipe.

use anchorhood::reproduce::Told;
use anchorhood::train::{Event, Subject};
use indicatif::ProgressBar;

use crate::terminal::bar::styled;
use crate::terminal::output::{duration, printable};

/// Shows it.
pub struct Watcher {
    bar: ProgressBar,
    quiet: bool,
    run: String,
}

impl Watcher {
    /// Warnings are shown even if it is quiet.
    pub fn new(quiet: bool) -> Self {
        let bar = styled(quiet);
        Watcher { bar, quiet, run: String::new() }
    }

    /// Shows one thing that happened.
    pub fn tell(&mut self, told: Told) {
        match told {
            Told::Experiment(e) => self.say(&format!("{}: {} ({})", e.name, e.title, e.place)),
            Told::Training(name) => {
                self.run = name.into();
                self.say(&format!("  {name}"));
            }
            Told::Trained { .. } => {}
            Told::Event(event) => self.event(event),
            Told::Step { what, done, total } => {
                self.show(what, done, total, format!("{done}/{total}"));
            }
            Told::Strip { file, shows } => self.say(&format!("  {file}: {shows}")),
            Told::LeftOut { row, why } => self.say(&format!("  {row}: left out: {why}")),
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Progress(p) => {
                let left = format!("loss {:.4}, {} left", p.loss, duration(p.seconds_left));
                let what = format!("{} round {} epoch {}", self.run, p.round, p.epoch + 1);
                self.show(&what, p.batch, p.batches, left);
            }
            Event::Discovering { round, done, pictures } => {
                let what = format!("{} round {round} discovery", self.run);
                self.show(&what, *done, *pictures, format!("{done}/{pictures}"));
            }
            Event::EpochEnded(e) => {
                let what = format!("{} epoch {}", self.run, e.epoch + 1);
                self.show(&what, e.epoch + 1, e.epochs, format!("loss {:.4}", e.loss));
            }
            Event::Evaluated(e) => {
                if let Subject::Trained { round, .. } = e.subject {
                    let top1 = 100.0 * e.accuracy.top1;
                    self.say(&format!("    round {round}: kNN top-1 {top1:.1}%"));
                }
            }
            Event::Warning { message } => {
                self.bar.suspend(|| eprintln!("warning: {message}"));
            }
            _ => {}
        }
    }

    fn show(&self, what: &str, done: usize, total: usize, message: String) {
        self.bar.set_prefix(what.to_string());
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(message);
    }

    fn say(&self, text: &str) {
        match (self.quiet, self.bar.is_hidden()) {
            (true, _) => {}
            (_, true) => eprintln!("{text}"),
            _ => self.bar.println(printable(text)),
        }
    }

    /// Takes the bar away until something happens again: a table is about to be printed.
    pub fn clear(&self) {
        self.bar.suspend(|| {});
        self.bar.reset();
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
